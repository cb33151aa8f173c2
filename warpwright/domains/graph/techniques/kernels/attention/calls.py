"""The generated functions of attention, by the names that the graph calls them by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from warpwright.domains.graph.kernels import FromFile
from warpwright.templates import standalone


class FlashTiles(FromFile):
    """The graph's name for the generated function `flash_tiles`."""

    __name__, file = "flash_tiles", "flash_attention"

    def __call__(self, mask: torch.Tensor, hidden: bool, sizes: list[int], rows: int, keys: int) -> torch.Tensor:
        """Return what the function does: how many tiles each block of rows sees, and which."""
        seen = (~mask if hidden else mask).expand(sizes)
        seen = seen if seen.dim() == 4 else seen[:, None]
        seen = torch.nn.functional.pad(seen, (0, -seen.shape[3] % keys, 0, -seen.shape[2] % rows))
        seen = seen.view(*seen.shape[:2], seen.shape[2] // rows, rows, seen.shape[3] // keys, keys).any(5).any(3)
        order = torch.sort(seen.to(torch.int32), dim=-1, descending=True, stable=True)[1]
        return torch.cat((seen.sum(-1, keepdim=True), order), -1).to(torch.int32)


_FORMS = {"softmax": lambda scores: scores.softmax(-1), "relu": torch.relu, "sigmoid": torch.sigmoid}


def _spread(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Return keys or values with as many heads as q has."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], 1) if q.dim() == 4 and x.shape[1] != q.shape[1] else x


def _weights(
    q: torch.Tensor, k: torch.Tensor, scale: float, causal: bool, offset: int, window: int, mask: torch.Tensor | None, hidden: bool,
    fill: float | None, bias: torch.Tensor | None, form: str, dead: str, cap: float = 0.0, sinks: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return scores, of 16 bits in float32 as the kernels have them, and weights; heads of `k` are as many as those of `q`. With
    `sinks` the scores have a column more, and the weights have not."""
    kind = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(kind) @ k.mT.to(kind) * scale
    scores = torch.tanh(scores / cap) * cap if cap else scores
    scores = scores if bias is None else scores + bias.to(scores.dtype)
    if mask is not None:
        scores = scores.masked_fill(mask if hidden else ~mask, -math.inf if fill is None else fill)
    away = torch.arange(q.shape[-2], device=q.device)[:, None] + offset - torch.arange(k.shape[-2], device=q.device)
    if causal:
        scores = scores.masked_fill(away < 0, -math.inf)
    if window:
        scores = scores.masked_fill(away >= window, -math.inf)
    scores = scores if sinks is None else torch.cat((scores, sinks.to(kind).expand(*scores.shape[:-1], 1)), -1)
    weights = _FORMS[form](scores)[..., : k.shape[-2]].to(q.dtype)
    return scores, weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0.0) if dead == "zero" else weights


def _laid(y: torch.Tensor, turned: bool) -> torch.Tensor:
    y = y.contiguous()
    return y.transpose(1, 2).contiguous().transpose(1, 2) if turned else y


class FlashAttention(FromFile):
    """The graph's name for the generated function `flash_attention`."""

    __name__ = file = "flash_attention"

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, offset: int, window: int,
        mask: torch.Tensor | None, hidden: bool, fill: float | None, bias: torch.Tensor | None, tiles: torch.Tensor | None, form: str, dead: str,
        products: int, turned: bool, blocks: Sequence[int], cap: float = 0.0, sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        _, weights = _weights(q, _spread(k, q), scale, causal, offset, window, mask, hidden, fill, bias, form, dead, cap, sinks)
        return _laid(weights @ _spread(v, q), turned)


FLASH_TILES, FLASH_ATTENTION = FlashTiles(), FlashAttention()


class FlashWide(FlashAttention):
    """The graph's name for the generated function `flash_wide`: the same for heads that no block holds the sums of."""

    __name__ = file = "flash_wide"
    kernels = (FLASH_ATTENTION,)
    """Whose text it calls."""


FLASH_WIDE = FlashWide()


_HOPPER = '''
def flash_hopper(q, k, v, scale, causal, offset, turned, cap=0.0, sinks=None):
    """Return attention [b, h, nq, d] of 16 bits, by FlashAttention 3's plan on a Hopper GPU; row i sees keys up to i + offset where `causal`."""
    if _flash.takes(q, k, v, causal, offset):
        return _flash.attention(q, k, v, scale, causal, offset, turned, cap, sinks)
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(offset) if causal else None
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) if x.shape[1] != q.shape[1] else x for x in (k, v))
    if not cap and sinks is None:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, seen, scale=scale)
    scores = q.float() @ k.float().mT * scale
    scores = torch.tanh(scores / cap) * cap if cap else scores
    scores = scores if seen is None else scores.masked_fill(~seen, float("-inf"))
    if sinks is None:
        return scores.softmax(-1).to(v.dtype) @ v
    return torch.cat((scores, sinks.float().expand(*scores.shape[:-1], 1)), -1).softmax(-1)[..., :-1].to(v.dtype) @ v
'''


class FlashHopper:
    """The graph's name for the generated function `flash_hopper`."""

    __name__ = "flash_hopper"
    shared_text = standalone.flash() + _HOPPER

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, offset: int, turned: bool, cap: float = 0.0,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        _, weights = _weights(q, _spread(k, q), scale, causal, offset, 0, None, False, None, None, "softmax", "nan", cap, sinks)
        return _laid(weights @ _spread(v, q), turned)

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""


FLASH_HOPPER = FlashHopper()


# --- of a training step ------------------------------------------------------------------------------------------------------------


class FlashForward(FromFile):
    """The graph's name for the generated function `flash_forward`: attention, and what its gradients need of each row."""

    __name__, file = "flash_forward", "flash_backward"
    kernels = (FLASH_ATTENTION,)

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, offset: int, window: int,
        mask: torch.Tensor | None, hidden: bool, fill: float | None, bias: torch.Tensor | None, tiles: torch.Tensor | None, form: str, dead: str,
        products: int, turned: bool, blocks: Sequence[int], cap: float = 0.0, sinks: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        scores, weights = _weights(q, _spread(k, q), scale, causal, offset, window, mask, hidden, fill, bias, form, dead, cap, sinks)
        largest = scores.amax(-1)
        sums = (scores - largest.masked_fill(largest == -math.inf, 0.0)[..., None]).exp().sum(-1)
        ends = torch.stack((largest / math.log(2.0), sums), -1)
        ends = ends if q.dim() == 4 else ends[:, None]
        return _laid(weights @ _spread(v, q), turned), ends.to(torch.promote_types(q.dtype, torch.float32))


class FlashBackward(FromFile):
    """The graph's name for the generated function `flash_backward`: the gradients of q, k and v."""

    __name__ = file = "flash_backward"
    kernels = (FLASH_ATTENTION,)

    def __call__(
        self, dy: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, y: torch.Tensor, ends: torch.Tensor, scale: float, causal: bool,
        offset: int, window: int, mask: torch.Tensor | None, hidden: bool, fill: float | None, bias: torch.Tensor | None, dead: str, products: int,
        blocks: Sequence[int], cap: float = 0.0,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        keys, values = _spread(k, q), _spread(v, q)
        scores, _ = _weights(q, keys, scale, causal, offset, window, mask, hidden, fill, bias, "softmax", "nan", cap)
        ends = ends if q.dim() == 4 else ends[:, 0]
        largest = (ends[..., :1] * math.log(2.0)).masked_fill(ends[..., :1] == -math.inf, 0.0)
        weights = ((scores - largest).exp() / ends[..., 1:]).to(q.dtype)  # of which a sink has a part
        weights = weights.masked_fill(ends[..., 1:] == 0.0, 0.0) if dead == "zero" else weights
        of_scores = weights * (dy @ values.mT - (dy * y).sum(-1, keepdim=True))
        of_scores = of_scores * (1.0 - torch.tanh(q @ keys.mT * (scale / cap)).square()) if cap else of_scores
        if mask is not None and fill is not None:
            of_scores = of_scores.masked_fill(mask if hidden else ~mask, 0.0)
        dq, dk, dv = of_scores @ keys * scale, of_scores.mT @ q * scale, weights.mT @ dy
        if keys is not k:
            dk, dv = (x.view(k.shape[0], k.shape[1], -1, *x.shape[2:]).sum(2) for x in (dk, dv))
        return dq.contiguous(), dk.contiguous(), dv.contiguous()


FLASH_FORWARD, FLASH_BACKWARD = FlashForward(), FlashBackward()


class FlashOfSinks(FlashBackward):
    """The graph's name for the generated function `flash_of_sinks`: the gradient of sinks."""

    __name__ = "flash_of_sinks"

    def __call__(self, dy: torch.Tensor, y: torch.Tensor, ends: torch.Tensor, sinks: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """Return what the function computes, by torch's own calls; `ends` are those of `FlashForward`, whose sums are not scaled."""
        p = (sinks.to(ends.dtype) - ends[..., :1] * math.log(2.0)).exp() / ends[..., 1:]
        p = p.masked_fill(sinks == -math.inf, 0.0)
        return (p * -(dy * y).sum(-1, keepdim=True)).sum_to_size(sinks.shape).to(sinks.dtype)


FLASH_OF_SINKS = FlashOfSinks()
