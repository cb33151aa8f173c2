"""Attention in a training step: `flash_attention` as autograd records it, one call forward and one back.

While a step is recorded, the two are operators of torch.library, which autograd's formulas do not look into; in the graph they are the generated
functions `flash_forward` and `flash_backward`.
"""

from __future__ import annotations

from typing import Any

import torch

from warpwright.domains.graph.capture.training import IN_STEPS, WITH_GRADIENT
from warpwright.domains.graph.techniques.kernels.attention.blocks import backward_shape
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION, FLASH_BACKWARD, FLASH_FORWARD, FLASH_OF_SINKS

NAMESPACE = "warpwright_attention"
_MASKED = "bool causal, int offset, int window, Tensor? mask, bool hidden, float? fill, Tensor? bias"
_FORMS = {
    "forward": f"(Tensor q, Tensor k, Tensor v, float scale, {_MASKED}, Tensor? tiles, str form, str dead, int products, bool turned, "
               "int[] blocks, float cap=0.0, Tensor? sinks=None) -> (Tensor, Tensor)",
    "backward": f"(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor y, Tensor ends, float scale, {_MASKED}, str dead, int products, int[] blocks, "
                "float cap=0.0) -> (Tensor, Tensor, Tensor)",
    "of_sinks": "(Tensor dy, Tensor y, Tensor ends, Tensor sinks) -> Tensor",
}  # fmt: skip


def _define(name: str, call: Any) -> Any:
    """Define an operator that computes what the call does, and return it."""
    torch.library.define(f"{NAMESPACE}::{name}", _FORMS[name])
    torch.library.impl(f"{NAMESPACE}::{name}", ("CPU", "CUDA"))(call.__call__)
    torch.library.register_fake(f"{NAMESPACE}::{name}")(call.__call__)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


_FORWARD, _BACKWARD, _OF_SINKS = (_define(*one) for one in (("forward", FLASH_FORWARD), ("backward", FLASH_BACKWARD), ("of_sinks", FLASH_OF_SINKS)))
IN_STEPS.update({_FORWARD: FLASH_FORWARD, _BACKWARD: FLASH_BACKWARD, _OF_SINKS: FLASH_OF_SINKS})


_SINKS = 14
"""Place of the sinks among what follows `scale`."""


class _Recorded(torch.autograd.Function):
    """They as one function that autograd knows."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, *rest: Any) -> torch.Tensor:
        """Return attention, and keep what its gradients need."""
        y, ends = _FORWARD(q, k, v, scale, *rest)
        mask, bias, sinks = rest[3], rest[6], rest[_SINKS] if len(rest) > _SINKS else None
        ctx.save_for_backward(q, k, v, y, ends, mask, bias, sinks)
        ctx.scale, ctx.rest = scale, rest
        return y  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        """Return the gradients of q, k and v, and of sinks."""
        q, k, v, y, ends, mask, bias, sinks = ctx.saved_tensors
        causal, offset, window, _, hidden, fill, _, _, _, dead, products, _, _, *more = ctx.rest
        blocks = backward_shape(max(q.shape[-1], v.shape[-1]), q.dtype != torch.float32)
        gradients = _BACKWARD(dy, q, k, v, y, ends, ctx.scale, causal, offset, window, mask, hidden, fill, bias, dead, products, blocks, *more[:1])
        of_rest = [None] * (1 + len(ctx.rest))
        if sinks is not None and ctx.needs_input_grad[4 + _SINKS]:
            of_rest[-1] = _OF_SINKS(dy, y, ends, sinks)
        return (*gradients, *of_rest)


WITH_GRADIENT[FLASH_ATTENTION] = _Recorded.apply
