"""Attention by a kernel of our own: what is read, in float64; the kernel by Triton's interpreter where Triton is installed."""

from __future__ import annotations

import ast
import importlib
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from exactness import assert_equal_in_double, captured, randomised
from interpreter import INTERPRETER
from torch import nn
from torch.nn import functional as F

from warpwright.base import Action
from warpwright.domains.graph import kernels
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.algebra.einsum import EINSUM
from warpwright.domains.graph.techniques.kernels.attention import blocks as attention
from warpwright.domains.graph.techniques.kernels.attention import technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION, FLASH_TILES, FLASH_WIDE
from warpwright.domains.graph.techniques.kernels.attention.technique import FlashAttentions
from warpwright.domains.graph.text import straight

TECHNIQUE = FlashAttentions()
STRICT = Action(TECHNIQUE.name, params=(("precision", "float32"),))
NAMES = ("q", "k", "v", "scale", "causal", "offset", "window", "mask", "hidden", "fill", "bias", "tiles", "form", "dead", "products", "turned",
         "blocks")  # fmt: skip


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_FLOPS", 0.0)


class Written(nn.Module):
    """Attention by a function of q, k, v [2, 3, n, 8], as many models write it."""

    def __init__(self, body, n: int = 20) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("below", torch.ones(n, n).tril()[None, None])
        self.register_buffer("causal", torch.full((n, n), -math.inf).triu(1))
        self.bias = nn.Parameter(torch.randn(1, 3, n, n))

    def forward(self, q, k, v):
        return self.body(self, q, k, v)


def _calls(ir: GraphIR) -> list[dict[str, object]]:
    return [dict(zip(NAMES, node.args, strict=True)) for node in ir.graph.nodes if node.target is FLASH_ATTENTION]


def _replaced(body, sizes=((2, 3, 20, 8),) * 3, action: Action = STRICT) -> tuple[dict[str, object], GraphIR]:
    model = randomised(Written(body, sizes[1][-2]), 0)
    model.below.copy_(torch.ones_like(model.below).tril())
    model.causal.copy_(torch.full_like(model.causal, -math.inf).triu(1))
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(size, generator=draw) for size in sizes]
    before = captured(model, *inputs)
    after = TECHNIQUE.apply(before, action)
    assert_equal_in_double(before, after, inputs, model)
    [call] = _calls(after)
    return call, after


