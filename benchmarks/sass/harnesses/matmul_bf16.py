"""matmul_bf16.cu at 2048 x 2048 x 2048."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

SHARED = 4 * 32768 + 1024


def launch(n: int = 2048) -> Launch:
    arrays = (given("bf16", n * n), given("bf16", n * n), output("bf16", n * n))
    return Launch("matmul_bf16", (n // 128, n // 128, 1), (256, 1, 1), (*arrays, n, n), SHARED)


def small() -> Launch:
    return launch(256)


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.reshape(256, 256) @ b.reshape(256, 256).T
