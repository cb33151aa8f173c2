"""matmul_leakyrelu.cu at 2048 x 2048 x 2048."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

SHARED = 56832


def launch(n: int = 2048) -> Launch:
    arrays = (given("f16", n * n), given("f16", n * n), output("f16", n * n))
    return Launch("matmul_leakyrelu", (n // 128, n // 128, 1), (256, 1, 1), (*arrays, n, n), SHARED)


def small() -> Launch:
    return launch(256)


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = a.reshape(256, 256) @ b.reshape(256, 256)
    return np.where(c > 0, c, 0.01 * c)
