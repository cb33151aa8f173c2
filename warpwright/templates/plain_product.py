"""Float32 products by plain sums for small results, whose call costs a host less than cuBLAS's (plain_product.cu). GPUs from Ampere on."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import torch

from warpwright import native
from warpwright.errors import UsageError
from warpwright.templates import driver
from warpwright.templates.sources import text


class Tile(NamedTuple):
    """Parameters of the kernel (their meaning is in plain_product.cu)."""

    results: int = 4
    side: int = 8
    groups: int = 4
    step: int = 64

    @property
    def size(self) -> int:
        """Rows and columns."""
        return self.results * self.side

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.side * self.side * self.groups

    def shared(self, a_terms: bool, b_terms: bool) -> int:
        """Dynamic shared memory, bytes: a slice of both operands, and later the groups' sums."""
        held = sum(self.size * (self.step + 4) if terms else self.step * (self.size + 4) for terms in (a_terms, b_terms))
        return 4 * max(held, self.groups * self.size**2)


MANY, WIDE = Tile(), Tile(8, 4, 16, 128)
"""In general; where one tile at most for each multiprocessor has many terms."""
MOST_TERMS, LEAST_TILES = 768, 48
"""Of `MANY`, and of `WIDE`: where tiles are fewer cuBLAS cuts k in many parts, and errs as little as the 16 shares of a wide tile (1.5e-7 by the
model of docs/ops.md, where `MANY` errs by 1.0e-7)."""


class Side(NamedTuple):
    """How the kernel reads an operand: elements from line to line, whether terms are contiguous, and whether lines begin at multiples of 16 bytes."""

    pitch: int
    terms: bool
    quick: bool

    @staticmethod
    def of(x: torch.Tensor, term: int) -> Side | None:
        """Return it for a matrix whose axis `term` (0 or 1) is summed over; None where neither its rows nor its columns are contiguous."""
        strides, close = x.stride(), [1 in (size, stride) for size, stride in zip(x.shape, x.stride(), strict=True)]
        if not any(close):
            return None
        pitch = strides[1 - term] if close[term] else strides[term]
        return Side(pitch, close[term], pitch % 4 == 0)


HOST = """
typedef int (*launcher)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
enum { LAUNCHER, KERNEL, GRID, THREADS, SHARED, A_PITCH, B_PITCH, M, N, K, SLOW };

extern "C" int launch(const long long* fixed, unsigned long long a, unsigned long long b, unsigned long long c, void* stream) {
    long long pitches[2] = {fixed[A_PITCH], fixed[B_PITCH]};
    int sizes[4] = {(int)fixed[M], (int)fixed[N], (int)fixed[K], ((a | b | fixed[SLOW]) & 15) == 0};
    void* places[] = {&a, &b, &c, pitches, pitches + 1, sizes, sizes + 1, sizes + 2, sizes + 3};
    return ((launcher)fixed[LAUNCHER])((void*)fixed[KERNEL], fixed[GRID], 1, 1, fixed[THREADS], 1, 1, fixed[SHARED], stream, places, nullptr);
}
"""
"""What launches the kernel from the host: 3 us less than from Python on an H200's host, where the driver's call takes 5 to 7."""


class Launch:
    """The product of matrices of two given shapes and strides on a GPU, which has to be the current one: `launch(a, b)`, on the current stream."""

    __slots__ = ("device", "fixed", "grid", "host", "kernel", "numbers", "shape", "slow", "strides")

    def __init__(self, a: torch.Tensor, b: torch.Tensor, left: Side, right: Side, tile: Tile | None = None) -> None:
        """Choose the tile, unless it is given, and load the kernel."""
        (m, k), n, self.device = a.shape, b.shape[1], a.get_device()
        tile = tile or chosen(m, n, k, self.device)
        self.shape, self.strides, self.grid = (m, n), (n, 1), tiles(m, n, tile)
        self.kernel, self.host = kernel(self.device, tile, left.terms, right.terms), host()
        self.numbers = (left.pitch, right.pitch, m, n, k)
        self.slow = 0 if left.quick and right.quick else 1
        """16 bytes are read at a time where the last four bits of both addresses are zero, and these."""
        handles = (_address(driver.driver().cuLaunchKernel), self.kernel.function.value or 0) if self.host else (0, 0)
        self.fixed = (ctypes.c_longlong * 11)(*handles, self.grid, tile.threads, tile.shared(left.terms, right.terms), *self.numbers, self.slow)

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b."""
        at, other = a.data_ptr(), b.data_ptr()
        out = a.new_empty_strided(self.shape, self.strides)  # takes two thirds of what new_empty does
        stream = torch._C._cuda_getCurrentRawStream(self.device)
        if self.host is None or self.host(self.fixed, at, other, out.data_ptr(), stream):  # what fails is said, or mended, by the driver's own
            self.kernel(self.grid, stream, at, other, out.data_ptr(), *self.numbers, not (at | other | self.slow) & 15)
        return out


@functools.cache
def host() -> Any:
    """Return HOST's function; None where there is no compiler, or no folder to keep it in: then Python launches."""
    try:
        launch = native.load(native.build(HOST, flags=("-O2", "-shared", "-fPIC"))).launch
    except (UsageError, native.BuildError, OSError):
        return None
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_ulonglong] * 3, ctypes.c_void_p]
    return launch


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


