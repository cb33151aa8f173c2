"""How the tensors of a fused CUDA kernel lie in memory: a slice, a chunk, a transposed or channels-last tensor is read as it is, without a copy.

That takes one order of loops in which every tensor is contiguous, or broadcast, along the innermost axis, or for programs without reductions two:
what lies in another order than the results is turned in shared memory. Where there is none, a tensor is copied before the kernel runs, as are those
whose elements overlap.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from warpwright.domains.graph.cpp.layout import Layout, choose, crossed
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


    def layout(self, program: Program) -> Layout:
        """Return the loops of a program whose tensors lie so; Unsupported where there are none."""
        try:
            return choose(program, self.strides)
        except Unsupported:
            if not self.strides:
                raise
            return crossed(program, self.strides)


CONTIGUOUS = Placement()


def arranged(program: Program, plain: Collection[str] = ()) -> Placement:
    """Return how the tensors of a finished program lie, as far as one kernel can take them so. `plain`: nodes whose results shall be contiguous."""
    inputs = len(program.operands)
    tensors = [value(node) for node, _ in (*program.operands, *program.outputs)]
    natural = [_strides(tensor) for tensor in tensors]
    natural[inputs:] = [None if node.name in plain else steps for (node, _), steps in zip(program.outputs, natural[inputs:], strict=True)]
    for results in dict.fromkeys((tuple(natural[inputs:]), (None,) * len(program.outputs))):
        one_by_one = [(*([None] * t), steps, *([None] * (inputs - t - 1))) for t, steps in enumerate(natural[:inputs])]
        alone = [steps[t] if steps[t] and _fits(program, (*steps, *results)) else None for t, steps in enumerate(one_by_one)]
        for operands in (natural[:inputs], alone):
            tried = (*_agreed(program, operands), *results)
            if any(tried) and _fits(program, tried):
                return Placement(tried, {t: int(tensors[t].storage_offset()) for t, steps in enumerate(tried[:inputs]) if steps})
    return CONTIGUOUS


def _agreed(program: Program, strides: Sequence[Strides]) -> list[Strides]:
    """Return the operands' strides without those of a tensor that is read in several ways, if one of them cannot take it so."""
    refused = {node for (node, _), steps in zip(program.operands, strides, strict=True) if steps is None}
    return [None if node in refused else steps for (node, _), steps in zip(program.operands, strides, strict=True)]


def _fits(program: Program, strides: Sequence[Strides]) -> bool:
    try:
        Placement(tuple(strides)).layout(program)
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
