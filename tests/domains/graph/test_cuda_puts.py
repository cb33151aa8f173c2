"""Fused CUDA kernels that put elements where indices say, or join them by products and by rows, translated for the CPU, against torch and float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cuda import fused
from warpwright.domains.graph.cuda.kernel import DETERMINISTIC

pytestmark = pytest.mark.compiler


class Puts(nn.Module):
    """Elements by an index each, rows by one, rows of another dimension, of a tensor of indices, and rows that are chosen by others."""

    def forward(self, x: Any, each: Any, index: Any, cache: Any, place: Any, grid: Any, rows: Any, new: Any) -> Any:
        elements = torch.zeros_like(x).scatter(0, each, x.exp())
        copied = x.index_copy(0, index.long(), rows.sin() * 2)
        kept = cache.clone()
        kept[:, :, place] = (new * 0.5).tanh()
        many = x.new_zeros(90, 40).index_put((grid,), x.view(30, 10, 40).relu())
        moved = torch.zeros_like(x).index_put((index,), x[index.flip(0)])
        return elements, copied, kept, many, moved


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("small", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_elements_are_put_where_indices_say(kind: torch.dtype, small: bool) -> None:
    torch.manual_seed(0)
    each = torch.stack([torch.randperm(300) for _ in range(40)], 1)  # each place at most once: of several torch promises no order on a GPU
    index, grid = torch.randperm(300), torch.arange(90).repeat(4)[:300].view(30, 10)
    x, new = torch.randn(90, 40).to(kind).repeat(4, 1)[:300], torch.randn(2, 5, 12, 8).to(kind)  # what comes to one place is the same number
    cache, place = torch.randn(2, 5, 133, 8).to(kind), torch.tensor([-1, *range(3, 14)])
    values = [x, each, index[:15], cache, place, grid, torch.randn(15, 40).to(kind), new]
    if small:
        values = [t.int() if i in (2, 4, 5) else t for i, t in enumerate(values)]
    kernels, optimized = fused(captured(Puts(), *values))
    puts = [kernel for kernel in kernels if " put(&q" in kernel.text]
    assert len(puts) == 5 and all(DETERMINISTIC in kernel.python_text() for kernel in puts)
    assert all("row_at(" in kernel.text or "row_from_end(" in kernel.text for kernel in puts)  # an index out of range ends the kernel
    exact = Puts()(*(t.double() if t.is_floating_point() else t for t in values))
    for seen, plain, truth in zip(optimized(*values), Puts()(*values), exact, strict=True):
        assert seen.dtype == plain.dtype
        limit = 1.01 * (plain - truth).abs().max() + 2 * torch.finfo(torch.float32).eps * truth.abs().max()
        assert (seen - truth).abs().max() <= limit


def test_of_several_in_one_place_one_stays() -> None:
    class Put(nn.Module):
        def forward(self, base: Any, index: Any, x: Any) -> Any:
            return base.index_put((index,), x * 2)

    values = torch.zeros(7, 64), torch.randint(0, 5, (100,)), torch.randn(100, 64)
    _, optimized = fused(captured(Put(), *values))
    seen = optimized(*values)
    assert torch.equal(seen[5:], values[0][5:])
    for row in range(5):
        own = 2 * values[2][values[1] == row]
        assert (own == seen[row]).any(0).all() if len(own) else torch.equal(seen[row], values[0][row])


class Joins(nn.Module):
    """Products by an index each, and what is joined row by row."""

    def forward(self, base: Any, each: Any, index: Any, x: Any) -> Any:
        products = [base.scatter_reduce(0, each, x.cos(), "prod", include_self=own) for own in (True, False)]
        rows = [base.index_reduce(0, index, x.exp(), how, include_self=own) for how in ("prod", "mean", "amax", "amin") for own in (True, False)]
        across = [base.t().contiguous().index_reduce(1, index, (x * 2).t().contiguous(), "amax")]
        return (*products, *rows, *across)


@pytest.mark.parametrize("spread", [1, 40, 64])
def test_products_and_rows_are_joined_as_torchs_are(spread: int) -> None:
    torch.manual_seed(spread)
    values = torch.randn(64, 40), torch.randint(0, spread, (120, 40)), torch.randint(0, spread, (120,)), torch.randn(120, 40) * 0.3
    kernels, optimized = fused(captured(Joins(), *values))
    assert sum("atomic_mul(" in kernel.text for kernel in kernels) == 2  # those of one text are one
    exact = Joins()(*(t.double() if t.is_floating_point() else t for t in values))
    for number, (seen, plain, truth) in enumerate(zip(optimized(*values), Joins()(*values), exact, strict=True)):
        assert (seen - truth).abs().max() <= 2 * (plain - truth).abs().max() + 1e-6 * truth.abs().max(), number


@pytest.mark.parametrize("kind", [torch.bfloat16])
def test_products_of_16_bits_are_rounded_once(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    values = torch.randn(64, 40).to(kind), torch.randint(0, 40, (120, 40)), torch.randint(0, 40, (120,)), (torch.randn(120, 40) * 0.3).to(kind)
    _, optimized = fused(captured(Joins(), *values))
    exact = Joins()(*(t.double() if t.is_floating_point() else t for t in values))
    for seen, plain, truth in zip(optimized(*values), Joins()(*values), exact, strict=True):
        assert seen.dtype == plain.dtype
        assert (seen - truth).abs().max() <= 1.01 * (plain - truth).abs().max() + 1e-6
