"""Float32 matrices cut into INT8 slices, and their products on Hopper's tensor cores (int8_product.cu, int8_slices.cu)."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from warpwright.errors import UsageError
from warpwright.templates import driver

LONGEST = 24576
"""Of a row: past it an int32 sum of order 4 could overflow."""
SLICES = 5


@dataclass(frozen=True)
class Tiles:
    """Parameters of the product's kernel (their meaning is in int8_product.cu)."""

    columns: int = 128
    """64 or 128."""
    slots: int = 7
    cluster: int = 1
    """1 or 2."""
    a_in_registers: bool = False
    group: int = 8
    watchdog: bool = False
    probe: int = 0

    def defines(self) -> list[str]:
        """Return the macros."""
        values = {
            "BN": self.columns, "SLOTS": self.slots, "CLUSTER": self.cluster, "A_IN_REGISTERS": int(self.a_in_registers),
            "GROUP": self.group, "PROBE": self.probe,
        }  # fmt: skip
        return [*(f"{name}={value}" for name, value in values.items()), *(["WATCHDOG=1"] if self.watchdog else [])]

    @property
    def shared(self) -> int:
        """Dynamic shared memory, bytes: the slots, and room to align them."""
        return self.slots * (128 + self.columns) * 128 + 1024


def text(name: str) -> str:
    """Return the CUDA text of a template with its own headers in place."""
    folder = Path(__file__).parent
    return re.sub(r'#include "(\w+\.h)"', lambda match: (folder / match[1]).read_text(), (folder / name).read_text())


