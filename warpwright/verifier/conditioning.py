"""How well the original's answer is conditioned: what it answers when its inputs are moved by a few units in the last place.

A softmax of huge values is ones and zeros, but where two of them nearly tie a rounding error decides. No program's digits mean anything there, and
which of such elements the original itself gets right is luck. So where a program's values are refused, the original is asked again, on inputs that
are moved a little (`examined`):

    by at most one ulp    the worst of the errors stands for the original's own: a few elements may make up all of its error
    by four ulp           elements that move by more than 1 % of the output's size, or far more than the others, are sensitive: they are compared
                          apart from the others, with twice what the moves did to them. The others keep the error of the others.

Integers are sensitive where a move changes them; there, each value that was seen is right. Nothing of this depends on the program, and an answer
that passes without it is never examined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from warpwright.base import Case, Errors
from warpwright.verifier import distributions, oracle
from warpwright.verifier.reference import Answer, Leaf, Original, as_tensor, leaves_of

NEAR_RUNS = 3
FAR_RUNS, FAR_ULPS = 4, 4.0
"""Runs with signs drawn for each element, besides two in which all of them move up, and down."""

SENSITIVE = 1e-2
"""Share of an output's RMS: what moves further is as little known there as a whole answer that is not `conditioned`."""

OUTLIER = 16.0
"""Or so many times the RMS of all moves: at most one element in 256 can, and a few of them may make up all of an answer's error."""

SEED = 0x5EED


def examined(original: Original, case: Case, which: int) -> Answer:
    """Return the answer to a case with the error allowed that the original's conditioning there asks for."""
    answer = original.answer(case, which)
    inputs = original.inputs(case)
    near = [_run(original, moved, which) for moved in _near(inputs, case.seed)]
    far = [_run(original, moved, which) for moved in _far(inputs, case.seed)]
    permitted = original.permitted(inputs, which)
    leaves = []
    for number, leaf in enumerate(answer.leaves):
        close, wide = ([run[number] for run in runs if run[number].shape == leaf.exact.shape] for runs in (near, far))
        others = [*close, permitted[number]] if permitted else close
        leaves.append(_real(original, leaf, others, wide) if leaf.is_real else _integer(leaf, [*close, *wide]))
    return replace(answer, leaves=tuple(leaves))


def _near(inputs: Any, seed: int) -> Iterator[Any]:
    yield inputs
    for run in range(NEAR_RUNS):
        yield distributions.perturb(inputs, seed + 31 * (run + 1))


def _far(inputs: Any, seed: int) -> Iterator[Any]:
    for direction in (1.0, -1.0):
        yield distributions.move(inputs, direction * FAR_ULPS)
    for run in range(FAR_RUNS):
        yield distributions.move(inputs, FAR_ULPS, (seed ^ SEED) + run)


def _run(original: Original, inputs: Any, which: int) -> list[torch.Tensor]:
    return [as_tensor(value).clone() for _, value in leaves_of(original.run_own(inputs, which))]


def _real(original: Original, leaf: Leaf, close: list[torch.Tensor], wide: list[torch.Tensor]) -> Leaf:
    spread = torch.zeros_like(leaf.exact, dtype=torch.float64)
    for value in (*close, *wide):
        spread = torch.maximum(spread, torch.nan_to_num((value.to(leaf.exact.dtype) - leaf.exact).abs(), nan=0.0, posinf=0.0).to(torch.float64))
    sensitive = spread > min(SENSITIVE * leaf.scale.rms, OUTLIER * float(spread.square().mean().sqrt()))
    if not bool(sensitive.any()):
        error = leaf.original
        for value in close:
            error = oracle.worst(error, _finite(oracle.errors_of(value, leaf.exact)))
        return replace(leaf, original=error, allowed=original.allowed(leaf.path, error, leaf.scale, leaf.dtype))
    rest, apart = (_errors(leaf.exact, mask, values) for mask, values in ((~sensitive, close), (sensitive, [*close, *wide])))
    scale = oracle.scale_of(leaf.exact[~sensitive])
    return replace(
        leaf, original=rest, scale=scale, allowed=original.allowed(leaf.path, rest, scale, leaf.dtype), sensitive=sensitive,
        allowed_there=oracle.tolerance(apart, oracle.scale_of(leaf.exact[sensitive]), leaf.dtype),
    )  # fmt: skip


def _errors(exact: torch.Tensor, mask: torch.Tensor, values: list[torch.Tensor]) -> Errors:
    worst = Errors(0.0, 0.0, 0.0)
    for value in values:
        worst = oracle.worst(worst, _finite(oracle.errors_of(value[mask], exact[mask])))
    return worst


def _finite(error: Errors) -> Errors:
    """Leave a run out that overflowed: that it did allows nobody anything."""
    return error if error.max < float("inf") else Errors(0.0, 0.0, 0.0)


def _integer(leaf: Leaf, values: list[torch.Tensor]) -> Leaf:
    assert leaf.own is not None
    seen = [value.to(leaf.own.dtype) for value in values]
    sensitive = torch.zeros_like(leaf.own, dtype=torch.bool)
    for value in seen:
        sensitive |= value != leaf.own
    return replace(leaf, sensitive=sensitive, seen=tuple(value[sensitive] for value in seen)) if bool(sensitive.any()) else leaf
