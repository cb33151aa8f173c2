"""tf32x3.cu on an emulated GPU (hopper_cpu.py): float32's error in every layout, and what TF32 cannot hold."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import hopper_cpu
import pytest
import torch

from warpwright.templates import tf32x3
from warpwright.templates.tf32x3 import SMALL

pytestmark = pytest.mark.compiler

SHORT = 1.8e-7
"""Beside the result: what cutting the factors in halves leaves out, however short a sum is."""
LAYOUTS = {"rows": lambda x: x, "columns": lambda x: x.mT.contiguous().mT, "every other": lambda x: x.repeat_interleave(2, -1)[..., ::2]}


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with hopper_cpu.in_place_of_a_gpu():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=4))
        tf32x3.kernel.cache_clear()
        yield
    tf32x3.kernel.cache_clear()


def drawn(kind: str, size: tuple[int, ...], seed: int) -> torch.Tensor:
    x = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    return {"normal": x, "positive": x.abs(), "exp": torch.exp(4 * x), "offset": x + 100, "large": x * 1e15}[kind]


def errors(seen: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """Return the RMS error of `seen` and that of float32 sums one after another, beside the result's RMS."""
    exact, own = a.double() @ b.double(), torch.zeros(a.shape[0], a.shape[1], b.shape[2])
    for term in range(a.shape[2]):
        own += a[:, :, term : term + 1] * b[:, term : term + 1]
    scale = exact.square().mean().sqrt()
    return tuple(float((x.double() - exact).square().mean().sqrt() / scale) for x in (seen, own))  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["normal", "positive", "exp", "offset", "large"])
def test_errs_as_float32_does(kind: str) -> None:
    a, b = drawn(kind, (1, 100, 512), 1), drawn(kind, (1, 512, 50), 2)
    ours, theirs = errors(tf32x3.product(a, b, SMALL, 1), a, b)
    assert ours <= max(theirs, SHORT), (ours, theirs)


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_layouts_and_edges(left: str, right: str) -> None:
    """No size a multiple of anything, two matrices, and the inner size in two parts."""
    a, b = LAYOUTS[left](drawn("normal", (2, 131, 45), 1)), LAYOUTS[right](drawn("normal", (2, 45, 67), 2))
    ours, theirs = errors(tf32x3.product(a, b, SMALL, 2), a, b)
    assert ours <= max(theirs, SHORT)


def test_more_than_a_band_of_tiles() -> None:
    a, b = drawn("normal", (1, 128 * 10, 16), 1), drawn("normal", (1, 16, 64), 2)
    ours, theirs = errors(tf32x3.product(a, b, SMALL), a, b)
    assert ours <= max(theirs, SHORT)


def test_infinite_factors_are_as_in_float32() -> None:
    a, b = drawn("normal", (1, 128, 20), 1), drawn("normal", (1, 20, 32), 2)
    b[:] = b.sign()  # no low parts: Inf times one of them would be NaN
    a[0, 3, 4], a[0, 5, 6], a[0, 7, 8] = float("inf"), float("nan"), 3.4e38
    seen, expected = tf32x3.product(a, b, SMALL), a @ b
    torch.testing.assert_close(seen, expected, equal_nan=True)
    assert seen[0, 3].isinf().all() and seen[0, 5].isnan().all() and seen[0, 7].isfinite().all()


@pytest.mark.parametrize("bits", [0x7FFFFFFF, -1, 0x7FFFF000, 0x7F800001, 0x7FC00000])
def test_every_nan_is_one_in_the_result(bits: int) -> None:
    """A device's own arithmetic gives the first."""
    a, b = drawn("normal", (1, 64, 20), 1), drawn("normal", (1, 20, 32), 2)
    of_rows, of_columns = a.clone(), b.clone()
    of_rows.view(torch.int32)[0, 5, 6] = of_columns.view(torch.int32)[0, 6, 5] = bits
    assert tf32x3.product(of_rows, b, SMALL)[0, 5].isnan().all()
    assert tf32x3.product(a, of_columns, SMALL)[0, :, 5].isnan().all()


@pytest.mark.parametrize("power", [-125, -115, -104])
def test_small_factors_keep_their_bits(power: int) -> None:
    a, b = drawn("normal", (1, 64, 20), 1) * 2.0**power, drawn("normal", (1, 20, 32), 2)
    exact = a.double() @ b.double()
    seen = tf32x3.product(a, b, SMALL)
    assert float(((seen.double() - exact).abs() / exact.abs().max()).max()) < 2e-6
    mixed = torch.cat([a, drawn("normal", (1, 64, 20), 3)], 2)  # beside ordinary factors they are nothing
    assert errors(tf32x3.product(mixed, torch.cat([b, b], 1), SMALL), mixed, torch.cat([b, b], 1))[0] < 2e-7


def test_nothing_to_sum() -> None:
    assert tf32x3.product(torch.empty(1, 3, 0), torch.empty(1, 0, 5)).tolist() == [[[0.0] * 5] * 3]
    assert tf32x3.product(torch.empty(2, 0, 4), torch.empty(2, 4, 5)).shape == (2, 0, 5)


def test_the_inner_size_is_cut_where_tiles_are_few() -> None:
    assert tf32x3.parts(4, 524288, 132) == 33 and tf32x3.parts(4, 1024, 132) == 2 and tf32x3.parts(100, 8192, 132) == 1


def test_long_sums_beside_a_row_with_inf_err_no_more_than_others() -> None:
    a, b = drawn("positive", (1, 128, 4096), 1), drawn("normal", (1, 4096, 32), 2)
    a[0, 5, 7] = float("inf")
    rest = [row for row in range(128) if row != 5]
    seen = tf32x3.product(a, b, SMALL, 1)[:, rest]
    assert errors(seen, a[:, rest], b)[0] < SHORT
