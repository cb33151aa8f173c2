"""The reference's answers on one draw of inputs, the comparison with them, and whether that comparison could tell a wrong program at all.

The answers are the reference's float64 run. Elements in which its float32 run is far from that (a ceil that rounds the other way, a domain left
by one rounding) are left out, if they are few; if they are many, float32 is mostly rounding there, and the case counts only where there is no
better. Elements that come of memory which the reference has not written are left out too. Answers may be NaN or infinite where no range of
values avoids it. Such elements are compared by kind: NaN with NaN, an infinity with the same infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

EPSILON = float(np.finfo(np.float32).eps)
FLOOR, SLACK = 64.0, 4.0
"""A candidate may err by SLACK times the reference's own error against float64, and FLOOR roundings of the value and of the mean."""

COARSE = 0.02
"""An element in which the float64 run of the reference differs from its float32 run by more than this share of the mean is far from it."""

MOST_BORDER = 0.01
"""Share of an output's elements that may be left out."""

MOST_UNWRITTEN = 0.25
"""And of those that come of memory which the reference has not written: what they are is nobody's answer."""


@dataclass(frozen=True)
class Case:
    """One draw of inputs with its answers."""

    where: str
    seed: int
    inputs: Mapping[str, Array]
    answers: Mapping[str, Array]
    allowed: Mapping[str, float]
    """Absolute tolerance of each output; the relative one is FLOOR roundings."""
    border: Mapping[str, Array] = field(default_factory=dict)
    """Elements that are not compared, of the outputs that have any."""
    coarse: bool = False
    """Whether float32 is too coarse for these inputs: the float64 answers are far away, and the reference's own stand in their place."""

    @property
    def good(self) -> bool:
        """Whether every answer is finite and float32 is fine enough."""
        return not self.coarse and all(bool(np.isfinite(value).all()) for value in self.answers.values())


def case(
    where: str,
    seed: int,
    inputs: Mapping[str, Array],
    seen: Mapping[str, Array],
    exact: Mapping[str, Array] | None,
    unwritten: Mapping[str, Array] | None = None,
) -> Case:
    """Return a case from the answers of the reference and of its float64 run, if any. `unwritten`: elements that come of memory not written."""
    answers, allowed, border, coarse = {}, {}, {}, False
    for name, value in seen.items():
        if value.dtype.kind != "f":
            answers[name], allowed[name] = value, 0.0
            continue
        own = value.astype(np.float64)
        best = own if exact is None else exact[name]
        far = _far(own, best)
        if far.mean() > MOST_BORDER:
            best, far, coarse = own, np.zeros(own.shape, bool), True
        if unwritten is not None and unwritten[name].mean() <= MOST_UNWRITTEN:
            far = far | unwritten[name]
        best = np.where(far, own, best)
        kept = np.isfinite(own) & np.isfinite(best) & ~far
        mean, error = _sizes(own, best, kept)
        answers[name], allowed[name] = best, SLACK * error + FLOOR * EPSILON * mean
        if far.any():
            border[name] = far
    return Case(where, seed, inputs, answers, allowed, border, coarse)


def _far(own: Array, best: Array) -> Array:
    """Return the elements in which two runs of the reference differ in kind, or by more than roundings add up to."""
    both = np.isfinite(own) & np.isfinite(best)
    error = np.abs(np.where(both, own, 0.0) - np.where(both, best, 0.0))
    mean = float(np.abs(own[both]).mean()) if both.any() else 0.0
    far: Array = ~_same_kind(own, best) | (error > COARSE * mean + 1e-30)
    return far


def _sizes(own: Array, best: Array, kept: Array) -> tuple[float, float]:
    """Return the mean magnitude and the largest error of the elements that are kept."""
    return (float(np.abs(own[kept]).mean()), float(np.abs(own[kept] - best[kept]).max())) if kept.any() else (0.0, 0.0)


def _same_kind(one: Array, other: Array) -> Array:
    same: Array = (np.isfinite(one) & np.isfinite(other)) | (np.isnan(one) & np.isnan(other)) | (one == other)
    return same


def differs(found: Case, name: str, value: Array) -> str:
    """Return how an output differs from the answers; empty when it does not."""
    exact = found.answers[name]
    if value.dtype.kind != "f":
        off = np.abs(value.astype(np.float64) - exact)
        return f"output {name} is off by {off.max():.3g} on values of the range {found.where}" if off.any() else ""
    same = _same_kind(value, exact)
    finite = np.isfinite(value) & np.isfinite(exact)
    error = np.abs(np.where(finite, value, 0.0).astype(np.float64) - np.where(finite, exact, 0.0))
    right = same & (~finite | (error <= found.allowed[name] + FLOOR * EPSILON * np.abs(exact)))
    right |= found.border.get(name, False)
    if right.all():
        return ""
    if not same[~right].all():
        count = int((~same & ~right).sum())
        return f"output {name} is off by nan: {count} elements are not finite and should be, or the reverse, on values of the range {found.where}"
    return f"output {name} is off by {error[~right].max():.3g} (allowed {found.allowed[name]:.3g}) on values of the range {found.where}"


