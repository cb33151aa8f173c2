"""Verify a draft: both halves against float64 on several seeds and value ranges, and a definition that is worth learning from.

A definition is vacuous when an output is constant, not finite, equal to an input, or deaf to all inputs, or when an input moves nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.translation.pairs.build import CHalf, Run
from warpwright.translation.pairs.definitions.expr import Buffer, Graph
from warpwright.translation.pairs.definitions.inputs import inputs_of
from warpwright.translation.pairs.definitions.reference import compile_reference
from warpwright.translation.pairs.draft import Draft

CASES = (("whole", 0), ("middle", 1), ("ends", 2), ("whole", 3))
"""Value range, and what is added to the draft's seed."""

GUARD = 64
"""Elements before and after each array that must stay as they are."""

SLACK = 4.0
"""A half may err by this multiple of what numpy in float32 errs, besides rounding."""

ILL_CONDITIONED = 0.01
"""Of the mean magnitude: when float32 numpy errs more, the definition is not fit to compare by."""

EPSILON = float(np.finfo(np.float32).eps)
TYPES: Mapping[str, Any] = {"float32": np.float32, "int32": np.int32, "int8": np.int8}
GO_SECONDS = 2e-4
"""A call is repeated until it takes this long: going through ctypes takes about 5 us."""

TIMING_SECONDS = 0.03
"""For all candidates of a pair together, at least five rounds."""


class Rejected(Exception):
    """A draft that is no verified pair. The first word of the message is the class of the reason."""


@dataclass(frozen=True)
class Case:
    """Inputs, the float64 answers and the float32 answers of numpy."""

    seed: int
    where: str
    inputs: Mapping[str, NDArray[Any]]
    exact: tuple[NDArray[Any], ...]
    single: tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Tolerance:
    """An output passes where |seen - exact| <= absolute + relative |exact|. Both are 0 for integers."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class Checked:
    """What the checks of a draft gave."""

    tolerances: tuple[Tolerance, ...]
    seeds: tuple[tuple[int, str], ...]
    best: int
    """Number of the fastest C candidate."""
    seconds: tuple[float, ...]
    """Median time of each candidate."""


def seed_of(draft: Draft, added: int) -> int:
    """Return the seed of a case."""
    return draft.index * 10 + added


def check(draft: Draft, halves: Sequence[CHalf], cuda: Run | None) -> Checked:
    """Return what is to be recorded of a draft whose halves are right. Raises Rejected."""
    cases = [_case(draft, where, added) for where, added in CASES]
    tolerances = tuple(_tolerance(draft.graph, cases, k) for k in range(len(draft.graph.outputs)))
    _not_vacuous(draft, cases[0], halves[0])
    right = [number for number, half in enumerate(halves) if _passes(draft, half, cases[:1], tolerances, f"c candidate {number}")]
    seconds = time_candidates(draft, [halves[number] for number in right], cases[0])
    best = right[min(range(len(right)), key=lambda k: seconds[k])]
    _passes(draft, halves[best], cases, tolerances, f"c candidate {best}")
    if cuda is not None:
        _passes(draft, cuda, cases, tolerances, "cuda")
    return Checked(tolerances, tuple((case.seed, case.where) for case in cases), best, tuple(seconds))


def _case(draft: Draft, where: str, added: int) -> Case:
    seed = seed_of(draft, added)
    inputs, function = inputs_of(draft.graph, seed, where), compile_reference(draft.reference)
    with np.errstate(all="ignore"):
        return Case(seed, where, inputs, function(**inputs), function(**inputs, real=np.float32))


def _tolerance(graph: Graph, cases: Sequence[Case], k: int) -> Tolerance:
    """Return how far output `k` may be off. Raises Rejected where it is not finite or float32 is too coarse for it."""
    if graph.buffer(graph.outputs[k]).dtype != "float32":
        return Tolerance(0.0, 0.0)
    longest = max([1, *(int(np.prod([e for _, e in one.axes])) for stage in graph.stages for one in stage.reductions)])
    longest = max([longest, *(stage.axes[-1][1] for stage in graph.stages if stage.scan)])
    relative, absolute = EPSILON * (32 + 4 * longest**0.5), 0.0
    for case in cases:
        exact, single = case.exact[k], case.single[k]
        if not (np.isfinite(exact).all() and np.isfinite(single).all()) or np.abs(exact).max() > 1e30:
            raise Rejected(f"not_finite: output {graph.outputs[k]} on values of the range {case.where}")
        error, mean = float(np.abs(single - exact).max()), float(np.abs(exact).mean())
        if error > ILL_CONDITIONED * mean:
            raise Rejected(f"ill_conditioned: float32 numpy errs by {error:.2g} of {mean:.2g} in output {graph.outputs[k]}")
        absolute = max(absolute, SLACK * error + relative * mean)
    return Tolerance(absolute, relative)


# --- running ---------------------------------------------------------------------------------------------------------------------------


def _guarded(buffer: Buffer, value: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an array with guards around it, and the array alone (64-byte aligned). Without a value it is filled so that gaps are seen."""
    kind = TYPES[buffer.dtype]
    fill = np.nan if buffer.dtype == "float32" else -77
    room = np.empty(buffer.size + 2 * GUARD + 64, kind)
    start = (-room.ctypes.data % 64) // room.itemsize
    whole = room[start : start + buffer.size + 2 * GUARD]
    whole[:] = fill
    inner = whole[GUARD : GUARD + buffer.size]
    if value is not None:
        inner[:] = value.reshape(-1)
    return whole, inner.reshape(buffer.shape)


