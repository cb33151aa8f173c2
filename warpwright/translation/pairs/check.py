"""Verify a draft: both halves against float64 on several seeds and value ranges, and a definition that is worth learning from.

A definition is vacuous when an output is constant, not finite, equal to an input or independent of all inputs, or when an input affects no output.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.translation.errors import Rejected
from warpwright.translation.pairs.build import CHalf, Run
from warpwright.translation.pairs.definitions.expr import Graph, Tensor
from warpwright.translation.pairs.definitions.inputs import inputs_of
from warpwright.translation.pairs.definitions.reference import compile_reference
from warpwright.translation.pairs.draft import Draft
from warpwright.translation.tolerance import EPSILON, Tolerance

DRAWS = (("whole", 0), ("middle", 1), ("ends", 2), ("whole", 3))
"""Value range and offset of the seed of each draw of inputs."""

GUARD = 64
"""Guard elements before and after each array, which no program may write."""

SLACK = 4.0
"""A half may err by this multiple of the error of numpy in float32, plus rounding."""

ILL_CONDITIONED = 0.01
"""Share of the mean magnitude: a definition on which float32 numpy errs more is rejected."""

SAMPLE_SECONDS = 2e-4
"""Least time of one timed sample: calls are repeated to reach it, as a call through ctypes takes about 5 us."""

TIMING_SECONDS = 0.03
"""For all candidates of a pair together; each is timed at least five times."""


@dataclass(frozen=True)
class Draw:
    """One draw of inputs, with the answers of the numpy reference in float64 and in float32."""

    seed: int
    where: str
    inputs: Mapping[str, NDArray[Any]]
    exact: tuple[NDArray[Any], ...]
    single: tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Checked:
    """What is recorded of a draft that passed."""

    tolerances: tuple[Tolerance, ...]
    seeds: tuple[tuple[int, str], ...]
    best: int
    """Index of the fastest C candidate."""
    seconds: tuple[float, ...]
    """Median time of one call of each candidate that was timed."""


def seed_of(draft: Draft, added: int) -> int:
    """Return the seed of a draw."""
    return draft.index * 10 + added


def check(draft: Draft, halves: Sequence[CHalf], cuda: Run | None) -> Checked:
    """Return what is recorded of a draft whose halves are right. Raises Rejected for any other."""
    draws = [_draw(draft, where, added) for where, added in DRAWS]
    tolerances = tuple(_tolerance(draft.graph, draws, k) for k in range(len(draft.graph.outputs)))
    _not_vacuous(draft, draws[0], halves[0])
    right = [number for number, half in enumerate(halves) if _passes(draft, half, draws[:1], tolerances, f"c candidate {number}")]
    seconds = time_candidates(draft, [halves[number] for number in right], draws[0])
    best = right[min(range(len(right)), key=lambda k: seconds[k])]
    _passes(draft, halves[best], draws, tolerances, f"c candidate {best}")
    if cuda is not None:
        _passes(draft, cuda, draws, tolerances, "cuda")
    return Checked(tolerances, tuple((draw.seed, draw.where) for draw in draws), best, tuple(seconds))


def _draw(draft: Draft, where: str, added: int) -> Draw:
    seed = seed_of(draft, added)
    inputs, function = inputs_of(draft.graph, seed, where), compile_reference(draft.reference)
    with np.errstate(all="ignore"):
        return Draw(seed, where, inputs, function(**inputs), function(**inputs, real=np.float32))


def _tolerance(graph: Graph, draws: Sequence[Draw], k: int) -> Tolerance:
    """Return the tolerance of output `k`. Raises Rejected where the output is not finite or float32 is too coarse for it."""
    if graph.tensor(graph.outputs[k]).dtype != "float32":
        return Tolerance(0.0, 0.0)
    longest = max([1, *(int(np.prod([e for _, e in one.axes])) for stage in graph.stages for one in stage.reductions)])
    longest = max([longest, *(stage.axes[-1][1] for stage in graph.stages if stage.scan)])
    relative, absolute = EPSILON * (32 + 4 * longest**0.5), 0.0
    for draw in draws:
        exact, single = draw.exact[k], draw.single[k]
        if not (np.isfinite(exact).all() and np.isfinite(single).all()) or np.abs(exact).max() > 1e30:
            raise Rejected(f"not_finite: output {graph.outputs[k]} on values of the range {draw.where}")
        error, mean = float(np.abs(single - exact).max()), float(np.abs(exact).mean())
        if error > ILL_CONDITIONED * mean:
            raise Rejected(f"ill_conditioned: float32 numpy errs by {error:.2g} of {mean:.2g} in output {graph.outputs[k]}")
        absolute = max(absolute, SLACK * error + relative * mean)
    return Tolerance(absolute, relative)


# --- running ---------------------------------------------------------------------------------------------------------------------------


def _guarded(tensor: Tensor, value: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an array with guards around it, and the array alone (64-byte aligned). Without a value it holds NaN or -77, to expose gaps."""
    fill = np.nan if tensor.dtype == "float32" else -77
    memory = np.empty(tensor.size + 2 * GUARD + 64, tensor.dtype)
    start = (-memory.ctypes.data % 64) // memory.itemsize
    whole = memory[start : start + tensor.size + 2 * GUARD]
    whole[:] = fill
    inner = whole[GUARD : GUARD + tensor.size]
    if value is not None:
        inner[:] = value.reshape(-1)
    return whole, inner.reshape(tensor.shape)