FORMS = {
    "plain": (lambda m, q, k, v: torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1) @ v, {}),
    "scaled before": (lambda m, q, k, v: ((q * 8**-0.5) @ k.mT).softmax(-1) @ v, {"scale": 8**-0.5}),
    "no scale": (lambda m, q, k, v: (q @ k.mT).softmax(-1) @ v, {"scale": 1.0}),
    "minGPT": (lambda m, q, k, v: F.softmax((q @ k.transpose(-2, -1) * 0.3).masked_fill(m.below == 0, -math.inf), dim=-1) @ v, {"hidden": True}),
    "scaled after the mask": (
        lambda m, q, k, v: ((q @ k.mT).masked_fill(m.below == 0, -1e4) / 2.0).softmax(-1) @ v, {"hidden": True, "fill": -5e3, "scale": 0.5}
    ),
    "scaled in the mask": (lambda m, q, k, v: ((q @ k.mT) / 2.0).masked_fill(m.below == 0, -1e4).softmax(-1) @ v, {"fill": -1e4, "scale": 0.5}),
    "where": (lambda m, q, k, v: torch.where(m.below != 0, q @ k.mT, -1e9).softmax(-1) @ v, {"hidden": False, "fill": -1e9}),
    "ReLU": (lambda m, q, k, v: F.relu((q @ k.mT * 0.3).masked_fill(m.below == 0, -math.inf)) @ v, {"form": "relu", "hidden": True}),
    "bias": (lambda m, q, k, v: (q @ k.mT * 0.3 + m.bias).softmax(-1) @ v, {"scale": 0.3}),
    "bias and mask": (lambda m, q, k, v: (q @ k.mT * 0.3 + m.bias).masked_fill(m.below == 0, -math.inf).softmax(-1) @ v, {"hidden": True}),
    "additive mask": (lambda m, q, k, v: (q @ k.mT + m.causal).softmax(-1) @ v, {}),
    "in float32": (lambda m, q, k, v: (q @ k.mT).softmax(-1, dtype=torch.float32).to(q.dtype) @ v, {}),
    "library": (lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v), {"dead": "zero", "scale": 8**-0.5}),
    "library, causal": (lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5), {"causal": True, "scale": 0.5}),
    "library, mask": (lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, m.below != 0), {"hidden": False, "fill": None}),
    "library, bias": (lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, m.bias), {}),
    "library, zeros and -Inf": (
        lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, torch.zeros_like(m.causal).masked_fill(m.causal < 0, -math.inf)), {"hidden": True}
    ),
    "two biases": (lambda m, q, k, v: (q @ k.mT * 0.5 + m.bias + m.causal).softmax(-1) @ v, {"scale": 0.5, "mask": None}),
    "two masks": (
        lambda m, q, k, v: (q @ k.mT).masked_fill(m.below == 0, -math.inf).masked_fill(m.bias < -2, -math.inf).softmax(-1) @ v, {"hidden": True}
    ),
    "a factor a head": (lambda m, q, k, v: ((q @ k.mT) * m.bias[:, :, :1, :1] + m.bias).softmax(-1) @ v, {}),
    "a factor in all": (lambda m, q, k, v: ((q @ k.mT) * m.bias[0, 0, 0, 0].exp()).masked_fill(m.below == 0, -1e9).softmax(-1) @ v, {"fill": -1e9}),
    "heads and batch in one": (
        lambda m, q, k, v: torch.bmm(
            torch.baddbmm(m.bias.expand(2, 3, 20, 20).reshape(6, 20, 20), q.reshape(6, 20, 8), k.reshape(6, 20, 8).mT, alpha=0.5)
            .view(2, 3, 20, 20).masked_fill(m.below == 0, -math.inf).softmax(-1).view(6, 20, 20),
            v.reshape(6, 20, 8),
        ).view(2, 3, 20, 8), {"scale": 0.5, "hidden": True},
    ),
    "three axes": (lambda m, q, k, v: torch.bmm((q[0] @ k[0].mT).softmax(-1), v[0]), {"turned": False}),
    "turned": (lambda m, q, k, v: ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).reshape(2, -1, 24), {"turned": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    body, expected = FORMS[name]
    call, after = _replaced(body)
    assert {key: call[key] for key in expected} == expected
    assert not list(TECHNIQUE.sites(after))


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        (lambda m, q, k, v: (q @ k.mT).masked_fill(torch.ones(20, 20).triu(1).bool(), -math.inf).softmax(-1) @ v, (True, 0, 0)),
        (lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(20, 20, dtype=torch.bool).tril()), (True, 0, 0)),
        (lambda m, q, k, v: (q @ k.mT + torch.full((20, 20), -3e38).triu(1)).softmax(-1) @ v, (True, 0, 0)),
        (lambda m, q, k, v: (q @ k.mT).masked_fill(~torch.ones(20, 20).bool().tril().triu(-4), -math.inf).softmax(-1) @ v, (True, 0, 5)),
        (lambda m, q, k, v: (q @ k.mT).masked_fill(torch.ones(20, 20).triu(1).bool(), -5.0).softmax(-1) @ v, (False, 0, 0)),
        (lambda m, q, k, v: (q @ k.mT).masked_fill(torch.ones(20, 20).tril(-1).bool(), -math.inf).softmax(-1) @ v, (False, 0, 0)),
    ],
)
def test_masks_of_literals_are_said_in_words(body, seen: tuple[bool, int, int]) -> None:
    call, _ = _replaced(body)
    assert (call["causal"], call["offset"], call["window"]) == seen and (call["mask"] is None) == seen[0]


def test_a_bias_stays_where_its_mask_is_said_in_words() -> None:
    def body(m, q, k, v):
        return (q @ k.mT + m.bias).masked_fill(torch.ones(20, 20).triu(1).bool(), -math.inf).softmax(-1) @ v

    call, _ = _replaced(body)
    assert call["causal"] and call["mask"] is None and call["bias"] is not None


