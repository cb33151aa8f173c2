"""The largest of long rows, and rows sorted, as kernels translated for the CPU, against definitions of what torch's kernels do with equal values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from tests.domains.graph.test_top_k import Top, drawn, exchanged, order_of
from warpwright.base import Action
from warpwright.domains.graph.cuda.kernel import CallKernel
from warpwright.domains.graph.cuda.orders import select
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels import top_k as technique
from warpwright.domains.graph.techniques.kernels.top_k import SELECT, SORT, TOP_K, CallCuda

pytestmark = pytest.mark.compiler


class Sort(nn.Module):
    def __init__(self, descending: bool = False, stable: bool = False, what: str = "both") -> None:
        super().__init__()
        self.options, self.what = {"descending": descending, "stable": stable}, what

    def forward(self, x: torch.Tensor) -> Any:
        if self.what == "argsort":
            return torch.argsort(x, dim=-1, **self.options)
        values, indices = torch.sort(x, dim=-1, **self.options)
        return {"both": (values, indices), "values": values}[self.what]


def built(technique: CallCuda, model: nn.Module, x: torch.Tensor) -> tuple[Any, CallKernel]:
    after = technique.apply(captured(model, x), Action(technique.name))
    kernels = [node.target for node in after.graph.nodes if isinstance(node.target, CallKernel)]
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return names["optimized"], kernels[0]


def selected(x: torch.Tensor, k: int, in_order: bool) -> list[int]:
    """Return what torch's kernels select of a row, and in which order: more than 32 by a stable sort."""
    row = x.tolist()
    least = sorted(map(order_of, row), reverse=True)[k - 1]
    above = [i for i, number in enumerate(row) if order_of(number) > least]
    chosen = [*above, *[i for i, number in enumerate(row) if order_of(number) == least][: k - len(above)]]
    if not in_order:
        return chosen
    return [chosen[i] for i in torch.sort(x[chosen], descending=True, stable=True).indices.tolist()]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_ELEMENTS", 1)


def raised(x: torch.Tensor) -> torch.Tensor:
    """Return rows in ascending order, of which every element is above those before."""
    return x.sort(-1).values


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("rows", "length", "k", "in_order"),
    [pytest.param(2, 5000, 40, True, marks=slow), pytest.param(3, 20001, 64, True, marks=slow), pytest.param(2, 3000, 1000, True, marks=slow),
     pytest.param(5, 100, 100, True, marks=slow), pytest.param(3, 40000, 129, False, marks=slow), pytest.param(2, 1500, 1, False, marks=slow)],
)  # fmt: skip
def test_of_long_rows(rows: int, length: int, k: int, in_order: bool) -> None:
    optimized, kernel = built(SELECT, Top(k, in_order=in_order), torch.randn(rows, length))
    assert (kernel.generated.workspace > 0) == (length >= 2 * select.PART)
    for kind in ("normal", "ties", "constant", "special", "raised"):
        x = raised(drawn("normal", rows, length)) if kind == "raised" else drawn(kind, rows, length)
        values, indices = optimized(x)
        assert indices.tolist() == [selected(row, k, in_order) for row in x], kind
        assert torch.equal(values.view(torch.int32), x.gather(1, indices).view(torch.int32)), kind


@slow
@pytest.mark.parametrize("length", [1025, 17000])
def test_up_to_32_go_through_torchs_network(length: int) -> None:
    optimized, _ = built(SELECT, Top(7), torch.randn(3, length))
    for kind in ("normal", "ties", "constant", "special"):
        x = drawn(kind, 3, length)
        values, indices = optimized(x)
        assert indices.tolist() == [exchanged(row.tolist(), selected(row, 7, False)) for row in x], kind
        assert torch.equal(values.view(torch.int32), x.gather(1, indices).view(torch.int32)), kind


@pytest.mark.parametrize(
    ("length", "model"),
    [pytest.param(40, Sort(descending=True), marks=slow), pytest.param(130, Sort(descending=True), marks=slow),
     pytest.param(64, Sort(stable=True), marks=slow), pytest.param(1000, Sort(), marks=slow),
     pytest.param(4096, Sort(descending=True, what="argsort"), marks=slow), pytest.param(2, Sort(stable=True), marks=slow),
     pytest.param(30, Sort(stable=True, what="argsort"), marks=slow), pytest.param(500, Sort(what="values"), marks=slow)],
)  # fmt: skip
def test_sorted_rows(length: int, model: Sort) -> None:
    optimized, _ = built(SORT, model, torch.randn(13, length))
    for kind in ("normal", "ties", "constant", "special"):
        x = drawn(kind, 13, length)
        values, indices = torch.sort(x, stable=True, descending=model.options["descending"])
        seen = optimized(x)
        for one, expected in zip(
            seen if model.what == "both" else [seen], {"both": (values, indices), "values": [values]}.get(model.what, [indices]), strict=True
        ):
            assert torch.equal(one.nan_to_num(9e9), expected.nan_to_num(9e9)) and torch.equal(one.isnan(), expected.isnan()), kind
            assert not one.is_floating_point() or torch.equal(one.signbit() & ~one.isnan(), expected.signbit() & ~expected.isnan()), kind


@slow
@pytest.mark.parametrize("descending", [False, True])
def test_short_rows_go_through_torchs_network(descending: bool) -> None:
    optimized, _ = built(SORT, Sort(descending), torch.randn(11, 20))
    for kind in ("normal", "ties", "constant", "special"):
        x = drawn(kind, 11, 20)
        values, indices = optimized(x)
        assert indices.tolist() == [exchanged(row, list(range(20)), descending) for row in x.tolist()], kind
        assert torch.equal(values.nan_to_num(9e9), torch.sort(x, descending=descending).values.nan_to_num(9e9)), kind


@slow
def test_bfloat16() -> None:
    x = torch.randn(6, 300).bfloat16()
    optimized, _ = built(SORT, Sort(), x)
    values, indices = torch.sort(x, stable=True)
    assert torch.equal(optimized(x)[0], values) and torch.equal(optimized(x)[1], indices)
    long = torch.randn(2, 9000).bfloat16()
    optimized, _ = built(SELECT, Top(50), long)
    assert optimized(long)[1].tolist() == [selected(row.float(), 50, True) for row in long]


def test_which_calls_are_taken() -> None:
    def taken(technique: CallCuda, model: nn.Module, *sizes: int) -> bool:
        return bool(list(technique.sites(captured(model, torch.randn(*sizes)))))

    for sizes, k, expected in (((4, 5, 64), 8, "top_k_cuda"), ((4, 64), 33, "select_cuda"), ((4, 1025), 8, "select_cuda"), ((4, 3000), 1025, "")):
        assert [one.name for one in (TOP_K, SELECT) if taken(one, Top(k), *sizes)] == [expected][: bool(expected)]
    assert taken(SORT, Sort(), 3, 4096) and taken(SORT, Sort(), 3, 4097)
    assert not taken(SORT, Sort(), 3, 1)
