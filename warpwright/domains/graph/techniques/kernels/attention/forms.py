"""What is known of an attention that was read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import dtype, shape


@dataclass(frozen=True)
class Mask:
    """Which scores are hidden: those where `node` is False, or True where it says what is `hidden`; `fill` (None: -Inf) stands in their place."""

    node: fx.Node
    hidden: bool
    fill: float | None = None


@dataclass(frozen=True)
class Attention:
    """weights(scale q k^T + biases, masked) v, where cap tanh(scale q k^T / cap) may stand in the product's place."""

    q: fx.Node
    k: fx.Node
    v: fx.Node
    lead: tuple[int, ...]
    """Axes of the scores before rows and columns: batch and heads, or both in one. q, k and v may have others of as many elements."""
    scale: float
    transposed: bool = False
    """Is `k` already k^T?"""
    factors: tuple[fx.Node, ...] = ()
    """Tensors that scores are multiplied with, the same for all places of a head."""
    biases: tuple[fx.Node, ...] = ()
    masks: tuple[Mask, ...] = ()
    causal: bool = False
    offset: int = 0
    window: int = 0
    cap: float = 0.0
    """Above 0: of the scores, before biases and masks."""
    sinks: fx.Node | float | None = None
    """Of each row one score more, of no value: [batch, heads, rows, 1], what broadcasts to that, or a number."""
    form: str = "softmax"
    dead: str = "nan"

    def shape_of(self, node: fx.Node) -> tuple[int, ...]:
        """Return the sizes of q, k or v with the scores' leading axes; those that have fewer heads keep their own."""
        own = shape(node)
        return (*self.lead, *own[-2:]) if math.prod(own[:-2]) == math.prod(self.lead) else own

    @property
    def sizes(self) -> list[int]:
        """Of the scores."""
        return [*self.lead, shape(self.q)[-2], shape(self.k)[-1 if self.transposed else -2]]

    @property
    def heads(self) -> int:
        """Of the keys."""
        return self.shape_of(self.k)[1] if len(self.sizes) == 4 else 1


def is_real(node: Any) -> bool:
    """Does it hold real numbers? A conversion to integers, to eight bits or to bool gives others."""
    return dtype(node) in (torch.float64, torch.float32, torch.bfloat16, torch.float16)