@pytest.mark.parametrize(
    "hide",
    [
        lambda s, low, p: (s + low.clamp(min=-3e38)).masked_fill(p, -math.inf),
        lambda s, low, p: s.masked_fill(low < 0, -1e30).masked_fill(p, -math.inf),
        lambda s, low, p: s + low.clamp(min=-3e38) + torch.zeros(1, 1, 20, 20).masked_fill(p, -3e38),
        lambda s, low, p: (s + low).masked_fill(p, -1e9),
        lambda s, low, p: s.masked_fill(low < 0, -math.inf).masked_fill(p, -1e9),
    ],
)
def test_a_causal_mask_is_one_still_where_another_hides_what_its_rows_see(hide) -> None:
    """A row whose first keys are padding is made of numbers that stand in hidden places."""

    class Padded(nn.Module):
        def forward(self, q, k, v, hidden):
            return hide(q @ k.mT, torch.full((20, 20), -math.inf).triu(1), hidden).softmax(-1) @ v

    inputs = [*torch.randn(3, 2, 3, 20, 8), (torch.arange(20) < 3).view(1, 1, 1, 20)]
    ir = captured(Padded(), *inputs)
    for action in TECHNIQUE.sites(ir):
        [call] = _calls(TECHNIQUE.apply(ir, action))
        assert not call["causal"] and (call["mask"] is not None or call["bias"] is not None)


def test_a_mask_that_hides_nothing_is_none() -> None:
    for body in (
        lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(20, 20, dtype=torch.bool)),
        lambda m, q, k, v: (q @ k.mT + torch.zeros(1, 1, 20, 20)).softmax(-1) @ v,
    ):
        call, _ = _replaced(body)
        assert call["mask"] is None and call["bias"] is None and not call["causal"]


def test_the_last_rows_of_a_causal_mask() -> None:
    def body(m, q, k, v):
        i, j = torch.arange(4)[:, None], torch.arange(20)
        return F.scaled_dot_product_attention(q, k, v, j <= i + 16)

    call, _ = _replaced(body, ((2, 3, 4, 8), (2, 3, 20, 8), (2, 3, 20, 8)))
    assert (call["causal"], call["offset"], call["mask"]) == (True, 16, None)


def test_heads_that_share_keys() -> None:
    def body(m, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    call, _ = _replaced(body, ((2, 6, 20, 8), (2, 3, 20, 8), (2, 3, 20, 5)))
    assert call["k"].meta["val"].shape == (2, 3, 20, 8)  # type: ignore[attr-defined]


def test_tiles_of_a_mask_in_the_state_are_worked_out_once() -> None:
    call, after = _replaced(FORMS["minGPT"][0], ((2, 3, 300, 8),) * 3)
    assert call["tiles"] is not None and call["tiles"].target is FLASH_TILES and after.scheduled("fold_parameters")  # type: ignore[attr-defined]
    given = _replaced(lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v, q[:1, :1] @ k[:1, :1].mT > 0), ((2, 3, 300, 8),) * 3)[0]
    assert given["tiles"] is None


