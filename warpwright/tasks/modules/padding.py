"""nn.TransformerEncoder with a padding mask as it runs without gradients on a real device, where that is not what its code does.

It packs the sequences into a nested tensor, if the mask hides nothing but the end of each, and what was padded comes out of its layers as zeros. On
the meta device, under torch.export and inside a mode such as the oracle's it does not pack, and gives other values at the padding.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

_forward = nn.TransformerEncoder.forward


@contextlib.contextmanager
def padded_as_on_devices() -> Iterator[None]:
    """Inside, encoders compute what they compute on a CPU or a GPU outside of any mode."""
    nn.TransformerEncoder.forward = _padded  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        nn.TransformerEncoder.forward = _forward  # type: ignore[method-assign]


def _padded(
    self: nn.TransformerEncoder, src: torch.Tensor, mask: torch.Tensor | None = None, src_key_padding_mask: torch.Tensor | None = None,
    is_causal: bool | None = None,
) -> torch.Tensor:  # fmt: skip
    if src_key_padding_mask is None or mask is not None or not _packs(self, src):
        return _forward(self, src, mask, src_key_padding_mask, is_causal)
    kept = src_key_padding_mask.logical_not()
    within = torch.arange(kept.shape[1], device=kept.device) < kept.sum(1, keepdim=True)
    padding, added = within.logical_not(), torch.zeros(kept.shape, dtype=src.dtype, device=src.device)
    packed_mask = added.masked_fill(padding, -math.inf)
    if getattr(self, "mask_check", True):
        packed = (kept == within).all()
        padding = padding & packed
        is_bool = src_key_padding_mask.dtype == torch.bool
        plain_mask = added.masked_fill(src_key_padding_mask, -math.inf) if is_bool else src_key_padding_mask.to(src.dtype)
        packed_mask = torch.where(packed, packed_mask, plain_mask)
    norm, self.norm = self.norm, None
    try:
        out = _forward(self, src, None, packed_mask, is_causal)
    finally:
        self.norm = norm
    out = out.masked_fill(padding.unsqueeze(-1), 0.0)
    return norm(out) if norm is not None else out


def _packs(self: nn.TransformerEncoder, src: torch.Tensor) -> bool:
    """Would the encoder pack sequences, were the mask one of ends alone?"""
    first: Any = self.layers[0]
    usable = torch.backends.mha.get_fastpath_enabled() and getattr(self, "use_nested_tensor", False) and not first.training
    wanted = torch.is_grad_enabled() and (src.requires_grad or any(parameter.requires_grad for parameter in first.parameters()))
    return bool(usable) and src.dim() == 3 and not torch.is_autocast_enabled() and not wanted
