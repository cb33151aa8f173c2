"""flash_attention.cu: 8 heads, 4096 positions, width 64."""

from __future__ import annotations

import math

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

WIDTH = 64


def launch(heads: int = 8, length: int = 4096) -> Launch:
    count = heads * length * WIDTH
    arrays = (given("f16", count), given("f16", count), given("f16", count), output("f16", count))
    return Launch("flash_attention", (length // 64, heads, 1), (128, 1, 1), (*arrays, length, math.log2(math.e) / math.sqrt(WIDTH)))


def small() -> Launch:
    return launch(2, 256)


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (x.reshape(2, 256, WIDTH) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    return weights / weights.sum(2, keepdims=True) @ v
