"""Fused CUDA kernels that resample or add at indices, translated for the CPU, against torch and float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import Function, Several
from tests.domains.graph.test_cuda import fused
from warpwright.domains.graph.cuda.kernel import DETERMINISTIC

pytestmark = pytest.mark.compiler

RESAMPLED: list[Function] = [
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    lambda x: F.interpolate(x, size=(30, 41), mode="bilinear", align_corners=True) * 2,
    lambda x: F.interpolate(x, scale_factor=(0.7, 1.6), mode="bilinear") + 1,
    lambda x: F.interpolate(x, scale_factor=(0.7, 1.6), mode="nearest-exact").relu(),
    lambda x: F.interpolate(x, scale_factor=3, mode="nearest").exp(),
    lambda x: F.interpolate(x[0], size=37, mode="linear").tanh(),
    lambda x: F.interpolate(x[:, :, None].expand(-1, -1, 5, -1, -1), size=(7, 30, 21), mode="trilinear") + 1,
    lambda x: F.interpolate(x.reshape(3, 2, 2, 20, 33), scale_factor=2, mode="trilinear", align_corners=True).relu(),
    lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    lambda x: F.interpolate(x, size=(30, 41), mode="bicubic", align_corners=True) * 2,
    lambda x: F.interpolate(x, scale_factor=(0.7, 1.6), mode="bicubic").tanh(),
    lambda x: F.interpolate(x.exp(), size=(1, 90), mode="bicubic") + 1,
    lambda x: F.silu(F.group_norm(torch.cat([F.interpolate(x, size=(40, 52), mode="bilinear"), F.interpolate(x, size=(40, 52))], 1), 2)),
]


def test_resampling() -> None:
    model, x = Several(RESAMPLED), torch.randn(3, 4, 20, 33)
    kernels, optimized = fused(captured(model, x))
    assert len(kernels) >= len(RESAMPLED) - 1  # two of one text are one
    for seen, plain, exact in zip(optimized(x), model(x), model(x.double()), strict=True):
        assert seen.shape == plain.shape
        assert (seen - exact).abs().max() <= 2 * (plain - exact).abs().max() + 1e-6


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 40), st.integers(1, 60), st.integers(2, 60), st.booleans(), st.booleans())
def test_cubic_resampling_of_any_sizes(planes: int, rows: int, columns: int, down: int, across: int, corners: bool, half: bool) -> None:
    x = torch.randn(planes, 8, rows, columns).to(torch.bfloat16 if half else torch.float32)
    model = Several([lambda x: F.interpolate(x, size=(down, across), mode="bicubic", align_corners=corners).relu()])
    kernels, optimized = fused(captured(model, x.repeat(1, 64, 1, 1)))
    assert len(kernels) == 1
    x = x.repeat(1, 64, 1, 1)
    seen, plain, exact = optimized(x)[0], model(x)[0], model(x.double())[0]
    assert seen.shape == plain.shape and seen.dtype == plain.dtype
    assert (seen - exact).abs().max() <= 2 * (plain - exact).abs().max() + 4 * torch.finfo(torch.float32).eps * exact.abs().max()


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(1, 40), st.integers(2, 60), st.integers(2, 60), st.sampled_from(["nearest", "nearest-exact", "linear", "corners"]))
def test_resampling_of_any_sizes(rows: int, before: int, after: int, mode: str) -> None:
    corners = True if mode == "corners" else False if mode == "linear" else None
    name = "linear" if mode == "corners" else mode
    x = torch.randn(7, rows * 16, before)
    model = Several([lambda x: F.interpolate(x, size=after, mode=name, align_corners=corners) * 2])
    _, optimized = fused(captured(model, x))
    seen, plain, exact = optimized(x)[0], model(x)[0], model(x.double())[0]
    assert seen.shape == plain.shape
    assert (seen - exact).abs().max() <= 2 * (plain - exact).abs().max() + 1e-6


class Sums(torch.nn.Module):
    """Rows and elements added where indices say, to zeros and to what is there."""

    def forward(self, x, source, target, base, places):  # type: ignore[no-untyped-def]
        sums = x.new_zeros(300, 40).index_add(0, target, torch.relu(x[source]))
        count = x.new_zeros(300).index_add(0, target, torch.ones_like(target, dtype=x.dtype))
        other = base.index_add(1, source[:40] % 7, x.exp() * 2)
        along = torch.zeros_like(x)[:, :25].contiguous().scatter_add(1, places, x.sin() + 1)
        return sums / count.clamp(min=1).unsqueeze(1), other, along, base


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_sums_at_indices(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    x, base, places = torch.randn(300, 40), torch.randn(300, 7), torch.randint(0, 25, (300, 40))
    source, target = torch.randint(0, 300, (5000,), dtype=kind), torch.randint(0, 300, (5000,), dtype=kind)
    model, values = Sums(), (x, source, target, base, places)
    kernels, optimized = fused(captured(model, *values))
    assert sum("atomicAdd(" in kernel.text for kernel in kernels) == 4
    assert all("row_at(" in kernel.text for kernel in kernels if "atomicAdd(" in kernel.text)  # an index out of range ends the kernel
    exact = model(*(t.double() if t.is_floating_point() else t for t in values))
    kept = base.clone()
    for seen, plain, truth in zip(optimized(*values), model(*values), exact, strict=True):
        assert (seen - truth).abs().max() <= 4 * (plain - truth).abs().max() + 1e-6
    assert torch.equal(base, kept)


class Joined(torch.nn.Module):
    """What else is joined at indices: from the end, with a factor, a row to several, the largest and the smallest."""

    def forward(self, x, index, each, base, bags, rows):  # type: ignore[no-untyped-def]
        put = torch.zeros(50, 40).index_put((index,), x * 2, accumulate=True)
        scaled = torch.zeros(50, 40).index_add(0, index.abs(), x.sin(), alpha=-0.5)
        total = base.scatter_reduce(0, each, x.exp(), "sum")
        high = base.scatter_reduce(0, each, x.cos(), "amax")
        low = base.scatter_reduce(0, each, x.relu(), "amin")
        wide = torch.zeros(90, 40).index_put((bags,), (rows * 3).unsqueeze(1).expand(30, 7, 40), accumulate=True)
        return put, scaled, total, high, low, wide


def test_what_is_joined_at_indices() -> None:
    torch.manual_seed(0)
    x, index, each = torch.randn(300, 40), torch.randint(-49, 50, (300,)), torch.randint(0, 50, (300, 40))
    x[3, 5], x[7, 1] = float("nan"), float("inf")
    model, values = Joined(), (x, index, each, torch.randn(50, 40), torch.randint(0, 90, (30, 7)), torch.randn(30, 40))
    kernels, optimized = fused(captured(model, *values))
    assert ["atomicAdd(" in kernel.text for kernel in kernels].count(True) == 4
    assert [any(f"{name}(&" in kernel.text for name in ("atomic_max", "atomic_min")) for kernel in kernels].count(True) == 2
    for seen, plain in zip(optimized(*values), model(*values), strict=True):
        torch.testing.assert_close(seen, plain, equal_nan=True, rtol=1e-5, atol=1e-5)


class Other(torch.nn.Module):
    """Means, joins that leave out what is there, and 16 bits."""

    def forward(self, x, half, index, each, base):  # type: ignore[no-untyped-def]
        mean = base.scatter_reduce(0, each, x.exp(), "mean")
        alone = x.new_zeros(50, 40).scatter_reduce(0, each, x * 2, "mean", include_self=False)
        high = base.scatter_reduce(0, each, x.cos(), "amax", include_self=False)
        rows = half.new_zeros(50, 40).index_add(0, index, half.exp(), alpha=2)
        more = base.to(half.dtype).index_put((index,), half * 3, accumulate=True)
        top = base.to(half.dtype).scatter_reduce(0, each, half.sin(), "amin")
        return mean, alone, high, rows, more, top


@pytest.mark.parametrize("kind", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)])
def test_other_forms_are_written_out(kind: torch.dtype) -> None:
    """In 16 bits the errors are at most those of torch, which rounds each addition."""
    torch.manual_seed(0)
    x = torch.randn(300, 40)
    values = (x, x.to(kind), torch.randint(0, 45, (300,)), torch.randint(0, 45, (300, 40)), torch.randn(50, 40).to(kind).float())
    kernels, optimized = fused(captured(Other(), *values))
    assert sum("atomic" in kernel.text for kernel in kernels) == 8, "two means have counts of their own"
    exact = Other()(*(t.double() if t.is_floating_point() else t for t in values))
    for seen, plain, truth in zip(optimized(*values), Other()(*values), exact, strict=True):
        assert seen.dtype == plain.dtype
        assert (seen - truth).abs().max() <= 1.01 * (plain - truth).abs().max() + 1e-6


@pytest.mark.slow
def test_what_is_no_join_of_all_stays_torchs() -> None:
    class Parts(torch.nn.Module):
        def forward(self, x, each, index):  # type: ignore[no-untyped-def]
            part = torch.zeros(50, 40).scatter_add(0, each[:200], x.exp())
            put = torch.zeros(300, 40).index_put((index,), x)
            masked = torch.zeros(300, 40).masked_scatter(x > 0, x.sin())
            return part, put, torch.zeros(300, 40).index_fill(0, index[:20], 2.0), masked

    torch.manual_seed(0)
    values = (torch.randn(300, 40), torch.randint(0, 50, (300, 40)), torch.randperm(300))
    kernels, optimized = fused(captured(Parts(), *values))
    assert not any("atomic" in kernel.text for kernel in kernels)
    assert not any(name in kernel.summary for kernel in kernels for name in ("index_put", "index_fill", "masked_scatter"))
    for seen, plain in zip(optimized(*values), Parts()(*values), strict=True):
        torch.testing.assert_close(seen, plain)


def test_sums_are_torchs_where_the_user_asks_for_an_order() -> None:
    """The kernel's additions come in any order; maxima do not need one."""

    class Both(torch.nn.Module):
        def forward(self, x, each, base):  # type: ignore[no-untyped-def]
            return base.scatter_add(0, each, x.exp()), base.scatter_reduce(0, each, x.cos(), "amax")

    torch.manual_seed(0)
    values = (torch.randn(300, 40), torch.randint(0, 50, (300, 40)), torch.randn(50, 40))
    kernels, optimized = fused(captured(Both(), *values))
    assert [DETERMINISTIC in kernel.python_text() for kernel in kernels] == ["atomicAdd(" in kernel.text for kernel in kernels]
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        for seen, plain in zip(optimized(*values), Both()(*values), strict=True):
            torch.testing.assert_close(seen, plain, rtol=1e-6, atol=1e-6)
    finally:
        torch.use_deterministic_algorithms(before)


