"""`warpwright.ops`: what falls back to torch, what is refused, and on a Hopper GPU the whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import hopper_cpu
import pytest
import torch

from warpwright import ops
from warpwright.errors import UsageError
from warpwright.templates import plain_product

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


@pytest.mark.parametrize("question", ["_check_both", "_launch", "_by_slices", "_on_hopper", "worthwhile", "_plain", "_sliced"])
def test_a_small_product_is_torchs_without_a_question(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host needs 12 us for such a call, of which 0.24 are the 2 % that may be lost. (No profiler counts what is called: of Python 3.11.7 both kinds
    have stood still for good in a process of many tests.)"""

    def asked(*_: object, **__: object) -> None:
        raise AssertionError(question)

    monkeypatch.setattr(ops, question, asked)
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    assert torch.equal(ops.matmul_fp32(a, b), a @ b)


class OnGpu(torch.Tensor):
    """A tensor without values that says it is on a GPU."""

    is_cuda = True  # type: ignore[assignment]


def test_slices_are_weighed_once_for_such_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def worthwhile(a: torch.Tensor, b: torch.Tensor, prepared: bool) -> bool:
        asked.append((*a.shape, *b.stride(), int(prepared)))
        return prepared

    monkeypatch.setattr(ops, "_SLICED", {})
    monkeypatch.setattr(ops, "MOST_WAYS", 4)
    monkeypatch.setattr(ops, "_on_hopper", lambda x: True)
    monkeypatch.setattr(ops, "worthwhile", worthwhile)
    a, b = (torch.empty(size, device="meta").as_subclass(OnGpu) for size in ((64, 4096), (4096, 512)))
    for right in (b, b.mT.contiguous().mT):
        assert [ops._by_slices(a, right, prepared) for prepared in (True, False, True, False)] == [True, False] * 2
    assert asked == [(64, 4096, *stride, prepared) for stride in ((512, 1), (1, 4096)) for prepared in (1, 0)]
    assert ops._by_slices(a[1:], b, True) and len(ops._SLICED) == 1  # the fifth
    with pytest.raises(UsageError):
        ops._by_slices(a, b[1:], True)


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU in a Hopper GPU's place, for what `ops._launch` decides."""
    with hopper_cpu.plain_products_here(monkeypatch, 132):
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: -1, raising=False)
        monkeypatch.setattr(ops, "_on_hopper", lambda x: True)
        monkeypatch.setattr(ops, "_WAYS", {})
        yield


@pytest.mark.compiler
@pytest.mark.usefixtures("hopper")
def test_a_decision_holds_for_all_that_it_follows_from_and_for_nothing_else() -> None:
    a, b = torch.randn(40, 96), torch.randn(96, 33)
    launch = ops._launch(a, b)
    assert launch is not None and ops._launch(torch.randn(40, 96), torch.randn(96, 33)) is launch
    torch.testing.assert_close(launch(a, b), a @ b, rtol=1e-5, atol=2e-5)
    turned, wide, weight = a.T.contiguous().T, torch.randn(40, 100)[:, :96], torch.nn.Parameter(b)
    for left in (a, turned, wide):
        for right in (b, b.T.contiguous().T, weight.detach()):
            again = ops._launch(left, right)
            assert again is not None
            torch.testing.assert_close(again(left, right), left @ right, rtol=1e-5, atol=2e-5)
    assert ops._launch(a, weight.repeat_interleave(2, 1).detach()[:, ::2]) is None  # neither rows nor columns of b are contiguous
    assert ops._launch(a, torch.randn(96, 33, dtype=torch.float64).to(torch.float32)) is launch
    with torch.no_grad():
        assert ops._launch(a, weight) is not None
    assert ops._launch(a, weight) is None  # whose gradient is asked for: refused by the checks that follow
    for left, right in ((a.double(), b.double()), (a, b.bfloat16())):
        with pytest.raises(UsageError):
            ops._launch(left, right)
    with pytest.raises(UsageError):
        ops._launch(a, torch.randn(95, 33))


