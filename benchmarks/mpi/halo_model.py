"""What a halo exchange should take on the GPUs of one NVSwitch host, from figures measured on one H200 and between two (docs/mpi.md).

`python -m benchmarks.mpi.halo_model` prints the table of that page; `benchmarks.mpi.scaling` writes the prediction beside what it measures. Nothing
was fitted to the runs on two and four GPUs (results/mpi_send_h200, table four-gpus): there `slots` took 1.1 to 1.2 times as long, `arrays` 1.5 to 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

LAUNCH_US = 7.4
"""A kernel of no work from call to return (results/mpi_pack_h200, 1 KiB)."""
REQUEST_US = 0.55
"""A persistent message without bytes, started and waited for by mpi4py: one process took 69 us and 42 us beside its kernels with 104 requests and one
launch (`arrays`) and 52 and two (`slots`), by the difference of 512^3 and 1024^3 doubles."""
MESSAGE_US = 1.4
"""Half a ping-pong between two processes (host memory, results/mpi_send_h200)."""
LINK_GB_S = (326.7, 359.8)
"""A kernel that reads runs of 64 and of 512 bytes here and writes them into the peer's array, both over NVLink 4 (two H200, 128 MiB)."""
SHORT_LINK_GB_S = (148.0, 237.0)
"""The same for the 24 bytes of a row 3 wide. At worst 1.57 MB of a face of 256^3 in 20.3 us less 9.7 of a small call; at best on the line from runs
of 8 bytes (164.8 in 128 MiB) to runs of 64."""
PACKED_LINK_GB_S = 360.0
"""Packed by a kernel into the peer's memory, runs of 8 bytes to 512."""
PACK_GB_S = (1909.0, 1939.0)
"""Payload of a pack in one GPU's memory, runs of 64 and of 512 bytes (results/mpi_pack_h200)."""
SHORT_PACK_GB_S = 661.0
"""The same for runs of 24 bytes: what is left of the 39.1 us of the 26 regions of 512^3 after a launch and the long runs."""
UNPACK_GB_S = (1508.0, 1970.0)
SHORT_UNPACK_GB_S = 274.0
"""The same of an unpack (66.9 us), and of a copy from one array to another."""
TURN_US = 156.0
"""One turn of one process among those that share a GPU (results/mpi_send_h200, table ipc)."""
BLOCK_COPY_US = 7.4
"""A copy of one block by a library that copies block by block (an Open MPI with CUDA, one process: 67.9 ms for 9,216)."""


@dataclass(frozen=True)
class Region:
    """What goes to process `peer`: bytes in runs of `run` bytes; `away` where it lies on another GPU."""

    bytes: int
    run: int
    peer: int
    away: bool


def grid_of(ranks: int) -> tuple[int, int, int]:
    """Return the factors that MPI_Dims_create gives: as even as may be, largest first."""
    grids = [(a, b, ranks // (a * b)) for a in range(1, ranks + 1) for b in range(1, ranks // a + 1) if ranks % (a * b) == 0]
    return min((tuple(sorted(grid, reverse=True)) for grid in grids), key=lambda grid: grid[0] - grid[2])  # type: ignore[return-value]


def regions(block: Sequence[int], width: int, ranks: int, gpus: int) -> list[Region]:
    """Return the 26 regions that rank 0 of a periodic grid sends, rank r on GPU r modulo `gpus`, its block of doubles with the halo in it."""
    grid, found = grid_of(ranks), []
    for where in itertools.product((-1, 0, 1), repeat=3):
        if not any(where):
            continue
        counts = [width if step else size - 2 * width for step, size in zip(where, block, strict=True)]
        there = [step % size for step, size in zip(where, grid, strict=True)]
        rank = (there[0] * grid[1] + there[1]) * grid[2] + there[2]
        found.append(Region(8 * math.prod(counts), 8 * counts[2], rank, rank % gpus != 0))
    return found


def us_of(parts: Sequence[Region], long: tuple[float, float], short: float) -> float:
    """Return the microseconds of these regions, at GB/s for runs of 64 and 512 bytes (a line in the logarithms between) and for shorter ones."""

    def rate(run: int) -> float:
        at = min(max(math.log2(run / 64) / 3, 0.0), 1.0)
        return short if run < 64 else long[0] * (long[1] / long[0]) ** at

    return sum(one.bytes / rate(one.run) for one in parts) / 1e3


def predicted_us(block: Sequence[int], width: int, ranks: int, gpus: int) -> dict[str, float]:
    """Return microseconds of one exchange: `arrays` (strided to strided; at best, at worst), `slots` (pack there, unpack here), `library`."""
    parts, sharing = regions(block, width, ranks, gpus), math.ceil(ranks / gpus)
    away, here = [one for one in parts if one.away], [one for one in parts if not one.away]
    local = us_of(here, UNPACK_GB_S, SHORT_UNPACK_GB_S)
    worst, best = (max(us_of(away, LINK_GB_S, short), local) for short in SHORT_LINK_GB_S)
    pack = max(us_of(away, (PACKED_LINK_GB_S,) * 2, PACKED_LINK_GB_S), us_of(parts, PACK_GB_S, SHORT_PACK_GB_S))
    slots = pack + us_of(parts, UNPACK_GB_S, SHORT_UNPACK_GB_S)
    peers = len({one.peer for one in parts})
    turn = TURN_US if sharing > 1 else 0.0  # for each kernel of each process
    fixed = LAUNCH_US + 2 * peers * REQUEST_US + MESSAGE_US  # one message to and from each peer
    ready = 2 * peers * REQUEST_US + MESSAGE_US  # and one that says that the arrays may be written to
    blocks = sum(one.bytes // one.run for one in parts)
    return {
        "arrays_best": sharing * (turn + best) + fixed + ready, "arrays": sharing * (turn + worst) + fixed + ready,
        "slots": sharing * (2 * turn + slots) + LAUNCH_US + fixed,
        "library": 2 * blocks * BLOCK_COPY_US * sharing,
    }  # fmt: skip


CASES = (
    ("weak", 1, 1), ("weak", 2, 2), ("weak", 4, 4), ("weak", 8, 8), ("weak", 8, 4), ("weak", 2, 1), ("weak", 4, 1),
    ("strong", 1, 1), ("strong", 2, 2), ("strong", 4, 4), ("strong", 8, 8),
)  # fmt: skip


def block_of(kind: str, ranks: int, side: int = 512) -> tuple[int, int, int]:
    """Return the block of one rank: `side`^3 each (weak), or its part of twice the side in all (strong)."""
    grid = grid_of(ranks)
    return (side, side, side) if kind == "weak" else (2 * side // grid[0], 2 * side // grid[1], 2 * side // grid[2])


def main() -> int:
    print("| scaling | processes | GPUs | block | MB over links | arrays us | slots us | library's types ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, ranks, gpus in CASES:
        block = block_of(kind, ranks)
        away = sum(one.bytes for one in regions(block, 3, ranks, gpus) if one.away) / 1e6
        us = predicted_us(block, 3, ranks, gpus)
        times = f"{us['arrays_best']:.0f} to {us['arrays']:.0f} | {us['slots']:.0f} | {us['library'] / 1e3:.0f}"
        print(f"| {kind} | {ranks} | {gpus} | {'x'.join(map(str, block))} | {away:.1f} | {times} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
