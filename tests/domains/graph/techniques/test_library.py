"""Compositions that one library call computes: found in the forms that people write, refused where a constant or a reader differs."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import assert_equal_in_double, assert_numerically_sound, captured, draw, fixpoint, randomised
from warpwright.domains.graph.techniques import library

C = math.sqrt(2.0 / math.pi)


class Function(nn.Module):
    """A forward made of a function, with a mask as a buffer."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("lower", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(self, *inputs)


ACTIVATIONS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "silu": (lambda m, x: x * torch.sigmoid(x), "silu"),
    "silu, turned round": (lambda m, x: torch.sigmoid(x) * x, "silu"),
    "mish": (lambda m, x: x * torch.tanh(F.softplus(x)), "mish"),
    "gelu": (lambda m, x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), "gelu"),
    "gelu, halved last": (lambda m, x: x * (1 + torch.erf(x * math.sqrt(0.5))) / 2, "gelu"),
    "gelu with tanh": (lambda m, x: 0.5 * x * (1.0 + torch.tanh(C * (x + 0.044715 * torch.pow(x, 3.0)))), "gelu"),
    "gelu with a product": (lambda m, x: 0.5 * x * (torch.tanh((0.044715 * x * x * x + x) * C) + 1), "gelu"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    function, call = ACTIVATIONS[name]
    model = Function(function)
    before = captured(model, torch.randn(6, 5))
    after, fired = fixpoint(before, [library.ACTIVATION])
    assert len(fired) == 1
    assert [node.target for node in after.graph.nodes if node.op == "call_function"] == [getattr(torch.ops.aten, call).default]
    for kind in ("normal", "offset", "scaled", "heavy"):
        assert_equal_in_double(before, after, [draw(kind, (6, 5), 1)], model)
    assert_numerically_sound(before, after, (6, 5), model, kinds=("normal", "scaled"))


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: x * torch.sigmoid(1.5 * x),
        lambda m, x: 0.5 * x * (1.0 + torch.tanh(0.8 * (x + 0.044715 * torch.pow(x, 3.0)))),
        lambda m, x: 0.5 * x * (1.0 + torch.tanh(C * (x + 0.0447 * torch.pow(x, 3.0)))),
        lambda m, x: x * (1.0 + torch.erf(x / math.sqrt(2))),
        lambda m, x: x * torch.tanh(F.softplus(x, beta=2.0)),
        lambda m, x: x[:1] * torch.sigmoid(x),
    ],
)
def test_what_only_looks_like_an_activation(function: Callable[..., Tensor]) -> None:
    assert not list(library.ACTIVATION.sites(captured(Function(function), torch.randn(6, 5))))


def _causal(m: Function, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    scores = scores.masked_fill(m.lower[:, :, : q.shape[2], : q.shape[2]] == 0, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


ATTENTIONS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
    "plain": (lambda m, q, k, v: torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(5), -1) @ v, (2, 3, 4, 5)),
    "of rank 3": (lambda m, q, k, v: torch.bmm(F.softmax(torch.bmm(q, k.permute(0, 2, 1)), dim=2), v), (2, 4, 5)),
    "keys stored transposed": (lambda m, q, k, v: torch.softmax((q @ k.reshape(2, 3, 5, 4)) * 0.3, -1) @ v, (2, 3, 4, 5)),
    "additive mask": (lambda m, q, k, v: torch.softmax(q @ k.mT * 0.5 + m.lower[..., :4, :4], -1) @ v, (2, 3, 4, 5)),
    "causal": (_causal, (2, 3, 4, 5)),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name: str) -> None:
    function, size = ATTENTIONS[name]
    model = Function(function) if name in ("causal", "additive mask") else randomised(Function(function), 0)
    inputs = [torch.randn(*size) for _ in range(3)]
    before = captured(model, *inputs)
    after, fired = fixpoint(before, [library.ATTENTION, library.MASKED_ATTENTION])
    assert len(fired) == 1
    assert any(node.target is torch.ops.aten.scaled_dot_product_attention.default for node in after.graph.nodes)
    assert bool(after.assumptions) == (name in ("causal", "additive mask"))
    for kind in ("normal", "offset", "scaled"):
        assert_equal_in_double(before, after, [draw(kind, size, seed) for seed in range(3)], model)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, q, k, v: torch.softmax(q @ k.transpose(-2, -1), 1) @ v,  # over heads
        lambda m, q, k, v: torch.relu(q @ k.transpose(-2, -1)) @ v,
        lambda m, q, k, v: torch.softmax(-(q @ k.transpose(-2, -1)), -1) @ v,
        lambda m, q, k, v: (lambda w: w @ v + w.sum())(torch.softmax(q @ k.transpose(-2, -1), -1)),  # the weights are read elsewhere
        lambda m, q, k, v: torch.softmax(q @ k[:, :1].transpose(-2, -1), -1) @ v,  # broadcast heads
    ],
)
def test_what_only_looks_like_attention(function: Callable[..., Tensor]) -> None:
    graph = captured(Function(function), *[torch.randn(2, 3, 4, 5)] * 3)
    assert not list(library.ATTENTION.sites(graph)) and not list(library.MASKED_ATTENTION.sites(graph))
