"""Attention as models hand it over: heads that share keys and are spread before, more axes than four, 16 bits that are widened for the scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from exactness import assert_equal_in_double, captured
from torch import nn
from torch.nn import functional as F

from tests.domains.graph import models
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.ir import GraphIR, run, shape
from warpwright.domains.graph.techniques.kernels.attention import FlashAttentions, FlashHoppers, masks, technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION, FLASH_HOPPER
from warpwright.search import ladder
from warpwright.search.moves import Moves

Body = Callable[..., torch.Tensor]
HOPPER = Action("flash_hopper")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_FLOPS", 0.0)


class Written(nn.Module):
    """Attention by a function of q, k and v."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.body(q, k, v)


def drawn(rows: int = 72, heads: int = 4, kv: int = 2, kind: torch.dtype = torch.bfloat16, d: int = 16) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(2, count, n, d, generator=draw).to(kind) for count, n in ((heads, rows), (kv, 80), (kv, 80))]


def repeat_kv(x: torch.Tensor, times: int) -> torch.Tensor:
    b, heads, n, d = x.shape
    return x[:, :, None, :, :].expand(b, heads, times, n, d).reshape(b, heads * times, n, d)


def written(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.transpose(2, 3) * 0.25).softmax(-1) @ v


def call_of(body: Body, inputs: list[torch.Tensor]) -> tuple[Any, GraphIR]:
    before = captured(Written(body), *inputs)
    after = FlashHoppers().apply(before, HOPPER)
    assert_equal_in_double(before, after, inputs, Written(body))
    [call] = [node for node in after.graph.nodes if node.target is FLASH_HOPPER]
    return call, after


SPREAD: dict[str, tuple[Body, int]] = {
    "the library's call": (lambda q, k, v: F.scaled_dot_product_attention(q, repeat_kv(k, 2), repeat_kv(v, 2), is_causal=True), 2),
    "written out": (lambda q, k, v: written(q, repeat_kv(k, 2), repeat_kv(v, 2)), 2),
    "repeat_interleave": (lambda q, k, v: F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, -3)), 2),
    "interleaved beside an axis": (
        lambda q, k, v: F.scaled_dot_product_attention(q, *(x[:, :, None].repeat_interleave(2, 2).view(2, 4, 80, 16) for x in (k, v))), 2
    ),
    "flatten": (lambda q, k, v: F.scaled_dot_product_attention(q, *(x[:, :, None].expand(2, 2, 2, 80, 16).flatten(1, 2) for x in (k, v))), 2),
    "one head, expanded": (lambda q, k, v: F.scaled_dot_product_attention(q, k.expand(2, 4, 80, 16), v.expand(-1, 4, -1, -1)), 1),
    "one head, repeated": (lambda q, k, v: F.scaled_dot_product_attention(q, k.repeat(1, 4, 1, 1), v.repeat(1, 4, 1, 1)), 1),
    "one head, broadcast by the call": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SPREAD)
def test_keys_are_read_as_they_are_before_they_are_spread(name: str) -> None:
    body, kv = SPREAD[name]
    call, after = call_of(body, drawn(kv=kv))
    assert [shape(x)[1] for x in call.args[:3]] == [4, kv, kv]
    assert not [node for node in after.graph.nodes if node.op == "call_function" and node.target is not FLASH_HOPPER], "nothing else is left"


KEPT: dict[str, Body] = {
    "one head after the other, several times": lambda q, k, v: F.scaled_dot_product_attention(q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)),
    "keys in another order": lambda q, k, v: F.scaled_dot_product_attention(
        q, *(x[:, None].expand(2, 2, 2, 80, 16).reshape(2, 4, 80, 16) for x in (k, v))
    ),
    "the values alone": lambda q, k, v: F.scaled_dot_product_attention(q, torch.cat((k, k), 1), repeat_kv(v, 2)),
    "rows": lambda q, k, v: F.scaled_dot_product_attention(q, *(torch.cat((x, x), 1).repeat_interleave(2, 2) for x in (k, v))),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_spread_otherwise_is_read_as_it_is(name: str) -> None:
    call, _ = call_of(KEPT[name], drawn())
    assert shape(call.args[1])[1] == 4


def test_a_call_of_five_axes_or_three_has_no_kernel_in_the_library() -> None:
    five = [x.unflatten(0, (2, 1)).expand(2, 3, *x.shape[1:]) for x in drawn(kv=4)]
    call, after = call_of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), five)
    assert shape(call) == (6, 4, 72, 16) and shape(after.results[0]) == (2, 3, 4, 72, 16)  # type: ignore[arg-type]
    turned = captured(Written(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).transpose(1, 2)), *five)
    assert_equal_in_double(turned, FlashHoppers().apply(turned, HOPPER), five, Written(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).mT))
    plain = Written(lambda q, k, v: F.scaled_dot_product_attention(q, k, v))
    sites = [bool(list(FlashAttentions().sites(captured(plain, *inputs)))) for inputs in (five, [x[0] for x in drawn(kv=4)], drawn(kv=4))]
    assert sites == [True, True, False]