def run_guarded(graph: Graph, run: Run, inputs: Mapping[str, NDArray[Any]], who: str) -> tuple[NDArray[Any], ...]:
    """Return the outputs of a program. Raises Rejected where it wrote outside its arrays or changed an input."""
    wholes, arrays = {}, {}
    for buffer in (*graph.inputs, *graph.shapes.values()):
        wholes[buffer.name], arrays[buffer.name] = _guarded(buffer, inputs.get(buffer.name))
    run(arrays)
    for name, whole in wholes.items():
        edges = np.concatenate([whole[:GUARD], whole[-GUARD:]])
        if not (np.isnan(edges).all() if whole.dtype.kind == "f" else (edges == -77).all()):
            raise Rejected(f"out_of_bounds: {who} wrote beside {name}")
    for name, value in inputs.items():
        if not np.array_equal(arrays[name], value):
            raise Rejected(f"input_changed: {who} wrote to {name}")
    return tuple(arrays[name] for name in graph.outputs)


def _passes(draft: Draft, run: Run, cases: Sequence[Case], tolerances: Sequence[Tolerance], who: str) -> bool:
    for case in cases:
        seen = run_guarded(draft.graph, run, case.inputs, who)
        for name, value, exact, allowed in zip(draft.graph.outputs, seen, case.exact, tolerances, strict=True):
            error = np.abs(value.astype(np.float64) - exact)
            if not (error <= allowed.absolute + allowed.relative * np.abs(exact)).all():
                raise Rejected(f"wrong: {who}, output {name} is off by {np.nanmax(error):.3g} (allowed {allowed.absolute:.3g}), range {case.where}")
    return True


def _not_vacuous(draft: Draft, case: Case, run: Run) -> None:
    """Raise Rejected for a definition that a wrong program could satisfy."""
    for name, value in zip(draft.graph.outputs, case.exact, strict=True):
        if value.size > 1 and float(value.max() - value.min()) <= 1e-6 * max(1e-6, float(np.abs(value).max())):
            raise Rejected(f"constant: output {name}")
        for source, given in case.inputs.items():
            if given.size == value.size and np.array_equal(given.reshape(-1), value.astype(given.dtype).reshape(-1)):
                raise Rejected(f"copy: output {name} equals input {source}")
    changed = dict.fromkeys(draft.graph.outputs, False)
    other = inputs_of(draft.graph, case.seed + 5, "whole")
    for buffer in draft.graph.inputs:
        seen = run_guarded(draft.graph, run, {**case.inputs, buffer.name: other[buffer.name]}, "c")
        moved = [not np.allclose(value, exact, 1e-5, 1e-30) for value, exact in zip(seen, case.exact, strict=True)]
        if not any(moved):
            raise Rejected(f"insensitive: no output depends on {buffer.name}")
        for name, is_moved in zip(draft.graph.outputs, moved, strict=True):
            changed[name] |= is_moved
    deaf = [name for name, is_moved in changed.items() if not is_moved]
    if deaf:
        raise Rejected(f"insensitive: output {deaf[0]} depends on no input")


def time_candidates(draft: Draft, halves: Sequence[CHalf], case: Case) -> list[float]:
    """Return the median seconds of a call of each candidate, timed in turns."""
    arrays = {b.name: _guarded(b, case.inputs.get(b.name))[1] for b in (*draft.graph.inputs, *draft.graph.shapes.values())}
    taken: list[list[float]] = [[] for _ in halves]
    counts = [max(1, math.ceil(GO_SECONDS / max(half.repeat(arrays, 2), 1e-8))) for half in halves]
    began = time.perf_counter()
    while len(taken[0]) < 5 or (time.perf_counter() - began < TIMING_SECONDS and len(taken[0]) < 200):
        for half, times, count in zip(halves, taken, counts, strict=True):
            times.append(half.repeat(arrays, count))
    return [float(np.median(times)) for times in taken]