@dataclass(frozen=True, eq=False)
class SlicedMatrix:
    """A float32 matrix [rows, k] with its slices; `refresh` after the matrix has changed.

    The last two slices are written when a product first needs them, on the device, without the host knowing.
    """

    source: torch.Tensor
    """[rows, k], rows contiguous."""
    slices: torch.Tensor
    """int8 [5, rows, k rounded up to 128]."""
    inverse: torch.Tensor
    """float64 [rows]: 2^-8 over the scale."""
    stats: torch.Tensor
    """float32 [rows, 2]."""
    blocks: torch.Tensor
    """float32 [rows / 128, 2]: what `tile_level` reads."""
    worst: torch.Tensor
    """float32 [3]."""
    flags: torch.Tensor
    """int32 [rows]: 1 where a row has Inf or NaN."""
    done: torch.Tensor
    """int32 [rows / 16]: 1 where the last two slices are written."""
    maps: dict[int, Any] = field(default_factory=dict)
    """Descriptions for the copy engine, by rows of a box."""

    @property
    def padded(self) -> int:
        """The length of a row of slices."""
        return self.slices.shape[2]

    def map_of(self, rows: int) -> Any:
        """Return the description for boxes of `rows` rows."""
        if rows not in self.maps:
            self.maps[rows] = driver.tensor_map(self.slices.data_ptr(), (self.padded, self.slices.shape[1], SLICES), (128, rows))
        return self.maps[rows]

    def refresh(self) -> None:
        """Cut `source` again, on the current stream."""
        rows, k = self.source.shape
        self.done.zero_()
        stream, warps = torch.cuda.current_stream().cuda_stream, 8 if k > 1024 else 1
        cut = passes(self.source.device.index)[f"slice_rows_{warps}"]
        cut(
            -(-rows // (8 // warps)), stream, self.source.data_ptr(), self.source.stride(0), self.slices.data_ptr(), self.inverse.data_ptr(),
            self.stats.data_ptr(), self.flags.data_ptr(), rows, k, self.padded,
        )  # fmt: skip
        passes(self.source.device.index)["summarise"](
            1, stream, self.stats.data_ptr(), self.flags.data_ptr(), self.blocks.data_ptr(), self.worst.data_ptr(), rows
        )

    def slice_for(self, other: SlicedMatrix, level: int = 0) -> None:
        """Write the last two slices of the rows that may need them in a product with `other`."""
        rows, k = self.source.shape
        passes(self.source.device.index)["slice_more"](
            -(-rows // 16), torch.cuda.current_stream().cuda_stream, self.source.data_ptr(), self.source.stride(0), self.slices.data_ptr(),
            self.inverse.data_ptr(), self.flags.data_ptr(), self.blocks.data_ptr(), other.worst.data_ptr(), self.done.data_ptr(), rows, k,
            self.padded, level,
        )  # fmt: skip


def cut(source: torch.Tensor) -> SlicedMatrix:
    """Return the slices of a float32 matrix [rows, k] on a GPU; a copy is made where rows are not contiguous."""
    if source.dim() != 2 or source.dtype != torch.float32 or not source.is_cuda:
        raise UsageError(f"expected a float32 matrix on a GPU, saw {source.dtype} of shape {tuple(source.shape)} on {source.device}")
    rows, k = source.shape
    if not 0 < k <= LONGEST or not rows:
        raise UsageError(f"expected rows of 1 to {LONGEST} elements, saw a matrix of shape {tuple(source.shape)}", "use torch for such a product")
    source = source if source.stride(1) == 1 else source.contiguous()
    empty, count = functools.partial(torch.empty, device=source.device), -(-rows // 128)
    made = SlicedMatrix(
        source, empty((SLICES, rows, -(-k // 128) * 128), dtype=torch.int8), empty(rows, dtype=torch.float64), empty((rows, 2)),
        empty((count, 2)), empty(3), empty(rows, dtype=torch.int32), empty(-(-rows // 16), dtype=torch.int32),
    )  # fmt: skip
    made.refresh()
    return made


def product(a: SlicedMatrix, b: SlicedMatrix, out: torch.Tensor, tiles: Tiles = Tiles(), level: int = 0) -> torch.Tensor:
    """Write a @ b.T into out [m, n] and return it; `level` (3, 4 or 5) replaces the rule that chooses one for each tile."""
    a.slice_for(b, level)
    b.slice_for(a, level)
    (m, k), n, device = a.source.shape, b.source.shape[0], a.source.device.index
    stream, sms = torch.cuda.current_stream().cuda_stream, _multiprocessors(device)
    blocks = -(-m // (128 * tiles.cluster)) * -(-n // tiles.columns)
    product_kernel(device, tiles)(
        min(sms // tiles.cluster, blocks) * tiles.cluster, stream, a.map_of(128), b.map_of(tiles.columns // tiles.cluster), out.data_ptr(),
        out.stride(0), a.inverse.data_ptr(), b.inverse.data_ptr(), a.blocks.data_ptr(), b.blocks.data_ptr(), m, n, k, level,
    )  # fmt: skip
    passes(device)["plain_rows"](
        sms, stream, a.source.data_ptr(), a.source.stride(0), b.source.data_ptr(), b.source.stride(0), out.data_ptr(), out.stride(0),
        a.flags.data_ptr(), b.flags.data_ptr(), a.worst.data_ptr(), b.worst.data_ptr(), m, n, k,
    )  # fmt: skip
    return out


@functools.cache
def product_kernel(device: int, tiles: Tiles) -> driver.Kernel:
    """Return the product's kernel, built and loaded once."""
    with torch.cuda.device(device):
        code = driver.machine_code(text("int8_product.cu"), "90a", tiles.defines())
        return driver.Kernel(code, "int8_product", "mmplppppiiii", 384, tiles.shared)


@functools.cache
def passes(device: int) -> dict[str, driver.Kernel]:
    """Return the other kernels by name."""
    with torch.cuda.device(device):
        codes = {warps: driver.machine_code(text("int8_slices.cu"), "90a", [f"WARPS={warps}"]) for warps in (1, 8)}
        cuts = {f"slice_rows_{warps}": driver.Kernel(code, "slice_rows", "plppppiii", 256) for warps, code in codes.items()}
        rest = {"summarise": "ppppi", "slice_more": "plppppppiiii", "plain_rows": "plplplppppiii"}
        return cuts | {name: driver.Kernel(codes[8], name, letters, 256) for name, letters in rest.items()}


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
