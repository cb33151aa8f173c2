"""sgemm.cu at 2048 x 2048 x 1024."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output


def launch(n: int = 2048, depth: int = 1024) -> Launch:
    arrays = (given("f32", n * depth), given("f32", n * depth), output("f32", n * n))
    return Launch("sgemm", (n // 128, n // 128, 1), (256, 1, 1), (*arrays, n, depth))


def small() -> Launch:
    return launch(256, 256)


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.reshape(256, 256) @ b.reshape(256, 256)
