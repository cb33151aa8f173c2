"""Attention whose scores are capped, whose rows have sinks, or whose weights are sigmoids: what is read, what is not, and the kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from exactness import assert_equal_in_double, captured, draw
from hopper import names_of
from interpreter import INTERPRETER
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.test_cpp import TEXT
from warpwright.base import Action
from warpwright.domains.graph import kernels
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.attention import FlashAttentions, FlashHoppers, technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION, FLASH_HOPPER, FLASH_WIDE
from warpwright.templates.flash_hopper import MOST_CAP

HOPPER = Action("flash_hopper")
STRICT, OWN = (Action("flash_attention", params=(("precision", which),)) for which in ("float32", "own"))
LOWEST = torch.finfo(torch.float32).min
Body = Callable[..., torch.Tensor]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_FLOPS", 0.0)


class Written(nn.Module):
    """Attention by a function of a module that has sinks and a mask, and of q, k and v [2, 4, n, d]."""

    def __init__(self, body: Body, rows: int = 20, keys: int = 24) -> None:
        super().__init__()
        self.body = body
        self.sinks = nn.Parameter(torch.randn(4, generator=torch.Generator().manual_seed(3)))
        self.register_buffer("softcap", torch.tensor(30.0), persistent=False)
        hidden = torch.rand(2, 1, rows, keys, generator=torch.Generator().manual_seed(4)) < 0.3
        hidden[0, 0, 5] = True  # a row that sees nothing
        self.register_buffer("hidden", hidden)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.body(self, q, k, v)


def beside(m: Written, scores: torch.Tensor) -> torch.Tensor:
    """Return scores with a column of sinks, as GPT-OSS has it."""
    return torch.cat((scores, m.sinks.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[-2], -1)), -1)


def gpt_oss(m: Written, scores: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    whole = beside(m, scores)
    whole = whole - whole.max(dim=-1, keepdim=True).values
    return F.dropout(F.softmax(whole, dim=-1, dtype=whole.dtype)[..., :-1], 0.1, m.training).to(v.dtype) @ v


def drawn(kind: torch.dtype = torch.float32, rows: int = 20, keys: int = 24, d: int = 8, values: str = "normal") -> list[torch.Tensor]:
    return [draw(values, (2, 4, n, d), seed).to(kind) for seed, n in enumerate((rows, keys, keys))]


def calls_of(ir: GraphIR) -> list[dict[str, Any]]:
    """Return scale, cap, sinks and the form of each call."""
    found = []
    for node in ir.graph.nodes:
        if node.target in (FLASH_ATTENTION, FLASH_WIDE):
            cap, sinks = (*node.args[17:], None, None)[:2]
            places = {"scale": 3, "mask": 7, "bias": 10, "form": 12}
            found.append({name: node.args[at] for name, at in places.items()} | {"cap": cap or 0.0, "sinks": sinks})
    return found


def replaced(body: Body, inputs: list[torch.Tensor], action: Action = STRICT, **sizes: int) -> tuple[dict[str, Any], GraphIR]:
    model = Written(body, **sizes).eval()
    before = captured(model, *inputs)
    after = FlashAttentions().apply(before, action)
    assert_equal_in_double(before, after, inputs, model)
    [call] = calls_of(after)
    return call, after


CAPS: dict[str, tuple[Body, dict[str, Any]]] = {
    "Gemma": (lambda m, q, k, v: (torch.tanh(q @ k.mT * 0.25 / 50.0) * 50.0).softmax(-1) @ v, {"scale": 0.25, "cap": 50.0}),
    "Grok": (lambda m, q, k, v: (30.0 * torch.tanh(q @ k.mT / 30.0)).softmax(-1) @ v, {"scale": 1.0, "cap": 30.0}),
    "a cap before q": (lambda m, q, k, v: (20.0 * torch.tanh((q / 20.0) @ k.mT)).softmax(-1) @ v, {"scale": 1.0, "cap": 20.0}),
    "scaled before": (lambda m, q, k, v: (torch.tanh((q * 0.5) @ k.mT / 4.0) * 4.0).softmax(-1) @ v, {"scale": 0.5, "cap": 4.0}),
    "scaled outside": (lambda m, q, k, v: (torch.tanh(q @ k.mT / 4.0) * 4.0 * 0.5).softmax(-1) @ v, {"scale": 0.5, "cap": 2.0}),
    "another number outside": (lambda m, q, k, v: (torch.tanh(q @ k.mT * 0.1) * 3.0).softmax(-1) @ v, {"scale": 0.1 * 3.0, "cap": 3.0}),
    "then masked": (
        lambda m, q, k, v: (torch.tanh(q @ k.mT / 5.0) * 5.0).masked_fill(m.hidden, LOWEST).softmax(-1) @ v, {"scale": 1.0, "cap": 5.0}
    ),
    "then a mask is added": (
        lambda m, q, k, v: (torch.tanh(q @ k.mT / 5.0) * 5.0 + torch.where(m.hidden, LOWEST, 0.0)).softmax(-1) @ v, {"cap": 5.0}
    ),
    "masked, then scaled": (
        lambda m, q, k, v: ((torch.tanh(q @ k.mT / 5.0) * 5.0).masked_fill(m.hidden, -8.0) * 0.5).softmax(-1) @ v, {"scale": 0.5, "cap": 2.5}
    ),
    "in float32": (
        lambda m, q, k, v: F.softmax((torch.tanh((q @ k.mT).float() / 5.0) * 5.0).to(q.dtype), -1, dtype=torch.float32).to(q.dtype) @ v, {"cap": 5.0}
    ),
    "a factor a head": (
        lambda m, q, k, v: (torch.tanh(q @ k.mT * m.sinks.view(1, 4, 1, 1) / 5.0) * 5.0).softmax(-1) @ v, {"scale": 1.0, "cap": 5.0}
    ),
    "ReLU": (lambda m, q, k, v: (torch.tanh(q @ k.mT / 5.0) * 5.0).relu() @ v, {"form": "relu", "cap": 5.0}),
    "dropout of nothing": (lambda m, q, k, v: F.dropout((torch.tanh(q @ k.mT / 5) * 5).softmax(-1), 0.3, m.training) @ v, {"cap": 5.0}),
    "the last rows of a mask": (
        lambda m, q, k, v: (torch.tanh(q @ k.mT / 5) * 5 + torch.zeros(1, 1, 40, 40).masked_fill(torch.ones(40, 40).triu(1) > 0, LOWEST)[
            :, :, 4:24, :24]).softmax(-1) @ v, {"cap": 5.0, "bias": None, "mask": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPS)
def test_caps(name: str) -> None:
    body, expected = CAPS[name]
    call, after = replaced(body, drawn())
    assert {key: pytest.approx(call[key]) for key in expected} == expected
    assert not list(FlashAttentions().sites(after))


SINKS: dict[str, Body] = {
    "GPT-OSS": lambda m, q, k, v: gpt_oss(m, q @ k.mT * 0.3, v),
    "masked": lambda m, q, k, v: gpt_oss(m, q @ k.mT * 0.3 + torch.where(m.hidden, LOWEST, 0.0), v),
    "rows that see nothing": lambda m, q, k, v: gpt_oss(m, (q @ k.mT).masked_fill(m.hidden, -torch.inf), v),
    "capped": lambda m, q, k, v: gpt_oss(m, torch.tanh(q @ k.mT / 3.0) * 3.0, v),
    "no largest is subtracted": lambda m, q, k, v: beside(m, q @ k.mT).softmax(-1)[..., :-1] @ v,
    "amax": lambda m, q, k, v: (lambda s: (s - s.amax(-1, keepdim=True)).softmax(-1)[..., :24])(beside(m, q @ k.mT)) @ v,
    "in front": lambda m, q, k, v: torch.cat((m.sinks.view(1, 4, 1, 1).expand(2, 4, 20, 1), q @ k.mT), -1).softmax(-1)[..., 1:] @ v,
    "one of each row": lambda m, q, k, v: torch.cat((q @ k.mT, q[..., :1]), -1).softmax(-1)[..., :-1] @ v,
    "in float32": lambda m, q, k, v: beside(m, q @ k.mT).float().softmax(-1)[..., :-1].to(v.dtype) @ v,
    "one for all": lambda m, q, k, v: torch.cat((q @ k.mT, m.softcap.expand(2, 4, 20, 1)), -1).softmax(-1)[..., :-1] @ v,
    "exp(0) more": lambda m, q, k, v: F.pad(q @ k.mT, (0, 1)).softmax(-1)[..., :-1] @ v,
    "exp(1.5) more, in front": lambda m, q, k, v: F.pad(q @ k.mT, (1, 0), value=1.5).softmax(-1)[..., 1:] @ v,
}


@pytest.mark.parametrize("name", SINKS)
def test_sinks(name: str) -> None:
    call, after = replaced(SINKS[name], drawn())
    assert call["sinks"] is not None and call["cap"] == (3.0 if name == "capped" else 0.0)
    assert not list(FlashAttentions().sites(after))


@pytest.mark.parametrize("hide", [lambda m, s: s, lambda m, s: s.masked_fill(m.hidden, -torch.inf), lambda m, s: s.masked_fill(m.hidden, -2.0)])
def test_weights_that_are_sigmoids(hide: Callable[[Written, torch.Tensor], torch.Tensor]) -> None:
    call, _ = replaced(lambda m, q, k, v: hide(m, q @ k.mT * 0.3).sigmoid() @ v, drawn())
    assert call["form"] == "sigmoid"


NO_CAP: dict[str, Body] = {
    "after the mask": lambda m, q, k, v: (torch.tanh((q @ k.mT).masked_fill(m.hidden, -9.0) / 5.0) * 5.0).softmax(-1) @ v,
    "after a bias": lambda m, q, k, v: (torch.tanh((q @ k.mT + m.sinks.view(1, 4, 1, 1)) / 5.0) * 5.0).softmax(-1) @ v,
    "of a sum": lambda m, q, k, v: torch.bmm(
        (torch.tanh((torch.baddbmm(m.hidden.float().flatten(0, 1), q[:, 0], k[:, 0].mT)) / 5.0) * 5.0).softmax(-1), v[:, 0]
    ),
    "twice": lambda m, q, k, v: (torch.tanh(torch.tanh(q @ k.mT / 5.0)) * 5.0).softmax(-1) @ v,
    "negative": lambda m, q, k, v: (torch.tanh(q @ k.mT / 5.0) * -5.0).softmax(-1) @ v,
    "negative inside": lambda m, q, k, v: (torch.tanh(q @ k.mT / -5.0) * 5.0).softmax(-1) @ v,
    "a factor outside": lambda m, q, k, v: (torch.tanh(q @ k.mT / 5.0) * m.sinks.view(1, 4, 1, 1)).softmax(-1) @ v,
    "shifted": lambda m, q, k, v: (torch.tanh(q @ k.mT / 5.0 + 1.0) * 5.0).softmax(-1) @ v,
    "read by others": lambda m, q, k, v: (lambda s: s.softmax(-1) @ v + s.sum())(torch.tanh(q @ k.mT / 5.0) * 5.0),
    "dropout": lambda m, q, k, v: F.dropout((torch.tanh(q @ k.mT / 5.0) * 5.0).softmax(-1), 0.5, True) @ v,
    "a cap that can change": lambda m, q, k, v: (torch.tanh(q @ k.mT / m.softcap) * m.softcap).softmax(-1) @ v,
    "hard": lambda m, q, k, v: (F.hardtanh(q @ k.mT / 5.0) * 5.0).softmax(-1) @ v,
}
NO_SINK: dict[str, Body] = {
    "no weight is dropped": lambda m, q, k, v: beside(m, q @ k.mT).softmax(-1) @ F.pad(v, (0, 0, 0, 1), value=1.0),
    "another weight is dropped": lambda m, q, k, v: beside(m, q @ k.mT).softmax(-1)[..., 1:] @ v,
    "two are dropped": lambda m, q, k, v: beside(m, q @ k.mT).softmax(-1)[..., :-2] @ v[..., :-1, :],
    "dropped before": lambda m, q, k, v: beside(m, q @ k.mT)[..., :-1].softmax(-2) @ v,
    "another axis": lambda m, q, k, v: torch.cat((q @ k.mT, m.sinks.view(1, 4, 1, 1).expand(2, 4, 1, 24)), -2).softmax(-2)[..., :-1, :] @ v,
    "less another row's largest": lambda m, q, k, v: (lambda s: (s - s.amax(-2, keepdim=True)).softmax(-1)[..., :-1])(beside(m, q @ k.mT)) @ v,
    "less the largest of all": lambda m, q, k, v: (lambda s: (s - s.amax((-1, -2), keepdim=True)).softmax(-1)[..., :-1])(beside(m, q @ k.mT)) @ v,
    "the weights are read by others": lambda m, q, k, v: (lambda w: w[..., :-1] @ v + w[..., -1:])(beside(m, q @ k.mT).softmax(-1)),
    "two sinks": lambda m, q, k, v: torch.cat((q @ k.mT, q[..., :2]), -1).softmax(-1)[..., :-2] @ v,
    "reflected": lambda m, q, k, v: F.pad(q @ k.mT, (0, 1, 0, 0), mode="replicate").softmax(-1)[..., :-1] @ v,
    "sigmoids": lambda m, q, k, v: beside(m, q @ k.mT).sigmoid().flip(-1)[..., :-1] @ v,
    "whole numbers between": lambda m, q, k, v: F.softmax(beside(m, q @ k.mT).to(torch.int32).float(), -1)[..., :-1] @ v,
    "eight bits between": lambda m, q, k, v: F.softmax(beside(m, q @ k.mT).to(torch.float8_e5m2).float(), -1)[..., :-1] @ v,
    "dropout beside a sink": lambda m, q, k, v: F.dropout(beside(m, q @ k.mT).softmax(-1)[..., :-1], 0.5, True) @ v,
}


@pytest.mark.parametrize("name", [*NO_CAP, *NO_SINK])
def test_what_only_looks_like_it(name: str) -> None:
    body = NO_CAP.get(name) or NO_SINK[name]
    ir = captured(Written(body).train(name.startswith("dropout")), *drawn())
    assert not list(FlashAttentions().sites(ir)) and not list(FlashHoppers().sites(ir))


def test_what_is_capped_is_the_scores_only_where_the_other_term_is_no_product() -> None:
    """A bias that is bent itself stays one."""
    call, _ = replaced(lambda m, q, k, v: (torch.tanh(q @ k.flip(1).mT) * 2.0 + q @ k.mT).softmax(-1) @ v, drawn())
    assert call["cap"] == 0.0 and call["bias"] is not None


@pytest.mark.parametrize("seed", range(30))
def test_what_is_drawn_is_equal(seed: int) -> None:
    """Caps, factors, masks and sinks in any order that models have them in, on values of any kind."""
    by = Random(seed)
    inner, outer, after, fill = by.uniform(0.01, 2.0), by.choice([1.0, 7.5, 60.0]), by.choice([1.0, 0.25]), by.choice([LOWEST, -3.0, -torch.inf])
    added, masked, sunk, before = (by.random() < 0.5 for _ in range(4))

    def body(m: Written, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (q * inner) @ k.mT if before else q @ k.mT * inner
        scores = torch.tanh(scores / outer) * outer
        scores = scores + m.hidden * 0.5 if added else scores
        scores = scores.masked_fill(m.hidden, fill) * after if masked and not added else scores
        return gpt_oss(m, scores, v) if sunk else scores.softmax(-1) @ v

    call, _ = replaced(body, drawn(values=by.choice(["normal", "scaled", "offset", "heavy", "spikes"])))
    assert call["cap"] == pytest.approx(outer * (after if masked and not added else 1.0)) and (call["sinks"] is not None) == sunk


def test_heads_of_more_than_256_numbers() -> None:
    call, _ = replaced(lambda m, q, k, v: gpt_oss(m, torch.tanh(q @ k.mT / 3.0) * 3.0, v), drawn(d=260))
    assert call["cap"] == 3.0 and call["sinks"] is not None


ON_HOPPER: dict[str, tuple[Body, tuple[float, bool]]] = {
    "capped": (lambda m, q, k, v: (torch.tanh(q @ k.mT * 0.25 / 50.0) * 50.0).softmax(-1) @ v, (50.0, False)),
    "in float32": (lambda m, q, k, v: (torch.tanh((q @ k.mT).float() / 9.0) * 9.0).softmax(-1).to(v.dtype) @ v, (9.0, False)),
    "sinks": (lambda m, q, k, v: beside(m, q @ k.mT).softmax(-1)[..., :-1].to(v.dtype) @ v, (0.0, True)),
    "a number more": (lambda m, q, k, v: F.pad(torch.tanh(q @ k.mT / 9.0) * 9.0, (0, 1)).softmax(-1)[..., :-1] @ v, (9.0, True)),
    "causal": (
        lambda m, q, k, v: (torch.tanh(q @ k.mT / 9.0) * 9.0 + torch.full((72, 80), torch.finfo(q.dtype).min, dtype=q.dtype).triu(9)).softmax(-1) @ v,
        (9.0, False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_HOPPER)
def test_on_hopper_and_elsewhere(name: str, tmp_path: Path) -> None:
    body, expected = ON_HOPPER[name]
    model, inputs = Written(body, 72, 80).eval(), drawn(torch.bfloat16, 72, 80, 16)
    after = FlashHoppers().apply(captured(model, *inputs), HOPPER)
    [call] = [node for node in after.graph.nodes if node.target is FLASH_HOPPER]
    cap, sinks = (*call.args[7:], None, None)[:2]
    assert (cap or 0.0, sinks is not None) == expected
    names = names_of(lower(after, (), Original("test", TEXT, target="cuda")).source.text.replace('"cuda"', '"cpu"'), tmp_path)
    q, k, v = inputs
    sinks = None if sinks is None else torch.zeros(1, 1, 1, 1) if name == "a number more" else model.sinks.detach().view(1, 4, 1, 1)
    given = (*call.args[3:7], cap or 0.0)
    exact = model.double()(q.double(), k.double(), v.double())
    torch.testing.assert_close(FLASH_HOPPER(q.double(), k.double(), v.double(), *given, sinks), exact, rtol=1e-6, atol=1e-6)  # sinks are of float32
    assert (names["flash_hopper"](q, k, v, *given, sinks).double() - exact).abs().max() <= 2.0**-7 * exact.abs().max()


@pytest.mark.parametrize("number", [-1e9, 0.1])
def test_a_number_beside_scores_of_float32_is_one_of_float32(number: float) -> None:
    body: Body = lambda m, q, k, v: F.pad((q @ k.mT).float(), (0, 1), value=number).softmax(-1)[..., :-1].to(v.dtype) @ v  # noqa: E731
    ir = captured(Written(body).eval(), *drawn(torch.float16))
    [call] = calls_of(FlashAttentions().apply(ir, OWN))
    sink = call["sinks"].meta["val"]
    assert sink.dtype == torch.float32 and call["sinks"].args[2] == number


def test_the_largest_cap_on_hopper() -> None:
    for cap, taken in ((MOST_CAP, 1), (MOST_CAP * 1.01, 0)):
        ir = captured(Written(lambda m, q, k, v, cap=cap: (torch.tanh(q @ k.mT / cap) * cap).softmax(-1) @ v), *drawn(torch.float16, 72, 80, 16))
        assert len(list(FlashHoppers().sites(ir))) == taken and list(FlashAttentions().sites(ir)) == [OWN]


# --- public models -----------------------------------------------------------------------------------------------------------------

_SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 32, "vocab_size": 50}
PUBLIC: dict[str, dict[str, Any]] = {
    "Gemma2": _SMALL | {"num_hidden_layers": 2, "sliding_window": 8},
    "GptOss": _SMALL | {"num_hidden_layers": 2, "sliding_window": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_models(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config")(**PUBLIC[name])
    config._attn_implementation, config.use_cache = "eager", False

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = getattr(transformers, f"{name}Model")(config)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.model(x)[0]  # type: ignore[no-any-return]

    torch.manual_seed(0)
    model, x = First().eval(), torch.randint(0, 50, (2, 24))
    before = captured(model, x)
    after = FlashAttentions().apply(before, STRICT)
    assert_equal_in_double(before, after, [x], model)
    found = calls_of(after)
    assert len(found) == 2 and all((call["cap"] == 50.0) if name == "Gemma2" else (call["sinks"] is not None) for call in found)


# --- the kernels -------------------------------------------------------------------------------------------------------------------

INTERPRETED = """
import sys, torch, math
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION as semantics, FLASH_BACKWARD, FLASH_OF_SINKS
names = {"__name__": "generated", "__file__": sys.argv[1]}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
torch.manual_seed(int(sys.argv[4]))
R = torch.randn
few, many = (16, 32, 4, 1, 0), (32, 32, 4, 2, 1)