class Compared(torch.nn.Module):
    """Integers beside small ones are compared as they are; beside any others by torch."""

    def forward(self, x, t, u):  # type: ignore[no-untyped-def]
        own = torch.arange(x.shape[1]) == t.unsqueeze(1)
        return torch.where(own, x.exp(), 0.0), torch.where((t != -100).unsqueeze(1), x, 1.0), torch.where((t < u).unsqueeze(1), x, 2.0)


def test_integers_are_compared_where_float32_holds_one_of_them() -> None:
    x, t = torch.randn(64, 100), torch.randint(0, 100, (64,))
    t[:3], u = torch.tensor([(1 << 24) + 1, -100, -(1 << 40)]), t + 1
    u[0] = 1 << 24
    model = Compared()
    kernels, optimized = fused(captured(model, x, t, u))
    assert [kernel.summary for kernel in kernels].count("lt, where") == 0
    assert any(kernel.summary == "eq, exp, where" for kernel in kernels)
    for seen, plain in zip(optimized(x, t, u), model(x, t, u), strict=True):
        torch.testing.assert_close(seen, plain)


def test_a_sum_that_is_read_again_stays_apart() -> None:
    class Again(torch.nn.Module):
        def forward(self, x, index):  # type: ignore[no-untyped-def]
            sums = torch.zeros_like(x).index_add(0, index, x * 2)
            return torch.relu(sums) + x

    x, index = torch.randn(200, 64), torch.randint(0, 200, (200,))
    kernels, optimized = fused(captured(Again(), x, index))
    assert len(kernels) == 2
    torch.testing.assert_close(optimized(x, index), Again()(x, index))


class Turned(torch.nn.Module):
    """The columns of what is joined, at indices that lie likewise."""

    def forward(self, x, base, places):  # type: ignore[no-untyped-def]
        return base.scatter_reduce(1, places.t(), (x * 2).t(), "amin")


def test_indices_are_put_into_order_by_torch() -> None:
    """A kernel of ours that copies a tensor into order holds numbers as floats."""
    torch.manual_seed(0)
    values = torch.randn(300, 40), torch.randn(40, 50), torch.randint(0, 50, (300, 40))
    kernels, optimized = fused(captured(Turned(), *values))
    assert any("atomic_min(" in kernel.text for kernel in kernels)
    assert torch.equal(optimized(*values), Turned()(*values))
