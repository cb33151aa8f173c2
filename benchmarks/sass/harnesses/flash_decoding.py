"""flash_decoding.cu: 64 heads, 4096 keys of 64, in parts of 256."""

from __future__ import annotations

import math

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

WIDTH, PART = 64, 256


def launch(heads: int = 64, length: int = 4096) -> Launch:
    caches = (given("f16", heads * length * WIDTH), given("f16", heads * length * WIDTH))
    arrays = (given("f16", heads * WIDTH), *caches, output("f32", heads * (length // PART) * (WIDTH + 2)))
    return Launch("flash_decoding", (length // PART, heads, 1), (128, 1, 1), (*arrays, length, math.log2(math.e) / math.sqrt(WIDTH)))


def small() -> Launch:
    return launch(3, 512)


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    k, v = k.reshape(3, 2, PART, WIDTH), v.reshape(3, 2, PART, WIDTH)
    scores = np.einsum("hw,hpkw->hpk", q.reshape(3, WIDTH), k) * math.log2(math.e) / math.sqrt(WIDTH)
    most = scores.max(2, keepdims=True)
    weights = np.exp2(scores - most)
    return np.concatenate([np.einsum("hpk,hpkw->hpw", weights, v), most, weights.sum(2, keepdims=True)], 2)
