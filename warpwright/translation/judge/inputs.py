"""Inputs of an item: values from its domain where that is known, else from three ranges, and from more where those do not suffice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.translation.items import Buffer, Item

FREE_RANGES = {"unit": (0.0, 1.0), "signed": (-2.0, 2.0), "above_one": (1.05, 3.0)}
"""Ranges of inputs without a known domain: as HPCTransEval draws them, with both signs, and where acosh and log are defined."""

MORE_RANGES = {
    "below_one": (0.05, 0.95), "small": (1e-3, 0.1), "negative": (-0.95, -0.05), "around_zero": (-0.1, 0.1),
    "large": (3.0, 30.0), "wide": (-8.0, 8.0),
}  # fmt: skip
"""Further ranges for items whose answers are not finite or constant on those: domains of log, atanh and acos(sin), and where ceil varies."""

ALTERNATING = {"above_below": ((1.05, 3.0), (0.05, 0.95)), "below_above": ((0.05, 0.95), (1.05, 3.0))}
"""Ranges of the odd and of the even inputs: for programs that take acosh of one and atanh of another."""

WITH_NAN = "with_nan"
"""[0, 1) with NaN for a quarter of the values, for programs that are constant on numbers: isnan, a softmax over one element."""

DOMAIN_RANGES = {"whole": (0.0, 1.0), "middle": (1 / 3, 2 / 3), "upper": (0.7, 1.0)}
"""Ranges of inputs with a known domain, as shares of it."""


def ranges_of(item: Item) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names of the ranges to draw from: the usual ones, further ones where those do not suffice, and the last resort."""
    if any(b.role == "input" and b.values == "uniform" and b.high > b.low for b in item.buffers):
        return tuple(DOMAIN_RANGES), (), ()
    return tuple(FREE_RANGES), (*MORE_RANGES, *ALTERNATING), (WITH_NAN,)


def inputs_of(item: Item, seed: int, where: str) -> dict[str, NDArray[Any]]:
    """Return the values of every input, flat arrays by name."""
    rng = np.random.default_rng([seed, len(where)])
    inputs = [b for b in item.buffers if b.role == "input"]
    return {b.name: _draw(b, rng, where, number) for number, b in enumerate(inputs)}


def _draw(buffer: Buffer, rng: np.random.Generator, where: str, number: int) -> NDArray[Any]:
    kind = np.dtype(buffer.dtype)
    if buffer.values == "permutation":
        return rng.permutation(int(buffer.high))[: buffer.size].astype(kind)
    if buffer.values == "index":
        return rng.integers(int(buffer.low), max(int(buffer.low) + 1, int(buffer.high)), buffer.size).astype(kind)
    if buffer.high > buffer.low:
        share = DOMAIN_RANGES.get(where, (0.0, 1.0))
        width = buffer.high - buffer.low
        low, high = buffer.low + share[0] * width, buffer.low + share[1] * width
    elif where in ALTERNATING:
        low, high = ALTERNATING[where][number % 2]
    else:
        low, high = {**FREE_RANGES, **MORE_RANGES}.get(where, (0.0, 1.0))
    drawn = np.clip(rng.uniform(low, high, buffer.size).astype(kind), low, high).astype(kind)
    if where == WITH_NAN and kind.kind == "f":
        drawn[rng.random(buffer.size) < 0.25] = np.nan
    return drawn
