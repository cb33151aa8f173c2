"""Input values: drawn from each buffer's domain by a seed, in several ranges of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.translation.pairs.definitions.expr import Buffer, Graph

RANGES = ("whole", "middle", "ends")
"""`whole`: uniform over the domain; `middle`: its middle third; `ends`: near its two ends, with 0 among them where it lies inside."""

_TYPES = {"float32": np.float32, "int32": np.int32, "int8": np.int8}


def draw(buffer: Buffer, rng: np.random.Generator, where: str) -> NDArray[Any]:
    """Return values of one input."""
    if buffer.values == "permutation":
        return rng.permutation(int(buffer.high))[: buffer.size].astype(np.int32).reshape(buffer.shape)
    if buffer.values == "index":
        first, end = int(buffer.low), int(buffer.high)
        if where == "middle" and end - first >= 6:
            first, end = first + (end - first) // 3, end - (end - first) // 3
        return rng.integers(first, end, buffer.shape).astype(_TYPES[buffer.dtype])
    low, high = buffer.interval
    wide = high - low
    if where == "middle":
        low, high = low + wide / 3, high - wide / 3
    drawn = rng.uniform(low, high, buffer.shape)
    if where == "ends":
        near = rng.uniform(0, 0.1 * wide, buffer.shape)
        drawn = np.where(rng.random(buffer.shape) < 0.5, low + near, high - near)
        if low < 0 < high:
            drawn[rng.random(buffer.shape) < 0.1] = 0.0
    return np.clip(drawn.astype(np.float32), np.float32(buffer.low), np.float32(buffer.high))


def inputs_of(graph: Graph, seed: int, where: str) -> Mapping[str, NDArray[Any]]:
    """Return values of every input of a graph."""
    rng = np.random.default_rng([seed, RANGES.index(where)])
    return {buffer.name: draw(buffer, rng, where) for buffer in graph.inputs}
