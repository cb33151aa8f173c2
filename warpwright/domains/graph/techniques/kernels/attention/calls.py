"""The generated functions of attention, by the names that the graph calls them by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from warpwright.domains.graph import kernels


class FlashTiles:
    """The graph's name for the generated function `flash_tiles`."""

    __name__ = "flash_tiles"

    def __call__(self, mask: torch.Tensor, hidden: bool, sizes: list[int], rows: int, keys: int) -> torch.Tensor:
        """Return what the function does: how many tiles each block of rows sees, and which."""
        seen = (~mask if hidden else mask).expand(sizes)
        seen = seen if seen.dim() == 4 else seen[:, None]
        seen = torch.nn.functional.pad(seen, (0, -seen.shape[3] % keys, 0, -seen.shape[2] % rows))
        seen = seen.view(*seen.shape[:2], seen.shape[2] // rows, rows, seen.shape[3] // keys, keys).any(5).any(3)
        order = torch.sort(seen.to(torch.int32), dim=-1, descending=True, stable=True)[1]
        return torch.cat((seen.sum(-1, keepdim=True), order), -1).to(torch.int32)

    @property
    def shared_text(self) -> str:
        """The kernels and functions, which stand in a generated file once."""
        return kernels.text("flash_attention")

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""


class FlashAttention:
    """The graph's name for the generated function `flash_attention`."""

    __name__ = "flash_attention"

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, offset: int, window: int,
        mask: torch.Tensor | None, hidden: bool, fill: float | None, bias: torch.Tensor | None, tiles: torch.Tensor | None, form: str, dead: str,
        products: int, turned: bool, blocks: Sequence[int],
    ) -> torch.Tensor:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        if q.dim() == 4 and k.shape[1] != q.shape[1]:
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        scores = q @ k.mT * scale
        scores = scores if bias is None else scores + bias.to(scores.dtype)
        if mask is not None:
            scores = scores.masked_fill(mask if hidden else ~mask, -math.inf if fill is None else fill)
        away = torch.arange(q.shape[-2], device=q.device)[:, None] + offset - torch.arange(k.shape[-2], device=q.device)
        if causal:
            scores = scores.masked_fill(away < 0, -math.inf)
        if window:
            scores = scores.masked_fill(away >= window, -math.inf)
        weights = scores.relu() if form == "relu" else scores.softmax(-1)
        weights = weights.nan_to_num(0.0) if dead == "zero" else weights
        y = (weights @ v).contiguous()
        return y.transpose(1, 2).contiguous().transpose(1, 2) if turned else y

    @property
    def shared_text(self) -> str:
        """The kernels and functions, which stand in a generated file once."""
        return kernels.text("flash_attention")

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""


FLASH_TILES, FLASH_ATTENTION = FlashTiles(), FlashAttention()


class FlashWide(FlashAttention):
    """The graph's name for the generated function `flash_wide`: the same for heads that no block holds the sums of."""

    __name__ = "flash_wide"
    kernels = (FLASH_ATTENTION,)
    """Whose text it calls."""

    @property
    def shared_text(self) -> str:
        """The kernels and functions, which stand in a generated file once."""
        return kernels.text("flash_wide")


FLASH_WIDE = FlashWide()
