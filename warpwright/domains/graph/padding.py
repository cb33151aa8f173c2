"""nn.TransformerEncoder with a padding mask, captured as it runs without gradients on a real device: what is padded comes out of its layers as zeros.

There it packs the sequences into a nested tensor, whose padding is zeros afterwards, if the mask hides nothing but the end of each sequence. On the meta
device, under torch.export and with gradients it does not, so a capture of its code alone would give other values at the padding.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from warpwright.errors import CaptureError

_forward = nn.TransformerEncoder.forward


@contextlib.contextmanager
def padded_as_on_devices() -> Iterator[None]:
    """Inside, encoders compute on meta tensors what they compute on a CPU or a GPU."""
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
    if not getattr(self, "mask_check", True):
        raise CaptureError("an nn.TransformerEncoder with mask_check=False packs by the number of hidden places, wherever they are")
    hidden = src_key_padding_mask if src_key_padding_mask.dtype == torch.bool else src_key_padding_mask != 0
    kept = hidden.logical_not()
    places = torch.arange(kept.shape[1], device=kept.device)
    packed = (kept == (places < kept.sum(1, keepdim=True))).all()
    padding = hidden & packed
    added = torch.zeros(hidden.shape, dtype=src.dtype, device=src.device).masked_fill(hidden, -math.inf)
    if src_key_padding_mask.dtype != torch.bool:
        added = src_key_padding_mask.to(src.dtype).masked_fill(padding, -math.inf)
    norm, self.norm = self.norm, None
    try:
        out = _forward(self, src, None, added, is_causal)
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
