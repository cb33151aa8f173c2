"""Float32 products of matrices by three products of TF32 halves, with float32's error (tf32x3.cu). GPUs from Ampere on."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

from warpwright.templates import driver
from warpwright.templates.sources import text

# --- generated programs hold what follows

OLDEST = (8, 0)
"""Compute capability from which on tensor cores have TF32."""
SHORT = 128
"""Terms up to which a block of half the size is taken, of which two share a multiprocessor: one writes its results while the other multiplies."""


class Tile(NamedTuple):
    """Parameters of the kernel (their meaning is in tf32x3.cu)."""

    down: int = 2
    across: int = 4
    step: int = 16

    @property
    def rows(self) -> int:
        """Of the result."""
        return 64 * self.down

    @property
    def columns(self) -> int:
        """Of the result."""
        return 32 * self.across

    def shared(self, a_terms: bool, b_terms: bool) -> int:
        """Dynamic shared memory, bytes: two slices of both operands."""
        sides = ((self.rows, a_terms), (self.columns, b_terms))
        return 8 * sum(size * (self.step + 4) if terms else self.step * (size + 8) for size, terms in sides)


LARGE, SMALL, OF_ROWS = Tile(), Tile(2, 2), Tile(step=32)
"""In general; of few terms; where the terms of both operands are contiguous."""


class Side(NamedTuple):
    """An operand as the kernel reads it: address, elements from line to line and from matrix to matrix, whether terms are contiguous, and whether 16
    bytes may be read at once."""

    address: int
    pitch: int
    batch: int
    terms: bool
    quick: bool
    held: torch.Tensor

    @staticmethod
    def of(x: torch.Tensor, term: int) -> Side:
        """Return an operand [batches, ..] of two more axes, of which `term` (1 or 2) is the one that is summed over."""
        row = 3 - term
        if 1 not in (x.stride(term), x.stride(row)):
            x = x.contiguous()
        terms = x.stride(term) == 1
        pitch, batch = x.stride(row if terms else term), x.stride(0)
        return Side(x.data_ptr(), pitch, batch, terms, x.data_ptr() % 16 == 0 and pitch % 4 == 0 and batch % 4 == 0, x)


def product(a: torch.Tensor, b: torch.Tensor, tile: Tile | None = None, splits: int = 0) -> torch.Tensor:
    """Return a @ b, float32 [batches, m, n], for float32 a [batches, m, k] and b [batches, k, n] of any strides, on a GPU's current stream.

    `splits`: parts of k, each a block's, added by torch; 0: as many as occupy the GPU.
    """
    (batches, m, k), n, device = a.shape, b.shape[2], a.device.index
    left, right = Side.of(a, 2), Side.of(b, 1)
    tile = tile or (SMALL if k <= SHORT else OF_ROWS if left.terms and right.terms else LARGE)
    tiles = batches * -(-m // tile.rows) * -(-n // tile.columns)
    if tiles == 0 or k == 0:
        return a.new_zeros(batches, m, n)
    each = -(-k // (splits or parts(tiles, k, _multiprocessors(device))) // tile.step) * tile.step or tile.step
    splits = -(-k // each)
    out = a.new_empty(splits, batches, m, n)
    kernel(device, tile, left.terms, right.terms)(
        tiles * splits, torch.cuda.current_stream().cuda_stream, left.address, right.address, out.data_ptr(), left.pitch, right.pitch,
        left.batch, right.batch, m, n, k, batches, splits, each, left.quick and right.quick,
    )  # fmt: skip
    return out[0] if splits == 1 else out.sum(0)


def parts(tiles: int, k: int, multiprocessors: int) -> int:
    """Return into how many parts k is cut where there are fewer tiles than multiprocessors: of 512 terms at least."""
    return max(1, min(multiprocessors // tiles, k // 512))


@functools.cache
def kernel(device: int, tile: Tile, a_terms: bool, b_terms: bool) -> driver.Kernel:
    """Return the kernel, built and loaded once."""
    with torch.cuda.device(device):
        major, minor = torch.cuda.get_device_capability(device)
        macros = {"WM": tile.down, "WN": tile.across, "STEP": tile.step, "A_TERMS": int(a_terms), "B_TERMS": int(b_terms)}
        code = driver.machine_code(text("tf32x3.cu"), f"{major}{minor}", [f"{name}={value}" for name, value in macros.items()])
        threads = 32 * tile.down * tile.across
        return driver.Kernel(code, "tf32x3", "PPPqqqqiiiiiii", threads, tile.shared(a_terms, b_terms))


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@driver.on_its_device
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b for float32 a [..., m, k] and b [k, n], or b of a's batches; other devices get torch's product."""
    if not a.is_cuda or torch.cuda.get_device_capability(a.device) < OLDEST:
        return a @ b
    (m, k), n = a.shape[-2:], b.shape[-1]
    if b.dim() == 2:  # one product of all rows, where they lie so
        return product(a.reshape(1, -1, k), b[None]).view(*a.shape[:-1], n)
    return product(a.reshape(-1, m, k), b.reshape(-1, k, n)).view(*a.shape[:-1], n)
