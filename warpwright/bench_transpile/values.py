"""Inputs of an item: values from its domain where it has one, else from three ranges, of which those count that give finite answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.bench_transpile.items import Buffer, Item

FREE_RANGES = {"unit": (0.0, 1.0), "signed": (-2.0, 2.0), "above_one": (1.05, 3.0)}
"""Of inputs without a domain: as the benchmark draws them, with both signs, and where acosh and log are defined."""

DOMAIN_RANGES = {"whole": (0.0, 1.0), "middle": (1 / 3, 2 / 3), "upper": (0.7, 1.0)}
"""Shares of a known domain."""


def ranges_of(item: Item) -> tuple[str, ...]:
    """Return the names of the ranges that an item is tried on."""
    known = any(b.role == "input" and b.values == "uniform" and b.high > b.low for b in item.buffers)
    return tuple(DOMAIN_RANGES if known else FREE_RANGES)


def inputs_of(item: Item, seed: int, where: str) -> dict[str, NDArray[Any]]:
    """Return values of every input."""
    rng = np.random.default_rng([seed, len(where)])
    return {b.name: _draw(b, rng, where) for b in item.buffers if b.role == "input"}


def _draw(buffer: Buffer, rng: np.random.Generator, where: str) -> NDArray[Any]:
    kind = np.dtype(buffer.dtype)
    if buffer.values == "permutation":
        return rng.permutation(int(buffer.high))[: buffer.size].astype(kind)
    if buffer.values == "index":
        return rng.integers(int(buffer.low), max(int(buffer.low) + 1, int(buffer.high)), buffer.size).astype(kind)
    if buffer.high > buffer.low:
        share = DOMAIN_RANGES.get(where, (0.0, 1.0))
        wide = buffer.high - buffer.low
        low, high = buffer.low + share[0] * wide, buffer.low + share[1] * wide
    else:
        low, high = FREE_RANGES.get(where, (0.0, 1.0))
    return np.clip(rng.uniform(low, high, buffer.size).astype(kind), low, high).astype(kind)
