"""Fused CUDA kernels that read operands in other places (rolled, put together, padded, gathered), translated for the CPU, against torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import Function, Several
from tests.domains.graph.test_cuda import check, fused

pytestmark = pytest.mark.compiler

ROLLED: list[Function] = [
    lambda x: x.roll(1, 1) + x.roll(-1, 1) + x.roll(3, 2) + x.roll(-4, 2) - 4 * x,
    lambda x: (x.roll((2, -3), (0, 2)) * x).sum(-1),
    lambda x: torch.sin(x) * x.roll(1, 0),
]
PARTS: list[Function] = [
    lambda x: x * 2 + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * 3,
    lambda x: torch.relu(torch.cat((x, x.sigmoid(), x[:, :1] * 2), 1)) + 1,
    lambda x: F.layer_norm(torch.cat((x[..., 3:], x * x, x[..., :2].abs()), -1), (2 * x.shape[-1] - 1,)),
    lambda x: F.pad(x, (1, 2, 3, 0), value=0.5).exp() * 2,
    lambda x: F.pad(x * x, (4, 4)).sum(-1) + 1,
    lambda x: torch.cat((x.amax(-1, True), x), -1).tanh() * 2,
]
CHANNELS: list[Function] = [
    lambda x: F.silu(F.group_norm(torch.cat((x, x[:, :4] * 2), 1), 3)),
    lambda x: F.group_norm(torch.cat((x[:, :5], x[:, 1:].abs()), 1), 4) + 1,
    lambda x: F.instance_norm(F.pad(x, (1, 1, 1, 1)) * 2),
    lambda x: F.instance_norm(torch.cat((x, x[:, 3:] * 2), 1)),
]


def test_rolls() -> None:
    check(ROLLED, (3, 40, 64), ("normal",))
    check(ROLLED, (5, 30, 37), ("normal",))


def test_parts_of_a_larger_tensor() -> None:
    check(PARTS, (6, 20, 64), ("normal",))
    check(PARTS, (3, 33, 46), ("normal",))


def test_parts_of_groups_of_channels() -> None:
    check(CHANNELS, (3, 8, 12, 20), ("normal", "offset"))


def width_of(x: torch.Tensor) -> int:
    return x.shape[-1]


class Gathers(torch.nn.Module):
    """Sums of rows that indices choose, normalised or not."""

    def forward(self, table, wide, rows, lines):  # type: ignore[no-untyped-def]
        added = F.embedding(rows, table) + table[rows.flip(0)] * 2
        rising = wide.index_select(1, lines) * wide.index_select(1, lines).sigmoid()
        shuffled = torch.cat((wide[:, 0], wide[:, lines, lines % 20] * 2, wide[:, :, rows[0]].amax(1)), 1).relu()
        along = wide.gather(1, lines.reshape(1, 25, 1).expand(7, 25, width_of(wide))) + wide.gather(2, rows[None, :, :7].expand(7, 9, 7))[:, :1, :1]
        normal = F.layer_norm(added, (table.shape[-1],))
        return normal, torch.relu(table[rows]) + 1, rising, table[:, 3:][rows] * 2, shuffled, along, table.index_select(1, rows[1]).exp() * 2


@pytest.mark.parametrize("width", [64, 37])
def test_gathers(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    table, wide = torch.randn(50, width, generator=generator), torch.randn(7, 30, width, generator=generator)
    rows, lines = torch.randint(0, 30, (9, 20), generator=generator), torch.randint(0, 30, (25,), generator=generator)
    model = Gathers()
    given_ = (table, wide, rows, lines)
    kernels, optimized = fused(captured(model, *given_))
    assert any("row_at(" in kernel.text.split("extern")[-1] for kernel in kernels)
    for seen, plain in zip(optimized(*given_), model(*given_), strict=True):
        torch.testing.assert_close(seen, plain, rtol=1e-5, atol=1e-5)


def test_negative_indices_count_from_the_end() -> None:
    table, rows = torch.randn(40, 128), torch.tensor([[-1, 0, 39, -40] * 16])
    model = Several([lambda t, i: torch.relu(t[i]) * 2])  # type: ignore[list-item]
    _, optimized = fused(captured(model, table, rows))
    assert torch.equal(optimized(table, rows)[0], model(table, rows)[0])


def test_pairs_that_indices_choose_are_put_together_by_one_kernel() -> None:
    pairs = torch.triu_indices(9, 9, 1)
    x, products = torch.randn(150, 40), torch.randn(150, 9, 9)
    model = Several([lambda x, y, p: torch.cat([x, y[:, p[0], p[1]]], 1)])  # type: ignore[list-item]
    [kernel], optimized = fused(captured(model, x, products, pairs))
    assert "row_from_end(" in kernel.text
    assert torch.equal(optimized(x, products, pairs)[0], model(x, products, pairs)[0])


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2), st.lists(st.integers(1, 3), min_size=2, max_size=4), st.booleans(), st.integers(-9, 9))
def test_parts_and_rolls_of_any_sizes(dim: int, sizes: list[int], rounded: bool, shift: int) -> None:
    kind = torch.bfloat16 if rounded else torch.float32
    parts = [torch.randn([8 * n if d == dim else 24 for d in range(3)], dtype=kind) for n in sizes]

    class Model(torch.nn.Module):
        def forward(self, *parts):  # type: ignore[no-untyped-def]
            whole = torch.cat([part * (n + 1) for n, part in enumerate(parts)], dim)
            return torch.relu(whole) * 0.5, parts[0].roll(shift, dim) + parts[0]

    _, optimized = fused(captured(Model(), *parts))
    for seen, plain in zip(optimized(*parts), Model()(*parts), strict=True):
        torch.testing.assert_close(seen, plain)


FUNCTIONS: list[Function] = [
    lambda x: x.tan() + 1,
    lambda x: (x.sin() * 0.9).asin() * 2,
    lambda x: (x.sin() * 0.9).acos() * 2,
    lambda x: x.sinh() + 1,
    lambda x: x.cosh() - 1,
    lambda x: x.erfc() * 2,
    lambda x: (x.abs() + 1e-3).log10() * 2,
    lambda x: x.mul(10).round() + x,
]


def test_more_functions() -> None:
    check(FUNCTIONS, (40, 200), ("normal",))


class Expanded(torch.nn.Module):
    """Rows that are broadcast by an expansion, in parts and alone."""

    def forward(self, item, history):  # type: ignore[no-untyped-def]
        item = item.unsqueeze(1).expand_as(history)
        joined = torch.cat([item, history, item - history, item * history], -1)
        return joined.relu(), (item * history).sum(-1), item.exp() + 1, history.relu().amax(1, keepdim=True).expand(-1, 30, -1) * history


def test_expansions_are_read_as_they_lie() -> None:
    item, history = torch.randn(20, 64), torch.randn(20, 30, 64)
    kernels, optimized = fused(captured(Expanded(), item, history))
    assert not any(kernel.copied for kernel in kernels)
    for seen, plain in zip(optimized(item, history), Expanded()(item, history), strict=True):
        torch.testing.assert_close(seen, plain, rtol=1e-5, atol=1e-5)
