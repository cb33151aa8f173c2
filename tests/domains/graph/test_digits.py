"""Long rows and integers sorted, as kernels translated for the CPU, against torch's stable sort."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_orders import Sort, any_size, built
from tests.domains.graph.test_top_k import drawn
from warpwright.domains.graph.cuda.orders import digits
from warpwright.domains.graph.techniques.kernels.top_k import SORT

pytestmark = pytest.mark.compiler
slow = pytest.mark.slow
_ = any_size  # for all tests of this file

INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)


def integers(kind: str, rows: int, length: int, dtype: torch.dtype) -> torch.Tensor:
    """Return whole numbers: any, few values, one value, and those of a row's places."""
    info = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(length)
    if kind == "any":
        x = torch.randint(info.min, info.max, (rows, length), generator=generator, dtype=torch.int64)
        x[:, ::7] = info.min
        x[:, 3::11] = info.max
    elif kind == "few":
        x = torch.randint(-5 if info.min else 0, 60, (rows, length), generator=generator)
    elif kind == "same":
        x = torch.full((rows, length), 17)
    else:
        x = torch.arange(rows * length).reshape(rows, length).flip(-1) % info.max
    return x.to(dtype)


def agrees(model: Sort, optimized: Any, x: torch.Tensor, what: str) -> None:
    """Compare with torch's stable sort, zeros' signs and all; NaN by being one."""
    values, indices = torch.sort(x, stable=True, descending=model.options["descending"])
    expected = {"both": (values, indices), "values": (values,)}.get(model.what, (indices,))
    seen = optimized(x)
    for one, other in zip(seen if model.what == "both" else [seen], expected, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        if not one.is_floating_point():
            assert torch.equal(one, other), what
            continue
        assert torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(9e4), other.nan_to_num(9e4)), what
        assert torch.equal(one.signbit() & ~one.isnan(), other.signbit() & ~other.isnan()), what


@pytest.mark.parametrize(
    ("rows", "length", "dtype", "model"),
    [(2, 9001, torch.float32, Sort()), pytest.param(1, 70000, torch.float32, Sort(descending=True), marks=slow),
     pytest.param(3, 4097, torch.float32, Sort(what="values"), marks=slow),
     pytest.param(2, 12288, torch.float32, Sort(True, what="argsort"), marks=slow),
     pytest.param(3, 8191, torch.bfloat16, Sort(descending=True), marks=slow), pytest.param(2, 5000, torch.float16, Sort(stable=True), marks=slow),
     pytest.param(2, 6000, torch.float64, Sort(), marks=slow), pytest.param(3, 700, torch.float64, Sort(descending=True), marks=slow)],
)  # fmt: skip
def test_long_rows_of_floats(rows: int, length: int, dtype: torch.dtype, model: Sort) -> None:
    optimized, kernel = built(SORT, model, torch.randn(rows, length).to(dtype))
    assert kernel.heads == ("digits.h",) and (kernel.generated.flags > 0) == (length > 2048)
    for kind in ("normal", "ties", "constant", "special"):
        agrees(model, optimized, drawn(kind, rows, length).to(dtype), kind)


@pytest.mark.parametrize(
    ("length", "dtype", "model"),
    [(5000, torch.int32, Sort()), (1000, torch.int64, Sort(descending=True)), *(pytest.param(9000, dtype, Sort(), marks=slow) for dtype in INTEGERS),
     *(pytest.param(300, dtype, Sort(descending=True, what="argsort"), marks=slow) for dtype in INTEGERS[:-1]),
     pytest.param(2049, torch.int64, Sort(what="argsort"), marks=slow), pytest.param(512, torch.int64, Sort(what="values"), marks=slow),
     pytest.param(30, torch.int32, Sort(stable=True), marks=slow)],
)  # fmt: skip
def test_rows_of_integers(length: int, dtype: torch.dtype, model: Sort) -> None:
    optimized, _ = built(SORT, model, torch.zeros(3, length, dtype=dtype))
    for kind in ("any", "few", "same", "places"):
        agrees(model, optimized, integers(kind, 3, length, dtype), kind)


@slow
def test_many_rows_go_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "CHUNK_TILES", 5)
    optimized, kernel = built(SORT, Sort(), torch.randn(7, 5000))
    assert kernel.generated.launch.grid == 3 * 3 * (1 + 4 * 2)
    agrees(Sort(), optimized, drawn("normal", 7, 5000), "chunks")


@slow
def test_bool() -> None:
    optimized, _ = built(SORT, Sort(), torch.zeros(2, 5000, dtype=torch.bool))
    agrees(Sort(), optimized, drawn("normal", 2, 5000) > 0.3, "bool")


def test_which_sorts_are_taken() -> None:
    def taken(x: torch.Tensor) -> bool:
        return bool(list(SORT.sites(captured(Sort(), x))))

    assert taken(torch.randn(3, 4097)) and taken(torch.randn(1 << 20)) and taken(torch.zeros(4, 100, dtype=torch.int32))
    assert taken(torch.zeros(4, 512, dtype=torch.int64)) and not taken(torch.zeros(4, 511, dtype=torch.int64))
