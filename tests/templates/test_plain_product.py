"""plain_product.cu on an emulated GPU (hopper_cpu.py): float32's error in every layout and size."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import hopper_cpu
import pytest
import torch

from warpwright.templates import plain_product
from warpwright.templates.plain_product import MANY, WIDE, Tile

pytestmark = pytest.mark.compiler

LAYOUTS = {"rows": lambda x: x, "columns": lambda x: x.T.contiguous().T, "every other": lambda x: x.repeat_interleave(2, -1)[..., ::2]}
TILES = {"many": MANY, "wide": WIDE}


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with hopper_cpu.plain_products_here(monkeypatch, 4):
        yield


def drawn(kind: str, size: tuple[int, int], seed: int) -> torch.Tensor:
    x = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    return {"normal": x, "positive": x.abs(), "exp": torch.exp(4 * x), "offset": x + 100, "large": x * 1e15, "small": x * 1e-18}[kind]


def errors(seen: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """Return the RMS error of `seen` and that of float32 sums one after another, beside the result's RMS."""
    exact, own = a.double() @ b.double(), torch.zeros(a.shape[0], b.shape[1])
    for term in range(a.shape[1]):
        own += a[:, term : term + 1] * b[term : term + 1]
    scale = exact.square().mean().sqrt()
    return tuple(float((x.double() - exact).square().mean().sqrt() / scale) for x in (seen, own))  # type: ignore[return-value]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("kind", ["normal", "positive", "exp", "offset", "large", "small"])
def test_errs_less_than_one_chain_of_float32_does(kind: str, tile: str) -> None:
    a, b = drawn(kind, (64, 256), 1), drawn(kind, (256, 64), 2)
    ours, theirs = errors(plain_product.product(a, b, TILES[tile]), a, b)
    assert ours <= (1.0 if kind == "exp" else 0.75) * theirs, (ours, theirs)


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_layouts_and_edges(left: str, right: str) -> None:
    """No size a multiple of anything; and one of a whole tile's size, whose rows are read 16 bytes at a time where they lie so."""
    for m, n, k in ((67, 45, 83), (64, 32, 128), (1, 7, 5), (33, 1, 1), (40, 36, 64)):
        a, b = LAYOUTS[left](drawn("normal", (m, k), 1)), LAYOUTS[right](drawn("normal", (k, n), 2))
        for tile in (MANY, WIDE):
            torch.testing.assert_close(plain_product.product(a, b, tile), a @ b, rtol=1e-5, atol=2e-5)


def test_matrices_that_do_not_begin_at_multiples_of_16_bytes_and_rows_that_are_one_row() -> None:
    store = drawn("normal", (65, 64), 1).flatten()
    a, b = store[1 : 64 * 64 + 1].view(64, 64), store[:64].expand(64, 64)
    torch.testing.assert_close(plain_product.product(a, b), a @ b, rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(plain_product.product(b, a), b @ a, rtol=1e-5, atol=2e-5)


def test_inf_and_nan_spread_as_in_torch() -> None:
    a, b = drawn("normal", (40, 70), 1), drawn("normal", (70, 50), 2)
    a[3, 7], a[9, 1], b[0, 4], b[69, 30] = torch.inf, torch.nan, -torch.inf, torch.nan
    seen, want = plain_product.product(a, b), a @ b
    assert torch.equal(seen.isnan(), want.isnan()) and torch.equal(seen.isinf(), want.isinf())


def test_nothing_to_sum() -> None:
    assert plain_product.product(torch.empty(3, 0), torch.empty(0, 5)).tolist() == [[0.0] * 5] * 3
    assert plain_product.product(torch.empty(0, 4), torch.empty(4, 5)).shape == (0, 5)


def test_the_host_gives_the_driver_the_same_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher in the driver's place takes them as the driver does, through the addresses, and runs the emulated kernel with them."""
    monkeypatch.undo()
    seen: list[tuple[int, ...]] = []
    pointers = ctypes.POINTER(ctypes.c_void_p)

    def launcher(kernel: int, *given: object) -> int:
        *launch, stream, places, _ = given
        formats = "PPPqqiiii"
        arguments = [struct.unpack(code, ctypes.string_at(places[i], struct.calcsize(code)))[0] for i, code in enumerate(formats)]  # type: ignore[index]
        seen.append((kernel, *launch, stream, *arguments))  # type: ignore[arg-type]
        return 0

    called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, pointers, pointers)(launcher)
    host = plain_product.host()
    fixed = (ctypes.c_longlong * 11)(plain_product._address(called), 77, 6, 256, 4096, 68, 1 << 33, 67, 45, 83, 0)
    for a, quick in ((1 << 40, 1), ((1 << 40) + 4, 0)):
        assert host(fixed, a, 1 << 41, 1 << 42, 99) == 0
        assert seen.pop() == (77, 6, 1, 1, 256, 1, 1, 4096, 99, a, 1 << 41, 1 << 42, 68, 1 << 33, 67, 45, 83, quick)
    fixed[10] = 1
    host(fixed, 1 << 40, 1 << 41, 1 << 42, 99)
    assert seen.pop()[-1] == 0


def test_what_is_plain_and_by_which_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what an H200 measured: 512 cubed gains, 640 cubed would not, nor would a vector's product of many terms."""
    assert all(plain_product.worthwhile(*sizes) for sizes in ((64, 64, 64), (512, 512, 512), (128, 1024, 1024), (16, 16, 16), (1, 1024, 256)))
    assert not any(plain_product.worthwhile(*sizes) for sizes in ((640, 640, 640), (1, 1024, 1024), (64, 64, 4096), (0, 64, 64), (2048, 2048, 64)))
    chosen: list[Tile] = []
    monkeypatch.setattr(plain_product, "_multiprocessors", lambda device: 132)
    monkeypatch.setattr(plain_product, "kernel", lambda device, tile, *terms: chosen.append(tile))
    for m, n, k in ((128, 1024, 1024), (512, 512, 512), (64, 64, 64), (256, 1024, 1024), (131, 67, 1000)):
        plain_product.launch(torch.empty(m, k), torch.empty(k, n))
    assert chosen == [WIDE, MANY, MANY, MANY, MANY]
    for m, n, k, taken in ((128, 1024, 1024, False), (512, 512, 512, True)):  # cuBLAS errs as little where a lies by columns
        assert (plain_product.launch(torch.empty(k, m).T, torch.empty(k, n)) is not None) is taken
