"""`warpwright.ops`: what falls back to torch, what is refused, and on a Hopper GPU the whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from warpwright import ops
from warpwright.errors import UsageError

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


def test_on_a_cpu_it_is_torch() -> None:
    a, b = torch.randn(70, 600), torch.randn(600, 50)
    torch.testing.assert_close(ops.matmul_fp32(a, b), a @ b, rtol=0, atol=0)
    torch.testing.assert_close(ops.matmul_fp32(a, ops.prepare(b)), a @ b, rtol=0, atol=0)
    assert ops.matmul_fp32(torch.randn(0, 3), torch.randn(3, 4)).shape == (0, 4)
    assert not ops.matmul_fp32(torch.randn(2, 0), torch.randn(0, 4)).any()


def test_a_prepared_parameter_follows_its_updates() -> None:
    a, weight = torch.randn(3, 5), torch.nn.Parameter(torch.randn(4, 5))
    with torch.no_grad():
        prepared = ops.prepare(weight.T)
        weight.mul_(2)
        torch.testing.assert_close(ops.matmul_fp32(a, prepared), a @ weight.T, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        (torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 4), "dense float32 matrix"),
        (torch.ones(2, 3), torch.ones(3, 4, dtype=torch.bfloat16), "dense float32 matrix"),
        (torch.ones(5, 2, 3), torch.ones(3, 4), "dense float32 matrix"),
        (torch.ones(2, 3), torch.ones(3), "dense float32 matrix"),
        ([[1.0, 2.0]], torch.ones(2, 3), "saw list"), (torch.ones(2, 3), None, "saw NoneType"),
        (torch.ones(2, 3), torch.ones(3, 4).to_sparse(), "dense float32 matrix"),
        (torch.ones(2, 3), torch.ones(4, 3), r"a \[m, k\] and b \[k, n\]"),
        (torch.ones(2, 3), torch.ones(3, 4, device="meta"), "on one device"),
        (torch.ones(2, 3, requires_grad=True), torch.ones(3, 4), "without gradients"),
    ],
)
def test_what_is_refused(a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        ops.matmul_fp32(a, b)


def test_small_and_lopsided_products_stay_with_cublas() -> None:
    def chosen(m: int, n: int, k: int, prepared: bool = False) -> bool:
        return ops.worthwhile(torch.empty(m, k, device="meta"), torch.empty(n, k, device="meta").T, prepared)

    assert chosen(4096, 4096, 4096) and chosen(8192, 8192, 8192) and chosen(1024, 8192, 8192)
    assert chosen(128, 16384, 16384, prepared=True)
    assert not chosen(256, 256, 4096) and not chosen(4096, 4096, 256) and not chosen(64, 64, 16384)
    assert not chosen(1, 16384, 16384)  # cutting b costs more than the product
    assert not chosen(4096, 4096, 32768)  # sums of int32 would overflow
    assert not chosen(0, 4096, 4096)


ROWS = Path(__file__).parents[1] / "benchmarks" / "results" / "int8_product_h200" / "rows.jsonl"


def test_the_model_of_batches_and_pieces_agrees_with_what_was_measured() -> None:
    rows = [row for row in map(json.loads, ROWS.read_text().splitlines()) if row.get("table") == "batches"]
    assert len(rows) == 11
    for row in rows:
        m, n, k = (int(size) for size in row["m x n x k"].split(" x "))
        batch = (row["batches"],) if row["batches"] > 1 else ()
        a, b = torch.empty(*batch, m, k, device="meta"), torch.empty(*batch, *((n, k) if row["b"] == "[n, k]" else (k, n)), device="meta")
        arguments = (a, b.mT if row["b"] == "[n, k]" else b, row["b kept"] == "yes", row["pieces"])
        assert 0.8 < ops.estimate(*arguments) / (1000 * row["ms"]) < 1.5, row
        assert float(row["of cuBLAS"][:-1]) > 1.1 or not ops.worthwhile(*arguments), row


def test_a_product_is_cut_in_pieces_only_where_that_is_faster_than_the_whole() -> None:
    def pieces(m: int, n: int, k: int) -> int:
        a, b = torch.empty(m, k, device="meta"), torch.empty(n, k, device="meta").T
        best = ops.best_split(a, b, True)
        return best if ops.worthwhile(a, b, True, best) else 0

    assert pieces(128, 4096, 16384) == 4 and pieces(256, 4096, 16384) == 2
    assert pieces(256, 4096, 4096) == 1  # measured: 106 us as a whole, 167 in two pieces
    assert pieces(512, 512, 16384) == 0


@pytest.mark.cuda
@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
@pytest.mark.parametrize(("m", "n", "k"), [(2048, 2048, 2048), (1999, 2047, 3001), (2048, 2048, 20000)])
@pytest.mark.parametrize("stored", ["[k, n]", "[n, k]", "strided"])
def test_on_hopper_its_error_is_float32s(m: int, n: int, k: int, stored: str) -> None:
    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    b = {"[k, n]": b, "[n, k]": b.T.contiguous().T, "strided": b.repeat_interleave(2, 1)[:, ::2]}[stored]
    assert ops.worthwhile(a, b, False)
    exact = a.double() @ b.double()
    theirs = (a @ b - exact).norm()
    assert (ops.matmul_fp32(a, b) - exact).norm() <= theirs
    assert (ops.matmul_fp32(a, ops.prepare(b)) - exact).norm() <= theirs


@pytest.mark.cuda
@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
def test_on_hopper_inf_nan_and_updates() -> None:
    a, b = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda")
    a[5, 7], a[9, 1], b[3, 100] = torch.inf, torch.nan, -torch.inf
    prepared = ops.prepare(b)
    for factor in (1.0, 3.0):
        b.mul_(factor)
        made, want = ops.matmul_fp32(a, prepared), a @ b
        assert torch.equal(made.isnan(), want.isnan()) and torch.equal(made.isinf(), want.isinf())
        torch.testing.assert_close(made, want, rtol=1e-4, atol=1e-2, equal_nan=True)