@pytest.mark.compiler
@pytest.mark.usefixtures("hopper")
def test_what_is_marked_as_negated_is_torchs() -> None:
    """A kernel that reads memory would give the other sign; strides and shapes are those of what is not marked, whose launch is kept."""
    z, b = torch.randn(1, 64, dtype=torch.complex64), torch.randn(64, 33)
    launch = ops._launch(z.imag, b)
    assert launch is not None
    torch.testing.assert_close(launch(z.imag, b), z.imag @ b, rtol=1e-5, atol=2e-5)
    assert z.conj().imag.is_neg() and ops._launch(z.conj().imag, b) is None


@pytest.mark.compiler
@pytest.mark.usefixtures("hopper")
def test_what_is_not_launched_as_plain_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(40, 96), torch.randn(96, 33)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert ops._launch(a, b) is None
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert ops._launch(a, b) is not None  # what a capture saw is not kept
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 1, raising=False)
    assert ops._launch(a, b) is None  # another GPU is the current one
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: -1, raising=False)

    class Marked(torch.Tensor):
        pass

    assert ops._launch(a.as_subclass(Marked), b) is None
    assert ops._launch(torch.empty(0, 96), b) is None and ops._launch(torch.randn(640, 640), torch.randn(640, 640)) is None

    def missing(*given: object) -> None:
        raise UsageError("expected NVIDIA's run-time compiler")

    monkeypatch.setattr(plain_product, "kernel", missing)
    assert ops._launch(a[:39], b) is None


@pytest.mark.usefixtures("hopper")
def test_decisions_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "MOST_WAYS", 3)
    monkeypatch.setattr(plain_product, "launch", lambda a, b: None)
    for size in range(1, 9):
        assert ops._launch(torch.empty(size, 4), torch.empty(4, 4)) is None
        assert ops._launch(torch.empty(4, 9)[:, size : size + 1], torch.empty(1, 4)) is None and len(ops._WAYS) <= 3
    for pitch in range(4, 12):
        ops._launch(torch.empty(5, pitch)[:, :4], torch.empty(4, 4))
    assert 0 < len(ops._WAYS[torch.Size((5, 4)), torch.Size((4, 4))] or {}) <= 3


@pytest.mark.cuda
@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
@pytest.mark.parametrize("stored", ["[k, n]", "[n, k]", "strided"])
@pytest.mark.parametrize(("m", "n", "k"), [(64,) * 3, (128,) * 3, (384,) * 3, (512,) * 3, (64, 1024, 1024), (131, 67, 1000), (1, 9, 5)])
def test_on_hopper_small_products_err_no_more_than_cublas(m: int, n: int, k: int, stored: str) -> None:
    generator = torch.Generator("cuda").manual_seed(m + n + k)
    a, b = torch.randn(m, k, device="cuda", generator=generator), torch.randn(k, n, device="cuda", generator=generator)
    b = {"[k, n]": b, "[n, k]": b.T.contiguous().T, "strided": b.repeat_interleave(2, 1)[:, ::2]}[stored]
    exact, theirs = a.double() @ b.double(), a @ b
    for right in (b, ops.prepare(b)):
        made = ops.matmul_fp32(a, right)
        assert made.stride() == theirs.stride() and made.dtype is torch.float32
        assert (made - exact).norm() <= (theirs - exact).norm() if k >= 64 else torch.allclose(made, theirs, rtol=1e-5, atol=1e-5)
    assert (ops._launch(a, b) is None) == (stored == "strided" and n > 1)


@pytest.mark.cuda
@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
def test_on_hopper_small_products_run_on_the_current_stream_and_in_graphs() -> None:
    a, b = torch.randn(96, 200, device="cuda"), torch.randn(200, 80, device="cuda")
    want = ops.matmul_fp32(a, b)
    torch.testing.assert_close(want, a @ b, rtol=1e-5, atol=1e-4)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        a.mul_(2)
        made = ops.matmul_fp32(a, b)
    stream.synchronize()
    assert torch.equal(made, 2 * want)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = ops.matmul_fp32(a, b)
        never_seen = ops.matmul_fp32(a[:95], b)
    a.mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(kept, 4 * want)
    torch.testing.assert_close(never_seen, 4 * want[:95], rtol=1e-5, atol=1e-4)
    a[3, 3] = torch.inf
    assert ops.matmul_fp32(a, b)[3].isinf().all()


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


def test_the_result_is_float32_under_autocast() -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    with torch.autocast("cpu", torch.bfloat16):
        seen = ops.matmul_fp32(a, b)
    torch.testing.assert_close(seen, a @ b)  # of the same type
