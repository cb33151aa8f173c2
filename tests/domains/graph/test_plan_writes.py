"""Native plans of what writes tensors anew, and of integers: fills, parts written over, padding, sums by index, cells, einsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_plan import Several, agree, planned

WRITES: list[Callable[..., Any]] = [
    lambda m, x, i, y: torch.full_like(x, -2.5),
    lambda m, x, i, y: torch.where(x > 0, x, torch.full_like(x, -7.0)) + torch.ones(80, 26, 24)[:3],
    lambda m, x, i, y: torch.full((80, 80), True),
    lambda m, x, i, y: torch.zeros_like(i) + i,
    lambda m, x, i, y: x.repeat(2, 1, 3),
    lambda m, x, i, y: x[0].t().repeat(2, 3, 1, 2),
    lambda m, x, i, y: F.pad(y[0], (3, 2), mode="reflect"),
    lambda m, x, i, y: F.pad(y, (3, 2, 0, 1), mode="reflect"),
    lambda m, x, i, y: F.pad(y, (1, 2, 3, 0), mode="replicate"),
    lambda m, x, i, y: F.pad(y.transpose(2, 3), (2, 1, 0, 4), mode="circular"),
    lambda m, x, i, y: x.new_zeros(11, 24).index_add(0, i.flatten(), x[0, :15]),
    lambda m, x, i, y: y.index_add(3, i[0].clamp(max=7), y[..., :5]),
    lambda m, x, i, y: torch.zeros_like(x[:, :12]).scatter_add(1, i[:, :, None].expand(-1, -1, 24), x[:, 5:10]),
    lambda m, x, i, y: F.one_hot(i.t(), 11),
    lambda m, x, i, y: F.one_hot(i, 12).sum((0, 1), keepdim=True),
    lambda m, x, i, y: F.one_hot(i, 11).sum(0),
    lambda m, x, i, y: x.argmax(-1) + (x > 1).sum(),
    lambda m, x, i, y: x.argmin(1, keepdim=True),
    lambda m, x, i, y: y.transpose(1, 3).argmax(),
    lambda m, x, i, y: (i // 4).argmax(0),
    lambda m, x, i, y: torch.where(x > 1.2, torch.nan, x).argmax(1),
    lambda m, x, i, y: x.transpose(0, 1).prod(1),
    lambda m, x, i, y: i.prod(-1, keepdim=True),
    lambda m, x, i, y: x[0].prod(),
    lambda m, x, i, y: (x > 0).any(1),
    lambda m, x, i, y: (y.permute(0, 2, 3, 1) > -2).all(-1, keepdim=True),
]
INTEGERS: list[Callable[..., Any]] = [
    lambda m, x, i, y: (i ^ 5) * 2654435761 ^ (i * 805459861),
    lambda m, x, i, y: i * 2654435761 * 805459861 * 2654435761,
    lambda m, x, i, y: i.to(torch.int32) * 805459861 - 2147483647,
    lambda m, x, i, y: i.clamp(2, 7) + (i - 5).clamp(min=-2) * (i - 5).clamp(max=0),
    lambda m, x, i, y: torch.maximum(i, 10 - i) + torch.minimum(i * 2, i[:1]),
    lambda m, x, i, y: (i - 5) % 3 + 10 * ((i - 5) % -3),
    lambda m, x, i, y: (i - 5) // 3 + 10 * ((i - 5) // -4),
    lambda m, x, i, y: torch.div(i - 5, 3, rounding_mode="trunc"),
    lambda m, x, i, y: ((i - 5) >> 1) + ((i - 5) << 3),
    lambda m, x, i, y: (i.to(torch.uint8) + 250) // 7,
    lambda m, x, i, y: (i.to(torch.uint8) * 30) % 7,
    lambda m, x, i, y: (i.to(torch.uint8) >> 1) ^ (i.to(torch.uint8) << 6),
    lambda m, x, i, y: torch.floor(i * 2**55 + 1),
    lambda m, x, i, y: torch.logical_xor(x > 0, x < 1),
    lambda m, x, i, y: torch.log10(x.abs() + 1) + torch.log2(x.abs() + 0.5) + torch.erfc(x),
    lambda m, x, i, y: torch.round(x * 3) + torch.trunc(x) + torch.atan(x) + torch.sinh(x) + torch.asin(x.tanh()),
]
PRODUCTS: list[Callable[..., Any]] = [
    lambda m, x, i, y: torch.einsum("bij,bkj->bik", x, x[:, :9]),
    lambda m, x, i, y: torch.einsum("bij,jk,bik->bk", x, m.row.weight, x),
    lambda m, x, i, y: torch.einsum("bij,bij,bij->b", x, x * 2, x + 1),
    lambda m, x, i, y: torch.einsum("i,jk,l->lkji", x[0, :3, 0], x[0, :4, :5], x[1, :2, 3]),
    lambda m, x, i, y: torch.einsum("bcl,bcs,bls,bsp->blp", x[:, :4, :8], x[:, :4, 8:16], x[:, :8, :8], x[:, 3:11, :6]),
    lambda m, x, i, y: torch.einsum("abc,de->ad", x, y[0, 0]),
    lambda m, x, i, y: torch.einsum("bij,bjk", x, x.transpose(1, 2)),
    lambda m, x, i, y: torch.einsum("s,se,sc->sec", x[0, :, 0], x[0], x[1]),
]


class Parts(nn.Module):
    """Parts of tensors are written over, in place."""

    def forward(self, x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = torch.zeros(3, 30, 24)
        a[:, 2:28] = x
        a[1] = 3.0
        a[:, :, 5] += x[:, :1, 5]
        a[:, ::3, -1] = i[:, :1] * 1.0
        labels = torch.zeros(3, 11, dtype=torch.long)
        labels[:, 1::2] = i
        c = y.clone()
        c[:, :, 2:4, ::2] = c[:, :, 4:6, ::2] * 2
        return a, labels, c


class Cells(nn.Module):
    """A loop over cells of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm = nn.GRUCell(24, 24), nn.LSTMCell(24, 24, bias=False)
        self.tanh, self.relu = nn.RNNCell(24, 24), nn.RNNCell(24, 24, nonlinearity="relu")

    def forward(self, x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h, (a, c) = x[0], (x[1], x[2])
        for t in range(3):
            h = self.gru(x[t], h)
            a, c = self.lstm(h, (a, c))
        return h, a, c, self.tanh(x[0]), self.relu(x[1], h)


def inputs(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(3, 26, 24), torch.randint(0, 11, (3, 5)), torch.randn(2, 4, 9, 8)]


@pytest.mark.compiler
@pytest.mark.parametrize("make", [lambda: Several([*WRITES, *INTEGERS, *PRODUCTS]), Parts, Cells], ids=["calls", "parts", "cells"])
def test_it_computes_what_torch_does(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model = make().eval()
    ir = captured(model, *inputs(0))
    optimized = planned(ir)
    for seed in range(3):
        agree(model, ir, optimized, *inputs(seed))


@pytest.mark.compiler
@pytest.mark.parametrize(
    "call", [lambda x, i: F.one_hot(i, 11), lambda x, i: x.index_add(1, i, x[:, :2]), lambda x, i: x.scatter_add(1, i[None].expand(3, -1), x)],
    ids=["one_hot", "index_add", "scatter_add"],
)  # fmt: skip
@pytest.mark.parametrize("wrong", [-1, 11])
def test_an_index_out_of_range_is_refused_as_torch_refuses_it(call: Callable[..., Any], wrong: int) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
            return call(x, i)

    x, i = torch.randn(3, 11), torch.tensor([3, 5])
    optimized = planned(captured(Model(), x, i))
    assert torch.equal(optimized(x, i)[0], call(x, i))
    with pytest.raises((RuntimeError, IndexError)):
        call(x, torch.tensor([3, wrong]))
    with pytest.raises(AssertionError, match="the plan failed"):  # the plain calls run then, and raise torch's error
        optimized(x, torch.tensor([3, wrong]))


@pytest.mark.parametrize(
    "call",
    [lambda i: i % 0, lambda i: i // -1, lambda i: i << 70, lambda i: i.to(torch.uint8).clamp(min=-3), lambda i: i.to(torch.uint8).clamp(max=300)],
    ids=["by_zero", "by_minus_one", "all_bits", "below_its_type", "above_its_type"],
)  # fmt: skip
def test_what_torch_leaves_open_is_not_planned(call: Callable[..., Any]) -> None:
    from warpwright.domains.graph.techniques.schedule import NativePlan

    class Model(nn.Module):
        def forward(self, i: torch.Tensor) -> Any:
            return call(i)

    assert not list(NativePlan().sites(captured(Model(), torch.tensor([3, 5]))))


@pytest.mark.parametrize(
    "call",
    [lambda i: torch.round(i / 7, decimals=1), lambda i: (i / 7).double().round(decimals=-1), lambda i: torch.sub(i, i + 1, alpha=3),
     lambda i: torch.rsub(i, 2, alpha=3), lambda i: torch.div(i, 2, rounding_mode=None)],
    ids=["decimals", "tens", "alpha", "of_a_number", "no_rounding"],
)  # fmt: skip
def test_what_an_expression_does_not_read_is_not_left_out(call: Callable[..., Any]) -> None:
    from warpwright.domains.graph.techniques.schedule import NativePlan

    class Model(nn.Module):
        def forward(self, i: torch.Tensor) -> Any:
            return (call(i),)

    ir, i = captured(Model(), torch.tensor([3, 5])), torch.tensor([37, -19])
    if list(NativePlan().sites(ir)):  # not by a loop: by a kernel, or torch's own call
        torch.testing.assert_close(planned(ir)(i)[0], call(i))
