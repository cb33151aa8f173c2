"""Bags of rows (embedding_bag, segment_reduce) as operands of fused CUDA kernels, translated for the CPU, against torch and float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cuda import fused
from warpwright.domains.graph.cuda.kernel import head
from warpwright.domains.graph.ir import aten, find
from warpwright.domains.graph.ir.bag import BAG

pytestmark = pytest.mark.compiler


class Bags(nn.Module):
    """A function of a table and what says which rows are joined."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: torch.Tensor) -> Any:
        return self.function(*given)


def agree(function: Any, *values: torch.Tensor, kernels: int = 1, exact: bool = False) -> list[Any]:
    """Compare a fused function with torch and float64; return its kernels, of which there have to be so many."""
    made, optimized = fused(captured(Bags(function), *values))
    bags = [kernel for kernel in made if "joined_bag<" in kernel.text]
    assert len(bags) == kernels, [kernel.summary for kernel in made]
    seen, plain = optimized(*values), function(*values)
    truth = function(*(t.double() if t.is_floating_point() else t for t in values))
    for one, own, wide in zip(*((r if isinstance(r, tuple) else (r,)) for r in (seen, plain, truth)), strict=True):
        assert one.shape == own.shape and one.dtype == own.dtype
        assert torch.equal(one.isnan(), own.isnan()) and torch.equal(one.isinf(), own.isinf())
        if exact:
            assert torch.equal(one.nan_to_num(), own.nan_to_num())
        finite = own.isfinite()
        limit = (own.double() - wide)[finite].abs().max() if finite.any() else torch.zeros(())
        eps = torch.finfo(own.dtype).eps
        close = eps * wide[finite].abs().clamp(min=1e-30)  # a result is rounded once
        assert ((one.double() - wide)[finite].abs() <= limit + close).all()
    return made