def check(q, k, v, cap=0.0, sinks=None, times=2.0, floor=3e-7, mask=None, bias=None, hidden=False, fill=None, causal=False, offset=0, window=0,
          scale=0.3, form="softmax", dead="nan", products=3, turned=False, shape=many, function="flash_attention", back=False):
    given, last = (causal, offset, window, mask, hidden, fill, bias), (form, dead, products, turned, list(shape), cap, sinks)
    wide = [x.double() if isinstance(x, torch.Tensor) and x.dtype != torch.bool else x for x in (q, k, v, bias, sinks)]
    if back:
        return gradients(q, k, v, wide, given, last, times)
    seen = names[function](q, k, v, scale, *given, None, *last)
    exact = semantics(*wide[:3], scale, *given[:6], wide[3], None, *last[:-1], wide[4])
    own = semantics(q, k, v, scale, *given, None, *last)
    assert seen.shape == exact.shape and seen.dtype == q.dtype and seen.stride() == own.stride()
    assert torch.equal(seen.isnan(), exact.isnan())
    a, b = ((x.double() - exact).nan_to_num(0.0).abs().max() for x in (seen, own))
    assert a <= times * b + floor * exact.nan_to_num(0.0).abs().max(), (float(a), float(b), cap, form, shape)

def gradients(q, k, v, wide, given, last, times):
    (form, dead, products, turned, shape, cap, sinks) = last
    y, ends = names["flash_forward"](q, k, v, 0.3, *given, None, form, dead, products, turned, (32, 32, 4, 1, 0), cap, sinks)
    dy = R(y.shape).to(q.dtype)
    seen = [*names["flash_backward"](dy, q, k, v, y, ends, 0.3, *given, dead, products, shape, cap)]
    seen += [names["flash_of_sinks"](dy, y, ends, sinks)] if sinks is not None else []

    def of(kind):
        leaves = [x.detach().to(kind).requires_grad_() for x in (q, k, v, sinks) if x is not None]
        out = semantics(*leaves[:3], 0.3, *given[:6], None if given[6] is None else given[6].to(kind), None, *last[:-1], *leaves[3:])
        return torch.autograd.grad(out, leaves, dy.to(kind))

    for x, exact, own in zip(seen, of(torch.float64), of(q.dtype), strict=True):
        assert x.shape == exact.shape and x.dtype == own.dtype and torch.equal(x.isnan(), exact.isnan())
        error, allowed = ((one.double() - exact).nan_to_num(0.0).abs().max() for one in (x, own))
        assert error <= times * 2 * allowed + 1e-6 * exact.nan_to_num(0.0).abs().max(), (float(error), float(allowed))

