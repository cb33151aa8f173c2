"""softmax.cu on 1024 rows of 4096."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

COLUMNS = 4096


def launch(rows: int = 1024) -> Launch:
    return Launch("softmax", (rows, 1, 1), (256, 1, 1), (given("f32", rows * COLUMNS, 4.0), output("f32", rows * COLUMNS)))


def small() -> Launch:
    return launch(16)


def expected(x: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, COLUMNS)
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)