MOST_SLICES, OF_VECTORS = 16, 4
"""Slices that a multiprocessor may multiply: 0.74 us each and 2 in all, so that a product takes 14 us at most. A host needs 11 to 16 us to call
cuBLAS (results/int8_product_h200), 9 for a vector: of fewer than 16 rows or columns four slices."""


def worthwhile(m: int, n: int, k: int) -> bool:
    """Should a product of these sizes take a GPU (an H200: 132 multiprocessors) less time than calling cuBLAS takes its host?"""
    most = MOST_SLICES if min(m, n) >= 16 else OF_VECTORS
    return m * n * k > 0 and -(-tiles(m, n) // 132) * -(-k // MANY.step) <= most


def chosen(m: int, n: int, k: int, device: int) -> Tile:
    """Return the tile for a product of these sizes."""
    return WIDE if k > MOST_TERMS and LEAST_TILES <= tiles(m, n) <= _multiprocessors(device) else MANY


def launch(a: torch.Tensor, b: torch.Tensor) -> Launch | None:
    """Return what multiplies matrices laid out as a [m, k] and b [k, n], none of them empty; None where cuBLAS should.

    That is where neither rows nor columns are contiguous, and where many terms meet a stored by columns: there cuBLAS erred as little as a wide tile
    does (128 x 1024 x 1024: the norms agree within a twentieth, ours the larger; with a stored by rows ours is 0.77 of cuBLAS's).
    """
    left, right = Side.of(a, 1), Side.of(b, 0)
    if left is None or right is None:
        return None
    tile = chosen(a.shape[0], b.shape[1], a.shape[1], a.get_device())
    return Launch(a, b, left, right, tile) if left.terms or tile is not WIDE else None


def tiles(m: int, n: int, tile: Tile = MANY) -> int:
    """Return of how many tiles a result [m, n] is made."""
    return -(-m // tile.size) * -(-n // tile.size)


@driver.on_its_device
def product(a: torch.Tensor, b: torch.Tensor, tile: Tile | None = None) -> torch.Tensor:
    """Return a @ b, float32 [m, n], for float32 a [m, k] and b [k, n] of any strides on a GPU, on its current stream."""
    left, right = Side.of(a, 1), Side.of(b, 0)
    if left is None or right is None:
        return product(a if left else a.contiguous(), b if right else b.contiguous(), tile)
    if not a.shape[0] * b.shape[1] * a.shape[1]:
        return a.new_zeros(a.shape[0], b.shape[1])
    return Launch(a, b, left, right, tile)(a, b)


@functools.cache
def kernel(device: int, tile: Tile, a_terms: bool, b_terms: bool) -> driver.Kernel:
    """Return the kernel, built and loaded once."""
    with torch.cuda.device(device):
        major, minor = torch.cuda.get_device_capability(device)
        macros = {"R": tile.results, "SIDE": tile.side, "GROUPS": tile.groups, "STEP": tile.step, "A_TERMS": int(a_terms), "B_TERMS": int(b_terms)}
        code = driver.machine_code(text("plain_product.cu"), f"{major}{minor}", [f"{name}={value}" for name, value in macros.items()])
        return driver.Kernel(code, "plain_product", "PPPqqiiii", tile.threads, tile.shared(a_terms, b_terms))


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