@pytest.mark.parametrize(
    "body",
    [
        lambda m, q, k, v: (q @ k.mT).softmax(-2) @ v,
        lambda m, q, k, v: ((q @ k.mT + m.bias) * 0.5).softmax(-1) @ v,
        lambda m, q, k, v: (-(q @ k.mT)).softmax(-1) @ v,
        lambda m, q, k, v: ((q @ k.mT).masked_fill(m.below == 0, -math.inf) * m.bias[:, :, :1, :1]).softmax(-1) @ v,
        lambda m, q, k, v: ((q @ k.mT).masked_fill(m.below == 0, -5.0).masked_fill(m.bias < 0, -math.inf)).softmax(-1) @ v,
        lambda m, q, k, v: ((q @ k.mT) * m.bias).softmax(-1) @ v,
        lambda m, q, k, v: ((q @ k.mT).masked_fill(m.below == 0, -5.0) + m.bias).softmax(-1) @ v,
        lambda m, q, k, v: ((q @ k.mT + m.bias).masked_fill(m.below == 0, -5.0) + m.bias).softmax(-1) @ v,
        lambda m, q, k, v: ((q @ k.mT * m.bias[:, :, :1, :1]).masked_fill(m.below == 0, -5.0) + m.bias).softmax(-1) @ v,
        lambda m, q, k, v: (q @ k.mT).view(2, 3, 400).softmax(-1).view(2, 3, 20, 20) @ v,
        lambda m, q, k, v: (q @ k.mT).view(3, 2, 20, 20).softmax(-1).reshape(2, 3, 20, 20).transpose(2, 3) @ v,
        lambda m, q, k, v: ((q @ k.mT) * -0.5).softmax(-1) @ v,
        lambda m, q, k, v: (q @ k.mT).masked_fill(m.below == 0, 3.0).softmax(-1) @ v,
        lambda m, q, k, v: (q @ k.mT).masked_fill(m.below == 0, -5.0).relu() @ v * 0 + (q @ k.mT).softmax(-1).sum(),
        lambda m, q, k, v: F.gelu(q @ k.mT) @ v,
        lambda m, q, k, v: (q @ k.mT).to(torch.int32).to(torch.float32).softmax(-1) @ v,
        lambda m, q, k, v: (q @ k.mT).long().softmax(-1, dtype=torch.float32) @ v,
        lambda m, q, k, v: (q @ k.mT * 100).softmax(-1).to(torch.int8).to(torch.float32) @ v,
        lambda m, q, k, v: (q @ k.mT).softmax(-1).bool().float() @ v,
        lambda m, q, k, v: (q[0, 0, 0] @ k.mT).softmax(-1) @ v[:, 0],
    ],
)
def test_what_is_no_attention(body) -> None:
    model = randomised(Written(body), 0)
    ir = captured(model, *torch.randn(3, 2, 3, 20, 8))
    found = [call for action in TECHNIQUE.sites(ir) for call in _calls(TECHNIQUE.apply(ir, action))]
    assert all(call["form"] == "relu" for call in found)


def test_einsum_is_read_when_it_is_a_product() -> None:
    def body(m, q, k, v):
        weights = (torch.einsum("bihd,bjhd->bhij", q, k) * 0.3 + m.bias).softmax(-1)
        return torch.einsum("bhij,bjhd->bihd", weights, v)

    inputs = torch.randn(3, 2, 20, 3, 8)
    model = randomised(Written(body), 0)
    before = captured(model, *inputs)
    as_products = EINSUM.apply(before, Action(EINSUM.name))
    after = TECHNIQUE.apply(as_products, STRICT)
    assert_equal_in_double(before, after, list(inputs), model)
    assert len(_calls(after)) == 1


def test_weights_that_others_read_are_results() -> None:
    def body(m, q, k, v):
        weights = (q @ k.mT).softmax(-1)
        return weights @ v, weights

    assert not list(TECHNIQUE.sites(captured(Written(body), *torch.randn(3, 2, 3, 20, 8))))


def test_heads_beyond_1024_and_doubles_are_the_librarys() -> None:
    body = FORMS["library"][0]
    assert not list(TECHNIQUE.sites(captured(Written(body), *torch.randn(3, 2, 3, 20, 1025))))
    assert not list(TECHNIQUE.sites(captured(Written(body).double(), *torch.randn(3, 2, 3, 20, 8).double())))


@pytest.mark.parametrize("sizes", [(300, 300), (300, 20), (20, 1024)])
@pytest.mark.parametrize("name", ["plain", "bias and mask", "library, causal"])
def test_heads_of_more_than_256_numbers_keep_scores_for_some_rows_at_a_time(name: str, sizes: tuple[int, int]) -> None:
    model = randomised(Written(FORMS[name][0]), 0)
    inputs = [*torch.randn(2, 2, 3, 20, sizes[0]), torch.randn(2, 3, 20, sizes[1])]
    before = captured(model, *inputs)
    after = TECHNIQUE.apply(before, STRICT)
    assert_equal_in_double(before, after, inputs, model)
    [call] = [node for node in after.graph.nodes if node.target is FLASH_WIDE]
    assert call.args[11] is None  # no list of tiles
    text = "\n".join(straight.kernels(after))
    assert text.count("def flash_attention(") == 1 and text.count("def flash_wide(") == 1
    assert text.index("def flash_attention(") < text.index("def flash_wide(")


