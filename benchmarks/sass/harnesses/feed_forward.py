"""feed_forward.cu: 2048 rows, 1024 inputs, 4096 outputs."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output


def launch(rows: int = 2048, columns: int = 4096, depth: int = 1024) -> Launch:
    weights = given("f16", depth * columns, 0.1)
    arrays = (given("f16", rows * depth), weights, weights, output("f16", rows * columns))
    return Launch("feed_forward", (columns // 64, rows // 64, 1), (128, 1, 1), (*arrays, columns, depth))


def small() -> Launch:
    return launch(128, 192, 256)


def expected(a: np.ndarray, g: np.ndarray, u: np.ndarray) -> np.ndarray:
    a, g, u = a.reshape(128, 256), g.reshape(256, 192), u.reshape(256, 192)
    gate = a @ g
    return gate / (1 + np.exp(-gate)) * (a @ u)
