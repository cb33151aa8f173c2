"""rmsnorm.cu on 2048 rows of 4096 halves."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

COLUMNS, EPS = 4096, 1e-5


def launch(rows: int = 2048) -> Launch:
    return Launch("rmsnorm", (rows, 1, 1), (256, 1, 1), (given("f16", rows * COLUMNS), given("f16", COLUMNS), output("f16", rows * COLUMNS), EPS))


def small() -> Launch:
    return launch(16)


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, COLUMNS)
    return x / np.sqrt((x * x).mean(1, keepdims=True) + EPS) * w