def run_guarded(graph: Graph, run: Run, inputs: Mapping[str, NDArray[Any]], who: str) -> tuple[NDArray[Any], ...]:
    """Return the outputs of a program, in the order of the graph's. Raises Rejected where it wrote outside its arrays or changed an input."""
    wholes, arrays = {}, {}
    for tensor in (*graph.inputs, *graph.shapes.values()):
        wholes[tensor.name], arrays[tensor.name] = _guarded(tensor, inputs.get(tensor.name))
    run(arrays)
    for name, whole in wholes.items():
        edges = np.concatenate([whole[:GUARD], whole[-GUARD:]])
        if not (np.isnan(edges).all() if whole.dtype.kind == "f" else (edges == -77).all()):
            raise Rejected(f"out_of_bounds: {who} wrote beside {name}")
    for name, value in inputs.items():
        if not np.array_equal(arrays[name], value):
            raise Rejected(f"input_changed: {who} wrote to {name}")
    return tuple(arrays[name] for name in graph.outputs)


def _passes(draft: Draft, run: Run, draws: Sequence[Draw], tolerances: Sequence[Tolerance], who: str) -> bool:
    """Return True. Raises Rejected where an output is wrong on one of the draws."""
    for draw in draws:
        outputs = run_guarded(draft.graph, run, draw.inputs, who)
        for name, value, exact, tolerance in zip(draft.graph.outputs, outputs, draw.exact, tolerances, strict=True):
            error = np.abs(value.astype(np.float64) - exact)
            if not tolerance.allows(error, exact).all():
                raise Rejected(f"wrong: {who}, output {name} is off by {np.nanmax(error):.3g} (allowed {tolerance.absolute:.3g}), range {draw.where}")
    return True


def _not_vacuous(draft: Draft, draw: Draw, run: Run) -> None:
    """Raise Rejected for a definition that a wrong program could satisfy."""
    for name, value in zip(draft.graph.outputs, draw.exact, strict=True):
        if value.size > 1 and float(value.max() - value.min()) <= 1e-6 * max(1e-6, float(np.abs(value).max())):
            raise Rejected(f"constant: output {name}")
        for source, array in draw.inputs.items():
            if array.size == value.size and np.array_equal(array.reshape(-1), value.astype(array.dtype).reshape(-1)):
                raise Rejected(f"copy: output {name} equals input {source}")
    changed = dict.fromkeys(draft.graph.outputs, False)
    other = inputs_of(draft.graph, draw.seed + 5, "whole")
    for tensor in draft.graph.inputs:
        outputs = run_guarded(draft.graph, run, {**draw.inputs, tensor.name: other[tensor.name]}, "c")
        moved = [not np.allclose(value, exact, 1e-5, 1e-30) for value, exact in zip(outputs, draw.exact, strict=True)]
        if not any(moved):
            raise Rejected(f"insensitive: no output depends on {tensor.name}")
        for name, is_moved in zip(draft.graph.outputs, moved, strict=True):
            changed[name] |= is_moved
    independent = [name for name, is_moved in changed.items() if not is_moved]
    if independent:
        raise Rejected(f"insensitive: output {independent[0]} depends on no input")


def time_candidates(draft: Draft, halves: Sequence[CHalf], draw: Draw) -> list[float]:
    """Return the median seconds of one call of each candidate, timed in turn."""
    arrays = {b.name: _guarded(b, draw.inputs.get(b.name))[1] for b in (*draft.graph.inputs, *draft.graph.shapes.values())}
    samples: list[list[float]] = [[] for _ in halves]
    counts = [max(1, math.ceil(SAMPLE_SECONDS / max(half.repeat(arrays, 2), 1e-8))) for half in halves]
    began = time.perf_counter()
    while len(samples[0]) < 5 or (time.perf_counter() - began < TIMING_SECONDS and len(samples[0]) < 200):
        for half, times, count in zip(halves, samples, counts, strict=True):
            times.append(half.repeat(arrays, count))
    return [float(np.median(times)) for times in samples]
