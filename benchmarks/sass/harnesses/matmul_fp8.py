"""matmul_fp8.cu at 2048 x 2048 x 4096."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

SHARED = 4 * 32768 + 1024


def launch(m: int = 2048, n: int = 2048, k: int = 4096) -> Launch:
    scales = (given("f32", k // 128 * m, 0.2, 1.0), given("f32", k // 128 * (n // 128), 0.2, 1.0))
    arrays = (given("e4m3", m * k), given("e4m3", n * k), *scales, output("bf16", m * n))
    return Launch("matmul_fp8", (n // 128, m // 128, 1), (256, 1, 1), (*arrays, m, n, k), SHARED)


def small() -> Launch:
    return launch(256, 384, 512)


def expected(a: np.ndarray, b: np.ndarray, a_scale: np.ndarray, b_scale: np.ndarray) -> np.ndarray:
    a, b = a.reshape(256, 4, 128), b.reshape(384, 4, 128)
    each = np.einsum("mtk,ntk->tmn", a, b)
    return (each * a_scale.reshape(4, 256)[:, :, None] * b_scale.reshape(4, 3).repeat(128, 1)[:, None, :]).sum(0)