def three(h=2, kv=2, nq=70, nk=90, d=16, by=1.0):
    return R(2, h, nq, d) * by, R(2, kv, nk, d), R(2, kv, nk, d)

mask = torch.rand(1, 1, 70, 90) < 0.4
mask[..., 5, :] = False  # a row that sees nothing
LOWEST = torch.finfo(torch.float32).min
CASES = [
    lambda: check(*three(), cap=2.0),
    lambda: check(*three(by=100.0), cap=30.0),
    lambda: check(*three(by=1e-3), cap=50.0, shape=(32, 32, 4, 2, 0)),
    lambda: check(*three(h=4), cap=2.0, causal=True, offset=20, turned=True),
    lambda: check(*three(h=6, nq=3, nk=300), cap=2.0, shape=few),
    lambda: check(*three(h=6, nq=3, nk=300), cap=2.0, sinks=R(1, 6, 1, 1), causal=True, offset=297, shape=few),
    lambda: check(*three(), cap=2.0, mask=mask, bias=R(1, 2, 70, 90)),
    lambda: check(*three(), cap=2.0, mask=mask, fill=-3.0),
    lambda: check(*three(), cap=5.0, bias=torch.zeros(70, 90).masked_fill(~mask, LOWEST)),
    lambda: check(*three(), cap=5.0, sinks=R(2, 2, 70, 1), bias=torch.zeros(70, 90).masked_fill(~mask, LOWEST)),
    lambda: check(*three(), sinks=R(1, 2, 1, 1) * 4, mask=mask),
    lambda: check(*three(), sinks=torch.tensor([80.0, -80.0]).view(1, 2, 1, 1), window=20, causal=True),
    lambda: check(*three(), sinks=torch.full((1, 1, 1, 1), -math.inf), mask=mask, dead="zero"),
    lambda: check(*three(), sinks=torch.full((1, 1, 1, 1), -math.inf), mask=mask),
    lambda: check(*(x.half() for x in three()), cap=3.0, sinks=R(1, 2, 1, 1).half(), shape=(32, 32, 4, 2, 0)),
    lambda: check(*three(), cap=3.0, form="relu"),
    lambda: check(*three(), form="sigmoid", mask=mask),
    lambda: check(*three(by=1e3), form="sigmoid", causal=True, shape=few),
    lambda: check(*three(), products=1, cap=4.0, floor=2e-3),
    lambda: check(*three(d=300), cap=2.0, sinks=R(1, 2, 1, 1), scale=0.05, function="flash_wide"),
    lambda: check(*three(h=6, nq=3, nk=600, d=300), cap=2.0, sinks=R(1, 6, 1, 1), scale=0.05, function="flash_wide", shape=few),
    lambda: check(*three(d=300), form="sigmoid", scale=0.05, function="flash_wide"),
    lambda: check(*three(), cap=2.0, back=True, shape=(32, 32, 4, 2, 1)),
    lambda: check(*three(h=4), cap=2.0, sinks=R(1, 4, 1, 1), causal=True, offset=20, back=True, shape=(32, 32, 4, 1, 1)),
    lambda: check(*three(), sinks=R(2, 2, 70, 1), mask=mask, dead="zero", back=True, shape=(16, 32, 4, 1, 0)),
    lambda: check(*three(), cap=4.0, mask=~mask, hidden=True, fill=-2.0, back=True, shape=(32, 32, 4, 1, 1)),
    lambda: check(*three(by=100.0), cap=30.0, back=True, shape=(32, 32, 4, 1, 1), times=4.0),
]
for case in CASES[int(sys.argv[2])::int(sys.argv[3])]:
    case()
"""


@INTERPRETER
@pytest.mark.parametrize(("part", "parts"), [(5, 99), *(pytest.param(part, 5, marks=pytest.mark.slow) for part in range(5))])
def test_the_kernels_by_the_interpreter(part: int, parts: int, tmp_path: Path) -> None:
    path = tmp_path / "generated.py"
    path.write_text("\n\n".join(["import torch", *(kernels.text(name) for name in ("flash_attention", "flash_wide", "flash_backward"))]))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", INTERPRETED, str(path), str(part), str(parts), "0"]
    subprocess.run(command, env=environment, check=True, timeout=250)
