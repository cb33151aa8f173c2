"""Float32 matrices cut into INT8 slices, and their products on Hopper's tensor cores (int8_product.cu, int8_slices.cu)."""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import torch

from warpwright.errors import UsageError
from warpwright.templates import driver
from warpwright.templates.sources import text

# --- generated programs hold what follows

LONGEST = 24576
"""Of a row: past it an int32 sum of order 4 could overflow."""
SLICES = 5
SHORT = 1024
"""Rows up to this length are cut by one warp each, longer ones by eight."""
MATRIX = "PqqqPPPPPPPPPPPiiii"
"""`struct Matrix` of int8_slices.cu, as the struct module writes it."""
NO_MATRIX = bytes(struct.calcsize(MATRIX))


class Tiles(NamedTuple):
    """Parameters of the product's kernel (their meaning is in int8_product.cu)."""

    columns: int = 128
    """64 or 128."""
    slots: int = 6
    group: int = 8
    watchdog: bool = False
    probe: int = 0

    def defines(self) -> list[str]:
        """Return the macros."""
        values = {"BN": self.columns, "SLOTS": self.slots, "GROUP": self.group, "PROBE": self.probe}
        return [*(f"{name}={value}" for name, value in values.items()), *(["WATCHDOG=1"] if self.watchdog else [])]

    @property
    def shared(self) -> int:
        """Dynamic shared memory, bytes: the slots, and room to align them."""
        return self.slots * (128 + self.columns) * 128 + 1024


TILES = Tiles()


