"""Could the comparison tell a wrong program at all? Only then is an item scored.

Impostors, wrong outputs that no work was needed for, are compared like a candidate's, and each has to fail on one example at least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warpwright.translation.judge.examples import Array, Example, differs


def undecided(examples: Sequence[Example]) -> str:
    """Return why the examples cannot tell a right program from a wrong one; empty where they can, for every output.

    A copy of an input is a sound test when the values are random: a program that writes nothing, zeros or the mean, or moves elements, fails it.
    """
    if not examples:
        return "its answers are not finite on any range of values"
    return next((why for name in examples[0].answers if (why := _undecided(examples, name))), "")


def tells(one: Example) -> bool:
    """Whether any output of an example has more than one value, or kind of value."""
    return any(_varies(one, name) for name in one.answers)


def one_number_only(examples: Sequence[Example]) -> bool:
    """Whether each undecided output has one finite value only, to the last bit: then only its treatment of NaN can tell."""
    names = [name for name in examples[0].answers if _undecided(examples, name)] if examples else []
    values = [np.concatenate([one.answers[name] for one in examples]) for name in names]
    return all(len(np.unique(value[np.isfinite(value)])) == 1 for value in values)


def _undecided(examples: Sequence[Example], name: str) -> str:
    if not any(_varies(one, name) for one in examples):
        bare = not any(np.isfinite(one.answers[name]).any() for one in examples)
        return "its answers are not finite on any range of values" if bare else f"its output {name} is constant"
    for word, play in IMPOSTORS.items():
        if all(not differs(one, name, play(one, name)) for one in examples):
            return f"its output {name} is not told apart from {word}"
    for source in examples[0].inputs:
        if all(_copies(one, name, source) for one in examples) and not _both_signs(examples, source):
            return f"its output {name} is a copy of an input on all ranges with finite answers"
    twins = [(a, b) for a in examples for b in examples if a.where == b.where and a.seed < b.seed]
    moved = [(a, b) for a, b in twins if not np.array_equal(a.answers[name], b.answers[name], equal_nan=a.answers[name].dtype.kind == "f")]
    if moved and all(not differs(a, name, _stored(b, name)) for a, b in moved):
        return f"its output {name} is not told apart from the answer to other inputs"
    return ""


def _varies(one: Example, name: str) -> bool:
    """Whether an output has more than one value; an output of one element counts as varied."""
    value = one.answers[name]
    same = np.array_equal(value, np.full_like(value, value[0]), equal_nan=value.dtype.kind == "f")
    return value.size == 1 or (not same and bool(differs(one, name, _mean(one, name))))


def _stored(one: Example, name: str) -> Array:
    """Return the answers as a float32 program would store them."""
    value = one.answers[name]
    with np.errstate(over="ignore"):
        return value.astype(np.float32) if value.dtype.kind == "f" else value


def _mean(one: Example, name: str) -> Array:
    value = _stored(one, name)
    kept = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    return np.full_like(value, kept.mean(dtype=np.float64) if kept.size else 0)


def _untouched(one: Example, name: str) -> Array:
    value = _stored(one, name)
    return np.full_like(value, np.nan) if value.dtype.kind == "f" else np.full(value.nbytes, 0xA5, np.uint8).view(value.dtype)


def _moved(shift: Callable[[Array], Array]) -> Callable[[Example, str], Array]:
    def play(one: Example, name: str) -> Array:
        value = _stored(one, name)
        return shift(value) if value.size > 1 else np.zeros_like(value)

    return play


IMPOSTORS: Mapping[str, Callable[[Example, str], Array]] = {
    "what was there before": _untouched,
    "zeros": lambda one, name: np.zeros_like(_stored(one, name)),
    "the mean": lambda one, name: _mean(one, name) if one.answers[name].size > 1 else np.zeros_like(_stored(one, name)),
    "its elements moved by one": _moved(lambda value: np.roll(value, 1)),
    "its elements in reverse": _moved(lambda value: value[::-1]),
}
"""Wrong programs that an item has to tell apart: (example, output) -> what they write."""


def _copies(one: Example, name: str, source_name: str) -> bool:
    value, source = one.answers[name], one.inputs[source_name]
    return value.size == source.size and np.array_equal(value, source.reshape(-1).astype(value.dtype), equal_nan=value.dtype.kind == "f")


def _both_signs(examples: Sequence[Example], source_name: str) -> bool:
    """Whether the draws go beyond -1 and 1: on less than that, a relu or a clip to [-1, 1] may be a copy."""
    drawn = [one.inputs[source_name] for one in examples]
    return min(float(np.nanmin(one)) for one in drawn) < -1 and max(float(np.nanmax(one)) for one in drawn) > 1
