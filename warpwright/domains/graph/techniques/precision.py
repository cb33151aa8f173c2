"""Precision: what a search tries when rewrites failed by their error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import GraphIR, dtype, find
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED
from warpwright.errors import NotApplicable
from warpwright.space import Traits


@dataclass(frozen=True)
class FullPrecisionConvolutions:
    """conv(x, W) with torch's default flags (TF32 on tensor cores)  ->  the same in full float32.

    A rewrite that sums before it convolves has fewer, larger terms to round: in TF32 it may err more than the original did (KernelBench
    L2-13: 1.5 times the RMS, 2.5 times the largest error), while the convolution that is left is too small for its speed to matter. And where the
    original's convolution had no TF32 kernel, one with a merged weight may have (L2-65).
    """

    name: str = "full_precision_convolutions"
    traits: ClassVar[Traits] = Traits("S", more_exact=True)
    """What a search tries when rewrites failed by their error."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action when a convolution's input or weight is computed: one of the user's input and a parameter is as the original has it."""
        convolutions = [] if ir.scheduled(self.name) or ir.scheduled("cuda_graph") else _in_float32(ir)
        if any(isinstance(operand, fx.Node) and operand.op != "placeholder" for node in convolutions for operand in node.args[:2]):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with TF32 off in its convolutions."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        return ir.with_schedule(action)


def _in_float32(ir: GraphIR) -> list[fx.Node]:
    return [node for node in find(ir, *CONVOLUTIONS, *TRANSPOSED) if dtype(node) == torch.float32]


TECHNIQUES = (FullPrecisionConvolutions(),)
