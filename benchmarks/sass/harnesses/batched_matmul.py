"""batched_matmul.cu: 16 products of 1024 x 1024 x 1024."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

SHARED = 56832


def launch(n: int = 1024, batch: int = 16) -> Launch:
    count = n * n * batch
    arrays = (given("f16", count), given("f16", count), output("f16", count))
    return Launch("batched_matmul", (n // 128, n // 128, batch), (256, 1, 1), (*arrays, n, n, n), SHARED)


def small() -> Launch:
    return launch(256, 2)


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.reshape(2, 256, 256) @ b.reshape(2, 256, 256)