@pytest.mark.parametrize("whole", [True, False])
def test_blocks_fit_shared_memory_with_mask_and_bias(whole: bool) -> None:
    """As Triton 3.6 reported them for sm_90: 163,840 bytes, 245,760 with a mask and a bias in float32, of which a block may have 232,448."""
    assert attention.shared_bytes(128, [128, 128, 8, 2, 0], True, 0) == 163840 and attention.shared_bytes(128, [128, 128, 8, 2, 0], True, 5) == 245760
    assert attention.shared_bytes(128, [128, 64, 8, 2, 1], False, 0) == 196608
    for d in (1, 40, 64, 96, 128, 200, 256):
        for rows in (1, 20, 64, 100, 1000):
            for more in (0, 1, 5):
                blocks = attention.block_shape(d, rows, whole, more)
                assert attention.shared_bytes(d, blocks, whole, more) <= attention.MOST_SHARED and blocks[0] >= 16 and blocks[1] >= 16


def test_the_text_is_a_program() -> None:
    tree = ast.parse(f"{kernels.text('flash_attention')}\n{kernels.text('flash_wide')}")
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert {FLASH_ATTENTION.__name__, FLASH_TILES.__name__, FLASH_WIDE.__name__} <= set(names)


# --- the kernel --------------------------------------------------------------------------------------------------------------------