# --- could the comparison tell? ----------------------------------------------------------------------------------------------------------


def undecided(cases: Sequence[Case]) -> str:
    """Return why no case can tell a right program from a wrong one; empty when every output has cases that can.

    Wrong programs are played: their outputs are compared like a candidate's, and each has to be told apart in one case at least. A copy of an
    input is a sound test when the values are random: what writes nothing, zeros, the mean, or moves the elements is told apart.
    """
    if not cases:
        return "its answers are not finite on any range of values"
    return next((why for name in cases[0].answers if (why := _undecided(cases, name))), "")


def tells(one: Case) -> bool:
    """Whether any output of a case is more than one value, or kind of value."""
    return any(_varies(one, name) for name in one.answers)


def one_number_only(cases: Sequence[Case]) -> bool:
    """Whether each output that no case tells takes one finite value only, to the last bit: what is left to tell is what it does with NaN."""
    values = [np.concatenate([one.answers[name] for one in cases]) for name in cases[0].answers if _undecided(cases, name)] if cases else []
    return all(len(np.unique(value[np.isfinite(value)])) == 1 for value in values)


def _undecided(cases: Sequence[Case], name: str) -> str:
    if not any(_varies(one, name) for one in cases):
        bare = not any(np.isfinite(one.answers[name]).any() for one in cases)
        return "its answers are not finite on any range of values" if bare else f"its output {name} is constant"
    for word, play in IMPOSTORS.items():
        if all(not differs(one, name, play(one, name)) for one in cases):
            return f"its output {name} is not told apart from {word}"
    for one in cases[0].inputs:
        if all(_copies(case, name, one) for case in cases) and not _both_signs(cases, one):
            return f"its output {name} is a copy of an input on all ranges with finite answers"
    twins = [(a, b) for a in cases for b in cases if a.where == b.where and a.seed < b.seed]
    moved = [(a, b) for a, b in twins if not np.array_equal(a.answers[name], b.answers[name], equal_nan=a.answers[name].dtype.kind == "f")]
    if moved and all(not differs(a, name, _stored(b, name)) for a, b in moved):
        return f"its output {name} is not told apart from the answer to other inputs"
    return ""


def _varies(one: Case, name: str) -> bool:
    """Whether an output is more than one value; one of a single element counts as varied."""
    value = one.answers[name]
    same = np.array_equal(value, np.full_like(value, value[0]), equal_nan=value.dtype.kind == "f")
    return value.size == 1 or (not same and bool(differs(one, name, _mean(one, name))))


def _stored(one: Case, name: str) -> Array:
    """The answers as a program of float32 would hold them."""
    value = one.answers[name]
    with np.errstate(over="ignore"):
        return value.astype(np.float32) if value.dtype.kind == "f" else value


def _mean(one: Case, name: str) -> Array:
    value = _stored(one, name)
    kept = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    return np.full_like(value, kept.mean(dtype=np.float64) if kept.size else 0)


def _untouched(one: Case, name: str) -> Array:
    value = _stored(one, name)
    return np.full_like(value, np.nan) if value.dtype.kind == "f" else np.full(value.nbytes, 0xA5, np.uint8).view(value.dtype)


def _moved(shift: Callable[[Array], Array]) -> Callable[[Case, str], Array]:
    def play(one: Case, name: str) -> Array:
        value = _stored(one, name)
        return shift(value) if value.size > 1 else np.zeros_like(value)

    return play


IMPOSTORS: Mapping[str, Callable[[Case, str], Array]] = {
    "what was there before": _untouched,
    "zeros": lambda one, name: np.zeros_like(_stored(one, name)),
    "the mean": lambda one, name: _mean(one, name) if one.answers[name].size > 1 else np.zeros_like(_stored(one, name)),
    "its elements moved by one": _moved(lambda value: np.roll(value, 1)),
    "its elements in reverse": _moved(lambda value: value[::-1]),
}
"""Wrong programs that an item has to tell apart: case, output -> what they write."""


def _copies(one: Case, name: str, given: str) -> bool:
    value, source = one.answers[name], one.inputs[given]
    return value.size == source.size and np.array_equal(value, source.reshape(-1).astype(value.dtype), equal_nan=value.dtype.kind == "f")


def _both_signs(cases: Sequence[Case], given: str) -> bool:
    """Whether the draws go beyond -1 and 1: a relu or a clip to [-1, 1] is a copy on less than that."""
    drawn = [one.inputs[given] for one in cases]
    return min(float(np.nanmin(one)) for one in drawn) < -1 and max(float(np.nanmax(one)) for one in drawn) > 1
