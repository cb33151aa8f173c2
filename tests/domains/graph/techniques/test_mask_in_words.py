"""The library's attention with a mask of literals: causal, or none, is said in words; what is hidden otherwise stays a mask."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from exactness import captured
from torch import nn
from torch.nn import functional as F

from warpwright.base import Action
from warpwright.domains.graph.ir import argument, aten, find, run
from warpwright.domains.graph.techniques.kernels.attention.words import MASK_IN_WORDS
from warpwright.errors import NotApplicable

Body = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
ACTION = Action("mask_in_words")
LOWEST = torch.finfo(torch.float32).min


class Written(nn.Module):
    """Attention by a function of q, k and v."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.body(q, k, v)


def drawn(rows: int = 20, keys: int = 20) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(2, heads, n, 8, generator=draw) for heads, n in ((4, rows), (2, keys), (2, keys))]


def call(mask: Callable[[], torch.Tensor]) -> Body:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask(), scale=0.3, enable_gqa=True)


def below(rows: int = 20, keys: int = 20, offset: int = 0) -> torch.Tensor:
    return torch.ones(rows, keys, dtype=torch.bool).tril(offset)


TAKEN = {
    "causal": (call(below), 20, True),
    "causal, for each batch": (call(lambda: below()[None, None].expand(2, 1, 20, 20)), 20, True),
    "causal, more keys than rows": (call(lambda: below(20, 28)), 28, True),
    "-Inf is added": (call(lambda: torch.full((20, 20), -torch.inf).triu(1)), 20, True),
    "the lowest number is added": (call(lambda: torch.where(below(), 0.0, LOWEST)), 20, True),
    "nothing is hidden": (call(lambda: torch.ones(20, 20, dtype=torch.bool)), 20, False),
    "zeros are added": (call(lambda: torch.zeros(2, 1, 1, 20)), 20, False),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_said_in_words(name: str) -> None:
    body, keys, causal = TAKEN[name]
    inputs = drawn(keys=keys)
    before = captured(Written(body), *inputs)
    after = MASK_IN_WORDS.apply(before, ACTION)
    torch.testing.assert_close(run(after, inputs, {}), run(before, inputs, {}), rtol=1e-5, atol=1e-6)
    [said] = find(after, aten.scaled_dot_product_attention.default)
    assert argument(said, "attn_mask") is None and argument(said, "is_causal") is causal
    assert [node.op for node in after.graph.nodes].count("call_function") == 1, "the mask is gone"
    assert not list(MASK_IN_WORDS.sites(after))


def from_inputs(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, q[:, :1, :1, :1] + k[:, :1, None, :, 0] > 0, enable_gqa=True)


LEFT = {
    "a window": (call(lambda: below() & ~below(offset=-4)), 20),
    "a causal mask that ends with the keys": (call(lambda: below(20, 28, 8)), 28),
    "other numbers": (call(lambda: torch.where(below(), -1.0, LOWEST)), 20),
    "a row that sees nothing": (call(lambda: below(offset=-1)), 20),
    "a mask of the inputs": (from_inputs, 20),
    "a factor that is no number": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, below(), scale=math.nan, enable_gqa=True), 20),
    "an infinite factor": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, below(), scale=math.inf, enable_gqa=True), 20),
    "causal by itself": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), 20),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_a_mask(name: str) -> None:
    body, keys = LEFT[name]
    ir = captured(Written(body), *drawn(keys=keys))
    assert not list(MASK_IN_WORDS.sites(ir))
    with pytest.raises(NotApplicable):
        MASK_IN_WORDS.apply(ir, ACTION)