INTERPRETED = """
import sys, torch, math
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION as semantics
names = {"__name__": "generated", "__file__": sys.argv[1]}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
torch.manual_seed(0)
R = torch.randn

def check(q, k, v, times=3.0, floor=3e-7, mask=None, tiles=None, bias=None, hidden=False, fill=None, causal=False, offset=0, window=0, scale=0.3,
          form="softmax", dead="nan", products=3, turned=False, shape=(32, 32, 4, 2, 1), function="flash_attention"):
    given = (causal, offset, window, mask, hidden, fill, bias)
    last = (form, dead, products, turned, list(shape))
    if tiles:
        tiles = names["flash_tiles"](mask, hidden, [1, 1, q.shape[-2], k.shape[-2]], *shape[:2])
    seen = names[function](q, k, v, scale, *given, tiles or None if not isinstance(tiles, torch.Tensor) else tiles, *last)
    double = [x if x is None or not isinstance(x, torch.Tensor) or x.dtype == torch.bool else x.double() for x in (q, k, v, bias)]
    exact = semantics(*double[:3], scale, *given[:6], double[3], None, *last)
    own = semantics(q, k, v, scale, *given, None, *last)
    assert seen.shape == exact.shape and seen.dtype == q.dtype and seen.stride() == own.stride(), (seen.stride(), own.stride())
    assert torch.equal(seen.isnan(), exact.isnan())
    if not seen.numel():
        return
    a, b = ((x.double() - exact).nan_to_num(0.0).abs().max() for x in (seen, own))
    size = exact.nan_to_num(0.0).abs().max()
    assert a <= times * b + floor * size, (float(a), float(b), float(size), given[:3], form, shape)

LOWEST = torch.finfo(torch.float32).min
few, many = (16, 32, 4, 1, 0), (32, 32, 4, 2, 1)
mask = torch.rand(1, 1, 70, 90) < 0.4
mask[..., 5, :] = False  # a row that sees nothing
CASES = [
    lambda: check(R(2, 2, 70, 20), R(2, 2, 90, 20), R(2, 2, 90, 40)),
    lambda: check(R(2, 2, 70, 20) * 1e-9, R(2, 2, 90, 20) * 1e9, R(2, 2, 90, 40) * 1e20, shape=(32, 32, 4, 2, 0)),
    lambda: check(R(1, 2, 70, 16), R(1, 2, 70, 16), R(1, 2, 70, 16), causal=True, turned=True),
    lambda: check(R(1, 1, 70, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), causal=True, offset=-30),
    lambda: check(R(1, 1, 70, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), causal=True, offset=-30, dead="zero"),
    lambda: check(R(1, 1, 100, 16), R(1, 1, 100, 16), R(1, 1, 100, 16), causal=True, window=40),
    lambda: check(R(2, 6, 1, 16), R(2, 2, 300, 16), R(2, 2, 300, 16), shape=few),
    lambda: check(R(2, 6, 3, 16), R(2, 2, 300, 16), R(2, 2, 300, 16), causal=True, offset=297, shape=few),
    lambda: check(R(1, 4, 70, 16), R(1, 2, 70, 16), R(1, 2, 70, 16)),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), mask=mask),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), mask=~mask, hidden=True, dead="zero"),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), mask=mask, fill=-1e9),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), mask=mask, fill=-2.0, shape=(32, 32, 4, 2, 0)),
    lambda: check(R(2, 2, 100, 16), R(2, 2, 100, 16), R(2, 2, 100, 16), mask=torch.ones(100, 100).tril().bool()[None, None], tiles=True),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), bias=R(1, 2, 70, 90), mask=torch.rand(2, 1, 1, 90) < 0.8),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), form="relu"),
    lambda: check(R(1, 2, 70, 16) * 1e5, R(1, 2, 70, 16) * 1e5, R(1, 2, 70, 16), form="relu", causal=True),
    lambda: check(R(4, 70, 16), R(4, 90, 16), R(4, 90, 16), mask=torch.rand(70, 90) < 0.9),
    lambda: check(R(2, 2, 70, 16), R(2, 2, 90, 16), R(2, 2, 90, 16), products=1, floor=2e-3),
    lambda: check(R(2, 2, 70, 16).half(), R(2, 2, 90, 16).half(), R(2, 2, 90, 16).half(), shape=(32, 32, 4, 2, 0)),
    lambda: check(R(2, 2, 16, 70).mT, R(2, 2, 16, 90).mT, R(2, 2, 16, 90).mT),
    lambda: check(*(x.view(2, 70, 2, 16).transpose(1, 2) for x in R(2, 70, 96).split(32, -1)), causal=True),
    lambda: check(torch.rand(1, 1, 40, 16), torch.rand(1, 1, 400, 16), torch.rand(1, 1, 400, 16)),
    lambda: check(R(1, 1, 3, 1), R(1, 1, 5, 1), R(1, 1, 5, 1), shape=few),
    lambda: check(R(2, 2, 0, 16), R(2, 2, 90, 16), R(2, 2, 90, 16)),
    lambda: [  # zeros, the lowest number in rows that are hidden whole, scores beyond what float32 holds whole
        check(torch.zeros(1, 1, 10, 16), torch.zeros(1, 1, 40, 16), R(1, 1, 40, 16), causal=True, shape=few),
        check(R(1, 1, 10, 16) * 1e-25, R(1, 1, 40, 16) * 1e-25, R(1, 1, 40, 16)),
        check(R(1, 1, 10, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), mask=mask[..., :10, :40], fill=LOWEST, shape=few),
        check(R(1, 1, 10, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), bias=torch.zeros(10, 40).masked_fill(~mask[..., :10, :40], LOWEST), dead="zero"),
        check(R(1, 1, 10, 16) * 1e6, R(1, 1, 40, 16) * 1e6, R(1, 1, 40, 16), shape=few),
    ],
    lambda: check(R(1, 1, 10, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), mask=torch.empty(40 << 26, dtype=torch.bool).view(40, -1)[:, :10].T.fill_(True)),
]
def infinite(which, function, form):
    given = [R(1, 1, 40, 16), R(1, 1, 70, 16), R(1, 1, 70, 16)]
    given[which][0, 0, 3, 7] = math.inf
    last = (False, 0, 0, None, False, None, None, None, form, "nan", 3, False, [32, 32, 4, 2, which % 2])
    seen, exact = names[function](*given, 0.3, *last), semantics(*(x.double() for x in given), 0.3, *last)
    assert not (seen.isfinite() & ~exact.isfinite()).any() and not seen.isfinite().all()
    assert (seen - exact)[seen.isfinite()].abs().sum() <= 1e-4 * seen.numel(), "what is finite is right"

def wide(*given, **more):
    check(*given, scale=0.05, function="flash_wide", **more)

CASES += [
    lambda: wide(R(1, 2, 70, 300), R(1, 2, 90, 300), R(1, 2, 90, 320)),
    lambda: wide(R(1, 2, 70, 300), R(1, 2, 90, 300), R(1, 2, 90, 520), shape=(128, 32, 4, 1, 0)),
    lambda: wide(R(1, 1, 40, 30), R(1, 1, 40, 30), R(1, 1, 40, 1000) * 1e20, shape=(64, 32, 4, 1, 1)),
    lambda: wide(R(1, 2, 140, 300), R(1, 2, 140, 300), R(1, 2, 140, 260), causal=True, window=30, turned=True),
    lambda: wide(R(1, 1, 70, 300), R(1, 1, 40, 300), R(1, 1, 40, 16), causal=True, offset=-30, dead="zero"),
    lambda: wide(R(1, 6, 3, 300), R(1, 2, 600, 300), R(1, 2, 600, 300), causal=True, offset=597, shape=few),
    lambda: wide(R(70, 2, 3, 20), R(70, 2, 40, 20), R(70, 2, 40, 300), shape=few),  # scores of 66 heads at once
    lambda: wide(R(1, 4, 70, 300), R(1, 2, 90, 300), R(1, 2, 90, 280), mask=mask, dead="zero", bias=R(1, 4, 70, 90)),
    lambda: wide(R(1, 2, 70, 300), R(1, 2, 90, 300), R(1, 2, 90, 280), mask=mask, fill=-2.0, form="relu"),
    lambda: wide(R(1, 2, 70, 300).half(), R(1, 2, 90, 300).half(), R(1, 2, 90, 300).half(), shape=(64, 32, 4, 2, 0)),
    lambda: wide(R(2, 70, 300), R(2, 90, 300), R(2, 90, 300), products=1, floor=2e-3),
    lambda: [infinite(which, *more) for which in range(3) for more in (("flash_attention", "softmax"), ("flash_wide", "relu"))],
]
names["_FLASH_SCORES"] = 1
for case in CASES[int(sys.argv[2])::int(sys.argv[3])]:
    case()
"""


