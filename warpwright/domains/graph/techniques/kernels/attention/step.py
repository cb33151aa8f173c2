"""Attention in a training step: `flash_attention` as autograd records it, one call forward and one back.

While a step is recorded, the two are operators of torch.library, which autograd's formulas do not look into; in the graph they are the generated
functions `flash_forward` and `flash_backward`.
"""

from __future__ import annotations

from typing import Any

import torch

from warpwright.domains.graph.techniques.kernels.attention.blocks import backward_shape
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION, FLASH_BACKWARD, FLASH_FORWARD
from warpwright.domains.graph.training import IN_STEPS, WITH_GRADIENT

NAMESPACE = "warpwright_attention"
_MASKED = "bool causal, int offset, int window, Tensor? mask, bool hidden, float? fill, Tensor? bias"
_FORMS = {
    "forward": f"(Tensor q, Tensor k, Tensor v, float scale, {_MASKED}, Tensor? tiles, str form, str dead, int products, bool turned, "
               "int[] blocks) -> (Tensor, Tensor)",
    "backward": f"(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor y, Tensor ends, float scale, {_MASKED}, str dead, int products, int[] blocks) -> "
                "(Tensor, Tensor, Tensor)",
}  # fmt: skip


def _define(name: str, call: Any) -> Any:
    """Define an operator that computes what the call does, and return it."""
    torch.library.define(f"{NAMESPACE}::{name}", _FORMS[name])
    torch.library.impl(f"{NAMESPACE}::{name}", ("CPU", "CUDA"))(call.__call__)
    torch.library.register_fake(f"{NAMESPACE}::{name}")(call.__call__)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


_FORWARD, _BACKWARD = _define("forward", FLASH_FORWARD), _define("backward", FLASH_BACKWARD)
IN_STEPS.update({_FORWARD: FLASH_FORWARD, _BACKWARD: FLASH_BACKWARD})


class _Recorded(torch.autograd.Function):
    """The two as one function that autograd knows."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, *rest: Any) -> torch.Tensor:
        """Return attention, and keep what its gradients need."""
        y, ends = _FORWARD(q, k, v, scale, *rest)
        mask, bias = rest[3], rest[6]
        ctx.save_for_backward(q, k, v, y, ends, mask, bias)
        ctx.scale, ctx.rest = scale, rest
        return y  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        """Return the gradients of q, k and v."""
        q, k, v, y, ends, mask, bias = ctx.saved_tensors
        causal, offset, window, _, hidden, fill, _, _, _, dead, products, _, _ = ctx.rest
        blocks = backward_shape(max(q.shape[-1], v.shape[-1]), q.dtype != torch.float32)
        gradients = _BACKWARD(dy, q, k, v, y, ends, ctx.scale, causal, offset, window, mask, hidden, fill, bias, dead, products, blocks)
        return (*gradients, *[None] * (1 + len(ctx.rest)))


WITH_GRADIENT[FLASH_ATTENTION] = _Recorded.apply
