"""layernorm.cu on 1024 rows of 4096."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

COLUMNS, EPS = 4096, 1e-5


def launch(rows: int = 1024) -> Launch:
    arrays = (given("f32", rows * COLUMNS, 1.0, 0.5), given("f32", COLUMNS), given("f32", COLUMNS), output("f32", rows * COLUMNS))
    return Launch("layernorm", (rows, 1, 1), (256, 1, 1), (*arrays, EPS))


def small() -> Launch:
    return launch(16)


def expected(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, COLUMNS)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS) * g + b
