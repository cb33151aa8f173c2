"""Is what a call left in the state right where rounding decides? A row that is as near to one code as to another is counted at either.

Of outputs `conditioning.py` says this; here is the same for what calls leave in buffers. Where a program's are refused, the original is called again
on inputs moved by a few units in the last place, and with what its operators return moved within its rounding. Elements that this changes by far more
than rounding does are compared apart, within twice what the moves did to them (integers: between the least and the largest that was seen); the others
keep the error of the others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpwright.base import Case
from warpwright.verifier.judge import distributions
from warpwright.verifier.judge.oracle import all_finite
from warpwright.verifier.judge.original import rounding
from warpwright.verifier.judge.original.conditioning import FAR_RUNS, FAR_ULPS, NEAR_RUNS, OUTLIER, SEED, SENSITIVE
from warpwright.verifier.judge.original.on_host import RAISED, says_nothing_of_inputs
from warpwright.verifier.judge.original.reference import Original

Within = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], bool]


def states_of_moves(original: Original, case: Case, which: int, names: Sequence[str]) -> dict[str, list[torch.Tensor]]:
    """Return what the original's call leaves of these tensors of its state, for each of some moves of the case's inputs."""
    inputs = original.inputs(case)
    left: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    near = [distributions.perturb(inputs, case.seed + 31 * (run + 1)) for run in range(NEAR_RUNS)]
    far = [distributions.move(inputs, direction * FAR_ULPS) for direction in (1.0, -1.0)]
    far += [distributions.move(inputs, FAR_ULPS, (case.seed ^ SEED) + run) for run in range(FAR_RUNS)]
    runs: list[tuple[Any, contextlib.AbstractContextManager[Any]]] = [(moved, contextlib.nullcontext()) for moved in near + far]
    runs += [(inputs, rounding.Rounded(case.seed + run, original.device)) for run in range(rounding.RUNS)]
    for moved, context in runs:
        try:
            with context:
                original.run_own(moved, which)
        except RAISED as error:
            original.current = None
            if says_nothing_of_inputs(error):
                raise
            continue  # it does not take what was moved
        after = original.model.state_dict()
        for name in names:
            left[name].append(after[name].clone())
    original.current = None
    return left


def is_excused(seen: torch.Tensor, own: torch.Tensor, wide: torch.Tensor, moves: list[torch.Tensor], within: Within) -> bool:
    """Whether a tensor of the state is right but for elements on which rounding decides. `within`: the rule for the others."""
    if seen.dtype != own.dtype or seen.is_complex() or not moves or any(move.shape != own.shape for move in moves):
        return False
    if not own.is_floating_point():  # as integers: float64 has no 2**60 + 1
        counted = torch.stack([own, *moves]).long()
        return bool(((seen.long() >= counted.amin(0)) & (seen.long() <= counted.amax(0))).all())
    seen_at = torch.stack([own, *moves]).double()
    shift = (seen_at - wide.double()).abs().amax(0)
    if not (all_finite(shift) and all_finite(seen)):
        return False
    decided = (shift > SENSITIVE * wide.double().square().mean().sqrt()) | (shift > OUTLIER * shift.square().mean().sqrt())
    there = (seen.double() - wide.double()).abs() <= 2 * shift
    return bool(there[decided].all()) and (bool(decided.all()) or within(seen[~decided], own[~decided], wide[~decided]))