class Layout(NamedTuple):
    """Where the parts of a sliced matrix lie in its memory: offsets in bytes, in the order of `struct Matrix`."""

    slices: int
    inverse: int
    stats: int
    blocks: int
    worst: int
    flags: int
    done: int
    norms: int
    floors: int
    row_chunks: int
    chunks: int
    end: int

    @staticmethod
    @functools.lru_cache
    def of(rows: int, padded: int) -> Layout:
        """Return the layout of `rows` rows of `padded` bytes a slice."""
        blocks, words = -(-rows // 128), -(-padded // 4096)
        described = (8 * rows, 8 * rows, 8 * blocks, 16, 4 * rows, 4 * -(-rows // 16))
        sizes = (SLICES * rows * padded, *described, 4 * rows, 4 * blocks, 4 * rows * words, 4 * blocks * words)
        return Layout(*(sum(sizes[:count]) for count in range(len(sizes) + 1)))


class SlicedMatrix:
    """A float32 matrix [rows, k] on a GPU, or several [batches, per, k], and the memory of its slices; `fill` writes them.

    The last two slices are written when a product first needs them, on the device, without the host knowing.
    """

    def __init__(self, source: torch.Tensor, memory: torch.Tensor | None = None) -> None:
        """Allocate, or take the memory of slices that are there. A copy of `source` is kept where neither its rows nor its columns are contiguous."""
        if source.dim() not in (2, 3) or source.dtype != torch.float32 or not source.is_cuda:
            raise UsageError(f"expected a float32 matrix on a GPU, saw {source.dtype} of shape {tuple(source.shape)} on {source.device}")
        self.batches, self.per, k = shape = (1, *source.shape)[-3:]
        if not 0 < k <= LONGEST or not self.batches * self.per or (self.batches > 1 and self.per % 128):
            said = f"expected rows of 1 to {LONGEST} elements, of several matrices a multiple of 128, saw a tensor of shape {tuple(source.shape)}"
            raise UsageError(said, "use torch for such a product")
        self.source = source if 1 in source.stride()[-2:] else source.contiguous()
        self.rows, self.k, self.padded, self.device = self.batches * self.per, k, -(-k // 128) * 128, source.device.index
        self.strides = self.source.view(shape).stride()
        self.by_rows = self.strides[2] == 1
        """Whether rows are contiguous; else columns are."""
        self.layout = Layout.of(self.rows, self.padded)
        self.memory = torch.empty(self.layout.end, dtype=torch.uint8, device=source.device) if memory is None else memory

    @property
    def record(self) -> bytes:
        """The matrix as the kernels take it."""
        at, layout, sizes = self.memory.data_ptr(), self.layout, (self.rows, self.padded, self.per, self.batches)
        return struct.pack(MATRIX, self.source.data_ptr(), *self.strides, *(at + part for part in layout[:-1]), *sizes)

    @property
    def slices(self) -> torch.Tensor:
        """int8 [5, rows, k rounded up to 128]."""
        return self.memory[: self.layout.inverse].view(torch.int8).view(SLICES, self.rows, self.padded)

    @property
    def inverse(self) -> torch.Tensor:
        """float64 [rows]: 2^-8 over the scale."""
        return self.memory[self.layout.inverse : self.layout.stats].view(torch.float64)

    @property
    def blocks(self) -> torch.Tensor:
        """float32 [rows / 128, 2]: what `tile_level` reads."""
        return self.memory[self.layout.blocks : self.layout.worst].view(torch.float32).view(-1, 2)

    def map_of(self, rows: int) -> bytes:
        """Return the copy engine's description of the slices in boxes of `rows` rows."""
        sizes = (self.padded, self.rows, SLICES)
        return driver.tensor_map(self.memory.data_ptr(), sizes, (sizes[0], sizes[0] * sizes[1]), (128, rows, 1))


def fill(a: SlicedMatrix, b: SlicedMatrix | None = None) -> None:
    """Cut one matrix, or the two of a product in the same launches, on the current stream."""
    stream, kernels = torch.cuda.current_stream().cuda_stream, passes(a.device)
    both = [a] if b is None else [a, b]
    records = [matrix.record for matrix in both]
    by_rows = [(matrix, record) for matrix, record in zip(both, records, strict=True) if matrix.by_rows]
    if by_rows:
        warps = 8 if a.k > SHORT else 1
        grid = sum(-(-matrix.rows // (8 // warps)) for matrix, _ in by_rows)
        kernels[f"slice_rows_{warps}"](grid, stream, by_rows[0][1], by_rows[1][1] if len(by_rows) > 1 else NO_MATRIX, a.k)
    for matrix, record in zip(both, records, strict=True):
        if not matrix.by_rows:
            kernels["slice_columns"](-(-matrix.rows // 16), stream, record, a.k)
    kernels["summarise"](len(both), stream, records[0], records[-1])


@driver.on_its_device
def cut(source: torch.Tensor) -> SlicedMatrix:
    """Return a float32 matrix [rows, k] with its slices."""
    matrix = SlicedMatrix(source)
    fill(matrix)
    return matrix


def product(a: SlicedMatrix, b: SlicedMatrix, out: torch.Tensor, tiles: Tiles = TILES, level: int = 0) -> torch.Tensor:
    """Write a @ b.T into out [m, n], rows contiguous, and return it; `level` (3, 4 or 5) replaces the rule that chooses one for each tile.

    Of several matrices each is multiplied by the other side's of its number, into out [batches * m, n].
    """
    m, n, k, device, batches = a.rows, b.per, a.k, a.device, a.batches
    stream, sms, kernels, left, right = torch.cuda.current_stream().cuda_stream, _multiprocessors(device), passes(device), a.record, b.record
    kernels["slice_more"](-(-m // 16) + -(-b.rows // 16), stream, left, right, k, level)
    at, other, pitch, count = a.memory.data_ptr(), b.memory.data_ptr(), out.stride(-2), -(-m // 128) * -(-n // tiles.columns)
    suspects = torch.empty(count, dtype=torch.int64, device=a.memory.device)
    product_kernel(device, tiles)(
        min(sms, count), stream, a.map_of(128), b.map_of(tiles.columns), out.data_ptr(), pitch,
        at + a.layout.inverse, other + b.layout.inverse, at + a.layout.blocks, other + b.layout.blocks, at + a.layout.chunks, other + b.layout.chunks,
        at + a.layout.norms, other + b.layout.norms, other + b.layout.floors, suspects.data_ptr(), at + a.layout.worst + 12, m, n, k, level, batches,
    )  # fmt: skip
    kernels["plain_rows"](4 * sms, stream, left, right, out.data_ptr(), pitch, k, suspects.data_ptr(), tiles.columns, level)
    return out


@functools.cache
def product_kernel(device: int, tiles: Tiles) -> driver.Kernel:
    """Return the product's kernel, built and loaded once."""
    with torch.cuda.device(device):
        code = driver.machine_code(text("int8_product.cu"), "90a", tiles.defines())
        return driver.Kernel(code, "int8_product", ("128s", "128s", *"PqPPPPPPPPPPPiiiii"), 384, tiles.shared)


@functools.cache
def passes(device: int) -> dict[str, driver.Kernel]:
    """Return the other kernels by name."""
    matrix = f"{len(NO_MATRIX)}s"
    with torch.cuda.device(device):
        codes = {warps: driver.machine_code(text("int8_slices.cu"), "90a", [f"WARPS={warps}"]) for warps in (1, 8)}
        cuts = {f"slice_rows_{warps}": driver.Kernel(code, "slice_rows", (matrix, matrix, "i"), 256) for warps, code in codes.items()}
        rest = {"summarise": (matrix, matrix), "slice_more": (matrix, matrix, "i", "i"), "plain_rows": (matrix, matrix, *"PqiPii")}
        columns = driver.Kernel(codes[8], "slice_columns", (matrix, "i"), 512)
        return cuts | {"slice_columns": columns} | {name: driver.Kernel(codes[8], name, formats, 256) for name, formats in rest.items()}


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@driver.on_its_device
def linear(x: torch.Tensor, rows: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
    """Return x @ rows.T for x [..., k] and rows [n, k], or for x [batches, m, k] and rows [batches, n, k], m and n multiples of 128.

    `memory`: that of the slices of `rows`, where they are there.
    """
    left, right = SlicedMatrix(x if rows.dim() == 3 else x.reshape(-1, x.shape[-1])), SlicedMatrix(rows, memory)
    fill(left, right if memory is None else None)
    out = torch.empty(*x.shape[:-1], right.per, device=x.device)
    product(left, right, out.view(left.rows, right.per))
    return out
