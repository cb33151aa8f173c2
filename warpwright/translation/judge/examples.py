"""One draw of inputs with the answers of the reference, and the comparison of a program's outputs with them.

The answers are those of the reference run in float64. Elements on which a float32 run of it is far from that (a ceil that rounds the other way, a
domain left by one rounding) are not compared, if they are few. If they are many, float32 is mostly rounding there, and the example counts only
where there is no better one. The float32 runs round in more than one way (`variants.ROUNDINGS`): one alone says by chance which elements are far,
and by that rule the reference itself, built for another processor, was wrong. Elements that depend on memory which the reference has not written are
not compared either. Answers may be NaN or infinite where no range of values avoids it: such elements are compared by kind, NaN with NaN, an infinity
with the same infinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.translation.tolerance import EPSILON, Tolerance

Array = NDArray[Any]

FLOOR, SLACK = 64.0, 4.0
"""A candidate may err by SLACK times the reference's own error against float64, plus FLOOR roundings of the value and of the mean."""

COARSE = 0.02
"""An element is far off where the float32 and the float64 run of the reference differ by more than this share of the mean magnitude."""

MOST_BORDER = 0.01
"""Largest share of an output's elements that may be left out for being far off."""

MOST_UNWRITTEN = 0.25
"""Largest share that may be left out for depending on memory which the reference has not written: nobody can say what they should be."""


@dataclass(frozen=True)
class Example:
    """One draw of inputs with its answers: flat arrays, by name."""

    where: str
    seed: int
    inputs: Mapping[str, Array]
    answers: Mapping[str, Array]
    tolerances: Mapping[str, Tolerance]
    border: Mapping[str, Array] = field(default_factory=dict)
    """Masks of the elements that are not compared, of the outputs that have any."""
    coarse: bool = False
    """Whether float32 is too coarse for these inputs: the float64 answers are far off, so the reference's own float32 answers are used."""

    @property
    def good(self) -> bool:
        """Whether every answer is finite and float32 is fine enough."""
        return not self.coarse and all(bool(np.isfinite(value).all()) for value in self.answers.values())


def example(
    where: str,
    seed: int,
    inputs: Mapping[str, Array],
    single: Mapping[str, Array],
    exact: Mapping[str, Array] | None,
    unwritten: Mapping[str, Array] | None = None,
    others: Sequence[Mapping[str, Array]] = (),
) -> Example:
    """Return an example from the outputs of the reference (`single`) and of its float64 run, if any.

    `unwritten`: masks of the elements that depend on memory which the reference has not written. `others`: float32 runs of it that round otherwise.
    """
    answers: dict[str, Array] = {}
    tolerances: dict[str, Tolerance] = {}
    border: dict[str, Array] = {}
    coarse = False
    for name, value in single.items():
        if value.dtype.kind != "f":
            answers[name], tolerances[name] = value, Tolerance(0.0, 0.0)
            continue
        own, *rest = runs = [run[name].astype(np.float64) for run in (single, *others)]
        best = own if exact is None else exact[name]
        far = np.logical_or.reduce([_far(run, best) for run in runs])
        if far.mean() > MOST_BORDER:
            best, far, coarse, rest = own, np.zeros(own.shape, bool), True, []
        if unwritten is not None and unwritten[name].mean() <= MOST_UNWRITTEN:
            far = far | unwritten[name]
        best = np.where(far, own, best)
        kept = np.isfinite(own) & np.isfinite(best) & ~far
        mean = _sizes(own, best, kept)[0]
        error = max(_sizes(run, best, kept)[1] for run in (own, *rest))
        answers[name], tolerances[name] = best, Tolerance(SLACK * error + FLOOR * EPSILON * mean, FLOOR * EPSILON)
        if far.any():
            border[name] = far
    return Example(where, seed, inputs, answers, tolerances, border, coarse)


def _far(own: Array, best: Array) -> Array:
    """Return the mask of elements on which two runs of the reference differ in kind, or by more than rounding explains."""
    both = np.isfinite(own) & np.isfinite(best)
    error = np.abs(np.where(both, own, 0.0) - np.where(both, best, 0.0))
    mean = float(np.abs(own[both]).mean()) if both.any() else 0.0
    far: Array = ~_same_kind(own, best) | (error > COARSE * mean + 1e-30)
    return far


def _sizes(own: Array, best: Array, kept: Array) -> tuple[float, float]:
    """Return the mean magnitude and the largest error of the elements that are compared."""
    return (float(np.abs(own[kept]).mean()), float(np.abs(own[kept] - best[kept]).max())) if kept.any() else (0.0, 0.0)


def _same_kind(one: Array, other: Array) -> Array:
    same: Array = (np.isfinite(one) & np.isfinite(other)) | (np.isnan(one) & np.isnan(other)) | (one == other)
    return same


def differs(one: Example, name: str, value: Array) -> str:
    """Return how an output differs from the answers; empty where it does not."""
    exact, tolerance = one.answers[name], one.tolerances[name]
    if value.dtype.kind != "f":
        off = np.abs(value.astype(np.float64) - exact)
        return f"output {name} is off by {off.max():.3g} on values of the range {one.where}" if off.any() else ""
    same = _same_kind(value, exact)
    finite = np.isfinite(value) & np.isfinite(exact)
    error = np.abs(np.where(finite, value, 0.0).astype(np.float64) - np.where(finite, exact, 0.0))
    right = same & (~finite | tolerance.allows(error, exact))
    right |= one.border.get(name, False)
    if right.all():
        return ""
    if not same[~right].all():
        count = int((~same & ~right).sum())
        return f"output {name} is off by nan: {count} elements are not finite and should be, or the reverse, on values of the range {one.where}"
    return f"output {name} is off by {error[~right].max():.3g} (allowed {tolerance.absolute:.3g}) on values of the range {one.where}"