def test_scores_in_float32_of_16_bits() -> None:
    inputs = drawn(kv=4)
    before = captured(Written(lambda q, k, v: ((q.float() @ k.float().mT) * 0.25).softmax(-1).to(q.dtype) @ v), *inputs)
    after = FlashHoppers().apply(before, HOPPER)
    [call] = [node for node in after.graph.nodes if node.op == "call_function"]
    assert call.target is FLASH_HOPPER and call.args[3] == 0.25
    torch.testing.assert_close(run(after, inputs, {}), run(before, inputs, {}), rtol=0.02, atol=0.02)
    both = captured(Written(lambda q, k, v: ((q.float() @ k.float().mT).softmax(-1) @ v.float()).to(q.dtype)), *drawn(kv=4))
    assert not list(FlashHoppers().sites(both)), "values in float32 are multiplied in float32"


def test_a_factor_in_float32_leaves_widened_numbers_as_they_are() -> None:
    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        once = ((q.float() @ k.float().mT) * torch.full((4, 1, 1), 0.3)).softmax(-1).to(v.dtype) @ v
        return once + (q.float() @ k.float().mT).softmax(-1).to(v.dtype) @ v

    ir = captured(Written(body), *drawn(kv=4))
    [action] = FlashAttentions().sites(ir)
    calls = [node for node in FlashAttentions().apply(ir, action).graph.nodes if node.target is FLASH_ATTENTION]
    assert len(calls) == 1, "the other one"


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_lowest_float32_in_widened_scores(kind: torch.dtype) -> None:
    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (q.float() @ k.float().mT).masked_fill(k[:, :, None, :, 0] > 0, torch.finfo(torch.float32).min)
        return scores.softmax(-1).to(v.dtype) @ v

    inputs = drawn(kv=4, kind=kind)
    ir = captured(Written(body), *inputs)
    [action] = FlashAttentions().sites(ir)
    after = FlashAttentions().apply(ir, action)
    torch.testing.assert_close(run(after, inputs, {}), run(ir, inputs, {}), rtol=1e-2, atol=1e-2)


def test_a_mask_that_layers_share_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        seen = torch.ones(72, 80, dtype=torch.bool).tril()
        for _ in range(3):
            q = F.scaled_dot_product_attention(q, k, v, seen)
        return q

    looked, form = list[Any](), masks._form
    monkeypatch.setattr(masks, "_form", lambda one, sizes: looked.append(one) or form(one, sizes))
    masks._FORMS.clear()
    ir = captured(Written(body), *drawn(kv=4))
    assert list(FlashHoppers().sites(ir)) == [HOPPER] and len(looked) == 1
    assert [node.args[4] for node in FlashHoppers().apply(ir, HOPPER).graph.nodes if node.target is FLASH_HOPPER] == [True] * 3
    assert len(looked) == 1, "the graph's copies have the same mask"


def test_first_of_all_where_the_librarys_call_is_causal_in_16_bits(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, BLOCK.replace("WINDOW", ""), "block"), "cuda")
    assert next(ladder.search(space, Random(0), 4))[0][0] == HOPPER
    space = graph.space(models.task(tmp_path, BLOCK.replace("WINDOW", "y = F.scaled_dot_product_attention(y, k, v, near)"), "window"), "cuda")
    pairs = [[action.technique for action in pair] for pair in ladder._joined(Moves(space), [(HOPPER,)])]
    assert ["flash_hopper", "flash_attention"] in pairs, "a window is what it leaves"


BLOCK = models.HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inwards = nn.Linear(256, 768, dtype=torch.bfloat16)

    def forward(self, x):
        q, k, v = (y.view(2, 512, 4, 64).transpose(1, 2) for y in self.inwards(x).split(256, -1))
        near = torch.ones(512, 512, dtype=torch.bool).tril() & ~torch.ones(512, 512, dtype=torch.bool).tril(-64)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        WINDOW
        return y.transpose(1, 2).reshape(2, 512, 256)


def get_inputs():
    return [torch.randn(2, 512, 256, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
'''


def test_one_row_whose_keys_were_spread_is_ours_in_16_bits() -> None:
    body = Written(lambda q, k, v: F.scaled_dot_product_attention(q, repeat_kv(k, 2), repeat_kv(v, 2)))
    once, many = captured(body, *drawn(rows=1)), captured(body, *drawn(rows=72))
    [action] = FlashAttentions().sites(once)
    [call] = [node for node in FlashAttentions().apply(once, action).graph.nodes if node.target is FLASH_ATTENTION]
    assert shape(call.args[1]) == (2, 2, 80, 16)
    assert not list(FlashAttentions().sites(many)), "of many rows the library's call is faster"
    wide = [x.float() for x in drawn(rows=72, d=160)]
    assert not list(FlashAttentions().sites(captured(body, *wide))), "it has a kernel for keys that were spread"