def offsets_of(kind: str, bags: int, total: int, seed: int) -> torch.Tensor:
    """Return where bags begin, and where the last one ends."""
    g = torch.Generator().manual_seed(seed)
    if kind == "one":  # holds everything
        inner = torch.full((bags - 1,), total) if seed % 2 else torch.zeros(bags - 1)
    elif kind == "ends":  # are empty
        inner = (torch.rand(bags - 1, generator=g) * total * 0.5 + total * 0.25).long().sort()[0]
        inner[: bags // 3] = 0
        inner[2 * bags // 3 :] = total
    else:
        inner = torch.randint(0, total + 1, (bags - 1,), generator=g).sort()[0]
    return torch.cat([torch.zeros(1), inner, torch.full((1,), total)]).long()


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from(["one", "ends", "any"]), st.sampled_from(["sum", "mean", "max"]), st.integers(1, 60), st.integers(0, 400),
    st.sampled_from([1, 3, 4, 16, 30, 64]), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_embedding_bags(kind: str, mode: str, bags: int, total: int, width: int, small: bool, last: bool, padded: bool, seed: int) -> None:
    torch.manual_seed(seed)
    table = torch.randn(900, width)
    index = torch.int32 if small else torch.int64
    rows, offsets = torch.randint(0, 900, (total,), dtype=index), offsets_of(kind, bags, total, seed).to(index)
    rows[total // 3 : total // 2] = 5
    offsets = offsets if last else offsets[:-1]
    padding = 5 if padded else None
    agree(
        lambda table, rows, offsets: F.embedding_bag(rows, table, offsets, mode=mode, include_last_offset=last, padding_idx=padding).abs() * 2,
        table, rows, offsets, kernels=int(bags * width > 1), exact=mode == "max",
    )  # fmt: skip


class Ranker(nn.Module):
    """Dense features and bags of several tables side by side, normalised; bags of rows; a bag with weights; the part of a row that is read."""

    def __init__(self, kind: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(500, 32, mode=mode, padding_idx=3) for mode in ("sum", "mean", "max")]).to(kind)

    def forward(self, dense: torch.Tensor, rows: torch.Tensor, offsets: torch.Tensor, pairs: torch.Tensor, weights: torch.Tensor) -> Any:
        joined = torch.cat([dense, *(table(rows, offsets) for table in self.tables)], 1)
        weighed = F.embedding_bag(pairs, self.tables[0].weight, mode="sum", per_sample_weights=weights)
        return F.layer_norm(torch.relu(joined), (128,)), weighed + dense, self.tables[1](pairs).tanh()


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)])
def test_bags_are_fused_with_what_stands_around_them(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Ranker(kind)
    values = (
        torch.randn(200, 32).to(kind), torch.randint(0, 500, (1500,)), offsets_of("ends", 200, 1500, 1)[:-1], torch.randint(0, 500, (200, 7)),
        torch.rand(200, 7).to(kind),
    )  # fmt: skip
    ir = captured(model, *values)
    kernels, optimized = fused(ir)
    assert [kernel.text.count("joined_bag<") for kernel in kernels] == [3, 1, 1]
    state = [p.detach() for p in model.parameters()]
    with torch.no_grad():
        plain, seen = model(*values), optimized(*values, *state)
        exact = model.double()(*(t.double() if t.is_floating_point() else t for t in values))
    for one, own, wide in zip(seen, plain, exact, strict=True):
        assert one.dtype == own.dtype == kind
        assert (one - wide).abs().max() <= 1.01 * (own - wide).abs().max() + 2 * torch.finfo(kind).eps


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from(["one", "ends", "any"]), st.sampled_from(["sum", "mean", "max", "min", "prod"]), st.sampled_from([None, 0.0, 1.5]),
    st.integers(1, 50), st.integers(1, 300), st.sampled_from([(), (1,), (5,), (16,), (3, 8)]), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_segments(
    kind: str, how: str, initial: float | None, count: int, total: int, inner: tuple[int, ...], by_lengths: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    x, offsets = torch.randn(total, *inner), offsets_of(kind, count, total, seed)
    x.view(-1)[0] = float("nan")
    given = {"lengths": offsets.diff()} if by_lengths else {"offsets": offsets}
    [name] = given
    agree(
        lambda x, where: torch.segment_reduce(x, how, initial=initial, **{name: where}).neg(), x, given[name],
        kernels=int(count * x[0].numel() > 1), exact=how in ("max", "min"),
    )  # fmt: skip


def test_what_is_left_to_torch() -> None:
    """Bags that others of the kernel would read several times are a kernel of their own; few long ones, and several results, are torch's."""
    torch.manual_seed(0)
    table, rows = torch.randn(300, 16), torch.randint(0, 300, (6000,))
    offsets = offsets_of("any", 40, 6000, 0)[:-1]

    def again(table: torch.Tensor, rows: torch.Tensor, offsets: torch.Tensor, wide: torch.Tensor) -> torch.Tensor:
        return wide * F.embedding_bag(rows, table, offsets).unsqueeze(1)

    kernels = agree(again, table, rows, offsets, torch.randn(40, 30, 16))
    assert len(kernels) == 2
    agree(lambda table, rows: F.embedding_bag(rows.view(4, 1500), table, mode="sum").exp(), table, rows, kernels=0)
    ir = captured(Bags(lambda table, rows, offsets: torch.embedding_bag(table, rows, offsets)[:3]), table, rows, offsets)
    assert not find(ir, BAG) and find(ir, aten.embedding_bag)


def test_a_bag_that_is_none_ends_the_kernel() -> None:
    """An index or a bound out of range is a trap, as torch's are errors; the text says so, since a trap ends the process."""
    table, rows = torch.randn(300, 16), torch.randint(0, 300, (600,))
    lengths = torch.full((60,), 10)
    bag = agree(lambda table, rows: F.embedding_bag(rows.view(60, 10), table).exp(), table, rows)[0]
    assert "row_at((long long)" in "".join(map(head, bag.heads))
    segments = [k for k in agree(lambda x, n: torch.segment_reduce(x, "sum", lengths=n).exp(), torch.randn(600, 16), lengths) if "bag" in k.text]
    assert "!= 600) __trap();" in segments[0].text
