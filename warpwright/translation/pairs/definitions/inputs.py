"""Input values, drawn from each tensor's domain by a seed, in several ranges of that domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.translation.pairs.definitions.expr import Graph, Tensor

RANGES = ("whole", "middle", "ends")
"""`whole`: uniform over the domain; `middle`: its middle third; `ends`: near its two ends, and 0 where the domain contains it."""


def draw(tensor: Tensor, rng: np.random.Generator, where: str) -> NDArray[Any]:
    """Return the values of one input, of the tensor's shape and dtype."""
    if tensor.values == "permutation":
        return rng.permutation(int(tensor.high))[: tensor.size].astype(np.int32).reshape(tensor.shape)
    if tensor.values == "index":
        first, end = int(tensor.low), int(tensor.high)
        if where == "middle" and end - first >= 6:
            first, end = first + (end - first) // 3, end - (end - first) // 3
        return rng.integers(first, end, tensor.shape).astype(tensor.dtype)
    low, high = tensor.interval
    width = high - low
    if where == "middle":
        low, high = low + width / 3, high - width / 3
    drawn = rng.uniform(low, high, tensor.shape)
    if where == "ends":
        near = rng.uniform(0, 0.1 * width, tensor.shape)
        drawn = np.where(rng.random(tensor.shape) < 0.5, low + near, high - near)
        if low < 0 < high:
            drawn[rng.random(tensor.shape) < 0.1] = 0.0
    return np.clip(drawn.astype(np.float32), np.float32(tensor.low), np.float32(tensor.high))


def inputs_of(graph: Graph, seed: int, where: str) -> Mapping[str, NDArray[Any]]:
    """Return the values of every input of a graph, by name."""
    rng = np.random.default_rng([seed, RANGES.index(where)])
    return {tensor.name: draw(tensor, rng, where) for tensor in graph.inputs}
