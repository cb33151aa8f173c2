"""Grids along several axes, recovered by running single blocks: those whose blocks store to every element of the output once.

The elements that a block stores to tell the number of blocks, but not always the shape of the grid: 64 x 4 and 256 x 1 blocks may cover the same.
All grids that fit are returned, those with the most axes first; the answers decide between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

import numpy as np

from warpwright import native
from warpwright.errors import WarpwrightError, WorkerError
from warpwright.translation.errors import one_line
from warpwright.translation.items import Buffer
from warpwright.translation.judge.program import Program
from warpwright.translation.launch import Dim3
from warpwright.translation.wiring.probe import FLAGS, PROBE_SECONDS, bad_of, call_of, kernel_with_recording, recording_pointers


class Coverage(NamedTuple):
    """A grid and a block, with what they cover: the largest index + 1 of every parameter."""

    grid: Dim3
    block: Dim3
    extents: dict[str, int]


SAMPLES = 24
"""Blocks that are run, besides the first and the last, to test a grid."""

MOST_AT_ONCE = 1024
"""Blocks in one request to the probe."""

REQUEST = 4 + 3 * MOST_AT_ONCE
"""Numbers in a request: the shape of the block, the number of blocks, and the index of each block."""

MOST = 8
"""Grids to return."""

MOST_TRIED = 2000
SEARCH_SECONDS = 240.0


def spread_out(total: int, axes: str) -> Iterator[Dim3]:
    """Yield the factorisations of `total` along `axes`, some of "xyz"."""
    for x in _divisors(total) if "x" in axes else [1]:
        for y in _divisors(total // x) if "y" in axes else [1]:
            z = total // x // y
            if z == 1 or "z" in axes:
                yield x, y, z


def _divisors(number: int) -> list[int]:
    low = [i for i in range(1, int(number**0.5) + 1) if number % i == 0]
    return sorted({*low, *(number // i for i in low)})


@cache
def launches_along_axes(
    text: str, kernel: str, parameters: tuple[tuple[str, str], ...], block: int, target: str, size: int, capacity: int
) -> list[Coverage] | str:
    """Return the grids under which the kernel stores to each of the `size` elements of `target` once, or why there is none."""
    threads, blocks = (("".join(axis for axis in "xyz" if f"{name}.{axis}" in text)) for name in ("threadIdx", "blockIdx"))
    try:
        library = native.build(_program(text, kernel, parameters, target, size, capacity), flags=FLAGS)
        buffers = [Buffer("request", "int64", REQUEST, "input"), Buffer("results", "int64", 2 + len(parameters), "output")]
        with _Prober(lambda: Program(library, "probe", buffers), [name for name, _ in parameters], target) as prober:
            coverages = _search(prober, threads, blocks, block, size) or _guarded(prober, threads, blocks, block, size)
    except WarpwrightError as error:
        return one_line(error)
    return coverages or f"no grid of several axes covers the {size} elements of {target} once"


def _program(text: str, kernel: str, parameters: Sequence[tuple[str, str]], target: str, size: int, capacity: int) -> str:
    call = call_of(kernel, parameters)
    lines = [*kernel_with_recording(text, kernel, parameters), 'extern "C" void probe(long* request_, long* results_) {']
    lines += recording_pointers(parameters, capacity, {target: size})
    lines += ["  blockDim = {(unsigned)request_[0], (unsigned)request_[1], (unsigned)request_[2]};"]
    lines += ["  for (long b_ = 0; b_ < request_[3]; ++b_) { const long* at_ = request_ + 4 + 3 * b_;"]
    lines += ["    blockIdx = {(unsigned)at_[0], (unsigned)at_[1], (unsigned)at_[2]};"]
    lines += ["    for (unsigned z_ = 0; z_ < blockDim.z; ++z_) for (unsigned y_ = 0; y_ < blockDim.y; ++y_)"]
    lines += ["    for (unsigned x_ = 0; x_ < blockDim.x; ++x_)"]
    lines += [f"      {{ threadIdx = {{x_, y_, z_}}; {call}; }} }}", f"  results_[0] = {target}.count;"]
    lines += [f"  results_[1] = {bad_of(parameters)};"]
    lines += [f"  results_[{2 + number}] = {name}.top + 1; free({name}.data); free({name}.seen);" for number, (name, _) in enumerate(parameters)]
    return "\n".join([*lines, "}", ""])


class _Prober:
    """Runs single blocks of the kernel."""

    def __init__(self, start: Callable[[], Program], names: list[str], target: str) -> None:
        self.start, self.names, self.target = start, names, target
        self.program = start()

    def __enter__(self) -> _Prober:
        return self

    def __exit__(self, *_: object) -> None:
        self.program.close()

    def run(self, block: Dim3, at: Sequence[Dim3]) -> tuple[int, dict[str, int]] | None:
        """Return how many elements the blocks at these indices store to, and the largest index + 1 of each parameter; None where one is far outside.

        A block of another shape than the kernel expects may write past its shared memory and crash the process: that is None too.
        """
        request = np.zeros(REQUEST, np.int64)
        flat = [*block, len(at), *(index for block_index in at for index in block_index)]
        request[: len(flat)] = flat
        self.program.fill({"request": request})
        try:
            self.program.call(timeout=PROBE_SECONDS)
        except WorkerError:
            self.program.close()
            self.program = self.start()
            return None
        count, bad, *tops = (int(value) for value in self.program.outputs()["results"])
        return None if bad else (count, dict(zip(self.names, tops, strict=True)))


def _search(prober: _Prober, threads: str, blocks: str, block: int, size: int) -> list[Coverage]:
    shapes = {shape: seen[0] for shape in spread_out(block, threads) if (seen := prober.run(shape, [(0, 0, 0)])) is not None}
    most = max(shapes.values(), default=0)
    if not most or size % most:
        return []
    grids = sorted(spread_out(size // most, blocks), key=lambda grid: -sum(extent > 1 for extent in grid))[:MOST_TRIED]
    coverages: list[Coverage] = []
    deadline = time.monotonic() + SEARCH_SECONDS
    for shape in (shape for shape, stored in shapes.items() if stored == most):
        for grid in grids:
            tops = _fits(prober, grid, shape, most, size)
            if tops is not None:
                coverages.append(Coverage(grid, shape, tops))
            if len(coverages) == MOST or time.monotonic() > deadline:
                return coverages
    return coverages


def _guarded(prober: _Prober, threads: str, blocks: str, block: int, size: int) -> list[Coverage]:
    """Return grids whose last blocks along an axis are under a guard: that axis by which blocks touch the target, the others by division."""
    coverages: list[Coverage] = []
    for shape in spread_out(block, threads):
        first = prober.run(shape, [(0, 0, 0)])
        if first is None or not first[0]:  # it ends the process, perhaps, which is started anew each time
            continue
        ends = {axis: _end(prober, shape, axis) for axis in blocks}
        if 0 in ends.values():
            continue
        fixed = {axis: end for axis, end in ends.items() if end < MOST_AT_ONCE}
        inner = (fixed.get("x", 1), fixed.get("y", 1), fixed.get("z", 1))
        seen = prober.run(shape, _all(inner)) if math.prod(inner) <= MOST_AT_ONCE else None
        if seen is None or not seen[0] or size % seen[0]:
            continue
        for outer in spread_out(size // seen[0], "".join(axis for axis in blocks if axis not in fixed)):
            grid = (inner[0] * outer[0], inner[1] * outer[1], inner[2] * outer[2])
            whole = prober.run(shape, _all(grid)) if math.prod(grid) <= MOST_AT_ONCE else None
            if whole is not None and whole[0] == size == whole[1][prober.target]:
                coverages.append(Coverage(grid, shape, whole[1]))
    return coverages[:MOST]


def _end(prober: _Prober, shape: Dim3, axis: str) -> int:
    """Return how many blocks along one axis touch the target, at most MOST_AT_ONCE."""

    def touches(index: int) -> bool:
        seen = prober.run(shape, [(index * (axis == "x"), index * (axis == "y"), index * (axis == "z"))])
        return seen is not None and seen[0] > 0

    low, high = 0, MOST_AT_ONCE
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if touches(middle) else (low, middle)
    return low


def _all(grid: Dim3) -> list[Dim3]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


def _fits(prober: _Prober, grid: Dim3, shape: Dim3, stored: int, size: int) -> dict[str, int] | None:
    """Return the extents where a sample of blocks stores to disjoint elements and the last block to the last element; else None."""
    rng, last = Random(0), (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    drawn = [(rng.randrange(grid[0]), rng.randrange(grid[1]), rng.randrange(grid[2])) for _ in range(SAMPLES)]
    at = list(dict.fromkeys([(0, 0, 0), last, *drawn]))
    seen = prober.run(shape, at)
    return seen[1] if seen is not None and seen[0] == stored * len(at) and seen[1][prober.target] == size else None
