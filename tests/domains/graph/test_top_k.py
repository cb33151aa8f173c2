"""The largest of short rows, as a kernel translated for the CPU, against a definition of what torch's kernels do on a GPU with equal values."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains.graph.cuda.kernel import CallKernel
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels import top_k as technique
from warpwright.domains.graph.techniques.kernels.top_k import TOP_K

pytestmark = pytest.mark.compiler


class Top(nn.Module):
    def __init__(self, k: int, what: str = "both", in_order: bool = True) -> None:
        super().__init__()
        self.k, self.what, self.in_order = k, what, in_order

    def forward(self, x: torch.Tensor) -> Any:
        values, indices = torch.topk(x, self.k, sorted=self.in_order)
        return {"both": (values, indices), "values": values, "indices": indices}[self.what]


def order_of(x: float) -> tuple[int, float, int]:
    """The order in which torch finds the largest: NaN, then by value, zero above minus zero."""
    return (1, 0.0, 0) if math.isnan(x) else (0, x, math.copysign(1.0, x) > 0)


def defined(row: list[float], k: int, in_order: bool = True) -> list[int]:
    """Return the indices that torch's kernels give: a selection, then the bitonic sort of 32 places by pairs."""
    least = sorted(map(order_of, row), reverse=True)[k - 1]
    above = [i for i, x in enumerate(row) if order_of(x) > least]
    chosen = [*above, *[i for i, x in enumerate(row) if order_of(x) == least][: k - len(above)]]
    return exchanged(row, chosen) if in_order else chosen


def exchanged(row: list[float], indices: list[int], descending: bool = True) -> list[int]:
    """Return up to 32 indices as torch's bitonic network orders them, which exchanges equal numbers."""
    chosen: list[int | None] = [*indices, *[None] * (32 - len(indices))]
    above = _above if descending else _below

    def exchange(stride: int, turned: Any) -> None:
        for pair in range(16):
            at = 2 * pair - (pair & (stride - 1))
            one, two = chosen[at], chosen[at + stride]
            precedes = one is not None and two is not None and above(row[one], row[two])
            if ((precedes and one is not None) or two is None) == turned(pair):
                chosen[at], chosen[at + stride] = two, one

    size = 2
    while size < 32:
        stride = size // 2
        while stride:
            exchange(stride, lambda pair, half=size // 2: bool(pair & half))
            stride //= 2
        size *= 2
    for stride in (16, 8, 4, 2, 1):
        exchange(stride, lambda pair: False)
    return [i for i in chosen if i is not None]


def _above(one: float, two: float) -> bool:
    return (math.isnan(one) and not math.isnan(two)) or one > two


def _below(one: float, two: float) -> bool:
    return (math.isnan(two) and not math.isnan(one)) or one < two


def built(model: Top, x: torch.Tensor) -> Any:
    after = TOP_K.apply(captured(model, x), Action("top_k_cuda"))
    kernels = [node.target for node in after.graph.nodes if isinstance(node.target, CallKernel)]
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return names["optimized"]


def drawn(kind: str, rows: int, length: int) -> torch.Tensor:
    x = torch.randn(rows, length, generator=torch.Generator().manual_seed(rows * length))
    if kind == "ties":
        return (2 * x).round() / 2
    if kind == "constant":
        return torch.zeros(rows, length)
    if kind == "special":
        x = x.round()
        choices = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, 3.4e38])
        return torch.where(torch.rand(rows, length) < 0.5, choices[torch.randint(len(choices), (rows, length))], x)
    return x


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_ELEMENTS", 1)


@pytest.mark.parametrize(
    ("length", "k", "in_order"),
    [(8, 2, True), pytest.param(64, 8, True, marks=pytest.mark.slow), pytest.param(100, 32, True, marks=pytest.mark.slow),
     pytest.param(1000, 17, False, marks=pytest.mark.slow), pytest.param(5, 5, True, marks=pytest.mark.slow)],
)  # fmt: skip
def test_values_and_indices_are_those_of_torchs_kernels(length: int, k: int, in_order: bool) -> None:
    rows = 21
    optimized = built(Top(k, in_order=in_order), torch.randn(rows, length))
    for kind in ("normal", "ties", "constant", "special"):
        x = drawn(kind, rows, length)
        values, indices = optimized(x)
        assert indices.tolist() == [defined(row, k, in_order) for row in x.tolist()], kind
        assert torch.equal(values.nan_to_num(7.0), x.gather(1, indices).nan_to_num(7.0)), kind
        if in_order:
            assert torch.equal(values.nan_to_num(9e9), x.topk(k).values.nan_to_num(9e9)), kind


@pytest.mark.slow
@pytest.mark.parametrize("what", ["values", "indices"])
def test_one_result_alone_and_bfloat16(what: str) -> None:
    x = torch.randn(40, 60).bfloat16()
    seen = built(Top(4, what), x)(x)
    indices = torch.tensor([defined(row, 4) for row in x.tolist()])
    assert torch.equal(seen, indices if what == "indices" else x.gather(1, indices))


def test_which_calls_are_taken() -> None:
    def taken(model: nn.Module, *sizes: int) -> bool:
        return bool(list(TOP_K.sites(captured(model, torch.randn(*sizes)))))

    assert taken(Top(8), 4, 5, 64)
    assert not taken(Top(33), 4, 64) and not taken(Top(8), 4, 1025)
