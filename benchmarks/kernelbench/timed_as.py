"""What a first program is timed with: the task's own weights and inputs, or such as a verdict's timed calls have.

    own       the weights that the model's constructor draws, and the same inputs in every call
    judged    weights as the judge draws them for the state of timed calls, and in every call another variant of the inputs, as in a stream

The judge's weights are normal numbers of the mean and deviation of the constructor's, which are uniform ones in torch's layers: the largest of a row
are 3 to 4 deviations away in place of 1.7. Whoever scales by the largest, or looks at the values otherwise, may have more to do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

KINDS = ("own", "judged")
VARIANTS, VARIANT_BYTES = 16, 2e9
"""Inputs that take turns, and how many bytes all of them may take: more than fit in L2, where they are not small."""
SEED = 811


def state(model: Any, kind: str) -> Mapping[str, Any]:
    """Return a copy of a model's state, or one as the judge draws for timed calls."""
    from warpwright.verifier.judge import distributions
    from warpwright.verifier.judge_client import TIMED_STATE

    own = distributions.copied_state(model.state_dict())
    if kind == "own":
        return own
    return distributions.random_state(own, {name for name, _ in model.named_buffers()}, SEED + 104729 * (TIMED_STATE + 1))


def given(inputs: Sequence[Any], kind: str) -> list[list[Any]]:
    """Return the inputs of calls in turn."""
    import torch

    from warpwright.workers.tensors import variants

    tensors = [x for x in torch.utils._pytree.tree_leaves(list(inputs)) if isinstance(x, torch.Tensor)]
    count = min(VARIANTS, int(VARIANT_BYTES // max(sum(x.nbytes for x in tensors), 1)))
    if kind == "own" or count < 2 or not all(variants.is_dense(x.shape, x.stride()) for x in tensors):
        return [list(inputs)]
    return [variants.vary(list(inputs), seed, variants.like(list(inputs))) for seed in range(count)]


def calls(programs: Mapping[str, Callable[..., object]], turns: Sequence[Sequence[Any]]) -> dict[str, Callable[[], object]]:
    """Return what calls each program, with the next inputs each time."""

    def in_turn(program: Callable[..., object]) -> Callable[[], object]:
        of_calls = itertools.cycle(turns)
        return lambda: program(*next(of_calls))

    return {name: in_turn(program) for name, program in programs.items()}
