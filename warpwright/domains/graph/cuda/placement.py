"""How the tensors of a fused CUDA kernel lie in memory: a slice, a chunk, a transposed or channels-last tensor is read as it is, without a copy.

That takes one order of loops in which every tensor is contiguous, or broadcast, along the innermost axis. Where there is none, a tensor is copied
before the kernel runs, as are those whose elements overlap.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from warpwright.domains.graph.cpp.layout import choose
from warpwright.domains.graph.cpp.program import Program, Unsupported
from warpwright.domains.graph.ir import value

Strides = tuple[int, ...] | None
"""Of a tensor; None: it is contiguous."""


@dataclass(frozen=True)
class Placement:
    """How operands and results lie, operands first."""

    strides: tuple[Strides, ...] = ()
    offsets: Mapping[int, int] = field(default_factory=dict)
    """Operand that is not contiguous -> where it begins in its storage, in elements."""

    def of(self, tensor: int) -> Strides:
        """Return the strides that the kernel expects."""
        return self.strides[tensor] if self.strides else None


CONTIGUOUS = Placement()


def arranged(program: Program) -> Placement:
    """Return how the tensors of a finished program lie, as far as one kernel can take them so."""
    tensors = [value(node) for node, _ in (*program.operands, *program.outputs)]
    wanted = [_strides(tensor) for tensor in tensors]
    if not any(wanted):
        return CONTIGUOUS
    inputs = len(program.operands)
    alone = [steps if steps and _fits(program, [None] * t + [steps]) else None for t, steps in enumerate(wanted)]
    for tried in (wanted, alone, [steps if t < inputs else None for t, steps in enumerate(alone)]):
        tried = _agreed(program, tried)
        if any(tried) and _fits(program, tried):
            offsets = {t: int(tensors[t].storage_offset()) for t, steps in enumerate(tried[:inputs]) if steps}
            return Placement(tuple(tried), offsets)
    return CONTIGUOUS


def _agreed(program: Program, strides: Sequence[Strides]) -> list[Strides]:
    """Return the strides without those of a tensor that is read in several ways, if one of them cannot take it so."""
    refused = {node for (node, _), steps in zip(program.operands, strides, strict=False) if steps is None}
    kept = [None if node in refused else steps for (node, _), steps in zip(program.operands, strides, strict=False)]
    return [*kept, *strides[len(kept) :]]


def _fits(program: Program, strides: Sequence[Strides]) -> bool:
    try:
        choose(program, strides)
    except Unsupported:
        return False
    return True


def _strides(tensor: torch.Tensor) -> Strides:
    """Return the strides of a tensor that is not contiguous, and whose elements do not overlap."""
    if tensor.is_contiguous():
        return None
    steps = sorted((step, size) for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1)
    apart = all(step >= below * size for (below, size), (step, _) in itertools.pairwise(steps))
    return tuple(tensor.stride()) if apart and steps[0][0] > 0 else None