@INTERPRETER
@pytest.mark.parametrize(("part", "parts"), [(6, 19), (32, 99), (38, 99), *(pytest.param(part, 5, marks=pytest.mark.slow) for part in range(5))])
def test_the_kernel_by_the_interpreter(part: int, parts: int, tmp_path: Path) -> None:
    path = tmp_path / "generated.py"
    path.write_text("\n\n".join(["import torch", kernels.text("flash_attention"), kernels.text("flash_wide")]))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", INTERPRETED, str(path), str(part), str(parts)]
    subprocess.run(command, env=environment, check=True, timeout=250)


@pytest.mark.slow
@INTERPRETER
def test_a_generated_file_by_the_interpreter(tmp_path: Path) -> None:
    _, after = _replaced(FORMS["minGPT"][0], ((2, 3, 300, 8),) * 3)
    text = "import torch\n" + "\n".join(straight.kernels(after))
    assert text.count("def flash_attention(") == 1 and text.count("def flash_tiles(") == 1
    path = tmp_path / "generated.py"
    path.write_text(text)
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@INTERPRETER
@pytest.mark.parametrize("name", ["flash_attention", "flash_wide", "fused_product"])
def test_kernels_go_to_the_gpu_of_their_operands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton launches on the current GPU, by its stream."""
    current, seen = [0], list[int]()

    class Reached(Exception):
        pass

    class Second:
        """A tensor of the second GPU."""

        is_cuda, device = True, 1

        def get_device(self) -> int:
            return 1

        def dim(self, *_: object) -> int:
            seen.append(current[0])
            raise Reached

        reshape, shape = dim, (1,)

    class Chosen:
        def __init__(self, device: int) -> None:
            self.device = device

        def __enter__(self) -> None:
            current[0] = self.device

        def __exit__(self, *_: object) -> None:
            current[0] = 0

    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    monkeypatch.setattr(torch.cuda, "device", Chosen)
    function = getattr(importlib.import_module(f"warpwright.domains.graph.kernels.{name}"), name)
    with pytest.raises(Reached):
        function(*[Second()] * 2, *([None] * 4 if name == "fused_product" else [None, 1.0]))
    assert set(seen) == {1}
