"""MPI_Pack and MPI_Unpack on host buffers, the shim beside the library behind it: `python -m benchmarks.mpi.pack_cpu --out FOLDER [PYTHON ...]`.

Each PYTHON is an interpreter with mpi4py and one MPI library (this one, if none is given); a process of each times both functions in rounds, three
groups of calls of one, three of the other, whichever comes first in turns. Times are least values in us, because others share the machine, and
`ratio` is the library's over the shim's; `low` and `high` are the 95 % interval of the median of the rounds' own ratios, which a load that comes and
goes moves little. A case has more rounds until its interval is within 2 % of its middle or lies above 0.97, for at most --seconds. Before that both
pack the same bytes. The rows "forward" are calls of a contiguous type, which the shim only forwards: what it adds, in ns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mpi.calls import Calls, Case, face, vector

MIB = 1 << 20
GOAL_BLOCKS = (8, 16, 24, 32, 48, 64)
CASES = (
    *(vector(MIB, block, 512) for block in GOAL_BLOCKS),
    *(vector(MIB, block, 2 * block) for block in GOAL_BLOCKS),
    *(vector(1 << 16, block, 512) for block in (8, 16, 32, 64)),
    *(vector(1 << 12, block, 64 if block < 64 else 128) for block in (8, 16, 32, 64)),
    *(vector(MIB, block, step) for block, step in ((128, 512), (512, 1024), (4096, 8192), (12, 500), (3, 7))),
    face("x", 1), face("x", 3), face("y", 3),
    Case("inner face 254x254x3 of 256^3", (254, 254), (8 * 256 * 256, 8 * 256), 24, offset=8 * (256 * 256 + 256 + 1)),
    Case("transposed 256x256 doubles", (256, 256), (8, 2048), 8),
    vector(256, 8, 16),
)  # fmt: skip


@dataclass(frozen=True)
class Irregular:
    """A datatype that is no nest: how it is made, how many objects, and the bytes of a buffer that holds them."""

    name: str
    make: Callable[[Any], Any]
    room: int
    count: int = 1
    block: int = 0

    def datatype(self, mpi: Any) -> Any:
        """Return it, committed."""
        return self.make(mpi).Commit()


def scattered(blocks: int, lengths: tuple[int, ...], seed: int = 1) -> Callable[[Any], Any]:
    """Return what makes an indexed type of doubles: blocks of these lengths in turns, at random places in rising order."""
    places = np.sort(np.random.default_rng(seed).choice(8 * blocks, blocks, replace=False)) * max(lengths)
    return lambda mpi: mpi.DOUBLE.Create_indexed([lengths[i % len(lengths)] for i in range(blocks)], places.tolist())


def record(mpi: Any) -> Any:
    """Return a struct with holes, as a compiler lays it out: char, double, int, three floats."""
    made = mpi.Datatype.Create_struct([1, 1, 1, 3], [0, 8, 16, 20], [mpi.CHAR, mpi.DOUBLE, mpi.INT, mpi.FLOAT])
    sized = made.Create_resized(0, 40)
    made.Free()
    return sized


IRREGULAR = (
    Irregular("16384 doubles at places of their own", scattered(16384, (1,)), 8 * 8 * 16384 + 64),
    Irregular("4096 blocks of 4 doubles at places", scattered(4096, (4,)), 8 * 8 * 4 * 4096 + 64),
    Irregular("4096 blocks of 1 to 5 doubles at places", scattered(4096, (1, 5, 2, 4, 3)), 8 * 8 * 5 * 4096 + 64),
    Irregular("20000 structs of four fields", record, 40 * 20000, 20000),
    Irregular("20 structs of four fields", record, 40 * 20, 20),
    Irregular("3000 triples of doubles in 64 bytes", lambda mpi: mpi.DOUBLE.Create_contiguous(3).Create_resized(0, 64), 64 * 3000, 3000, 24),
    Irregular("1 MiB in 5 blocks of 200 KiB", lambda mpi: mpi.BYTE.Create_vector(5, 200 << 10, 300 << 10), 5 * (300 << 10)),
    Irregular("4 KiB in 2 blocks of 2 KiB", lambda mpi: mpi.BYTE.Create_vector(2, 2 << 10, 3 << 10), 2 * (3 << 10)),
)


class Pair:
    """The shim's function and the library's, timed in turns."""

    def __init__(self, shim: Calls, library: Calls, inner: int) -> None:
        """Time `inner` calls at once."""
        self.calls, self.inner = (shim, library), inner
        self.ratios: list[float] = []

    def round(self) -> None:
        """Three groups of calls of each; the ratio of the least of both."""
        order = self.calls if len(self.ratios) % 2 else self.calls[::-1]
        for one in order:
            one.time(3, self.inner)
        ours, theirs = (min(one.ns[-3:]) for one in self.calls)
        self.ratios.append(theirs / ours)

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the median ratio, by the order statistics."""
        ranked, half = sorted(self.ratios), 0.98 * math.sqrt(len(self.ratios))
        middle = len(ranked) / 2
        return ranked[max(0, int(middle - half))], ranked[min(len(ranked) - 1, math.ceil(middle + half) - 1)]

    def settled(self) -> bool:
        """Whether more rounds would tell nothing new."""
        low, high = self.interval()
        return low > 0.97 or high - low < 0.04 * statistics.median(self.ratios)

    def time(self, rounds: int, seconds: float) -> None:
        """At least so many rounds, and more until it is settled."""
        end = time.monotonic() + seconds
        while len(self.ratios) < rounds or (time.monotonic() < end and not self.settled()):
            self.round()

    def row(self, name: str) -> dict[str, float]:
        """Return the columns of one direction."""
        ours, theirs = (one.least_us for one in self.calls)
        low, high = self.interval()
        told = {"us": round(ours, 3), "library_us": round(theirs, 3), "ratio": round(theirs / ours, 2), "low": round(low, 2), "high": round(high, 2)}
        return {f"{name}_{key}": value for key, value in told.items()}


def measure(case: Case | Irregular, shim: Any, library: Any, mpi: Any, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the row of one case; raise RuntimeError where the bytes differ."""
    datatype, count = case.datatype(mpi), case.count if isinstance(case, Irregular) else 1
    size = datatype.Get_size() * count
    handle, self = mpi._handleof(datatype), mpi._handleof(mpi.COMM_SELF)
    source = np.random.default_rng(0).integers(0, 256, case.room, dtype=np.uint8)
    packed, target = np.zeros(size, np.uint8), np.zeros(case.room, np.uint8)
    here, there, back = (one.ctypes.data for one in (source, packed, target))
    libraries, results = (shim, library), []
    pack = [Calls(one.MPI_Pack, (here, count, handle, there, size, None, self), position=True) for one in libraries]
    unpack = [Calls(one.MPI_Unpack, (there, size, None, back, count, handle, self), position=True) for one in libraries]
    for calls in zip(pack, unpack, strict=True):
        packed[:], target[:] = 0, 0
        for one in calls:
            one.time(1)
            one.ns.clear()
        results.append((packed.copy(), target.copy()))
    if not all(map(np.array_equal, *results)):
        raise RuntimeError(f"{case.name}: the shim and the library differ")
    inner = max(1, (1 << 17) // size)
    # on the same buffers: other pages of as many bytes take up to 15 % longer
    pairs = {"pack": Pair(pack[0], pack[1], inner), "unpack": Pair(unpack[0], unpack[1], inner)}
    for pair in pairs.values():
        pair.time(rounds, seconds)
    datatype.Free()
    row: dict[str, Any] = {"case": case.name, "block": case.block, "bytes": size}
    for name, pair in pairs.items():
        row |= pair.row(name)
    return row | {"rounds": max(len(pair.ratios) for pair in pairs.values()), "load": round(os.getloadavg()[0], 1)}


def forwarded(shim: Any, library: Any, mpi: Any, quick: bool) -> dict[str, Any]:
    """Return what a forwarded call of MPI_Pack costs more."""
    source, packed = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    arguments = (source.ctypes.data, 64, mpi._handleof(mpi.BYTE), packed.ctypes.data, 64, None, mpi._handleof(mpi.COMM_SELF))
    through, straight = (Calls(one.MPI_Pack, arguments, position=True) for one in (shim, library))
    for _ in range(20 if quick else 400):
        through.time(5, 1000)
        straight.time(5, 1000)
    ours, theirs = through.least_us * 1000, straight.least_us * 1000
    return {"shim_ns": round(ours, 1), "library_ns": round(theirs, 1), "added_ns": round(ours - theirs, 1)}


def commits(mpi: Any, shim: Any, quick: bool) -> dict[str, Any]:
    """Return what reading a 3-D subarray costs at its commit."""
    datatype = mpi.DOUBLE.Create_subarray([256] * 3, [254, 254, 3], [1, 1, 1]).Commit()
    extent, read = ctypes.c_int64(), shim.warpwright_read_datatype
    calls = Calls(read, (mpi._handleof(datatype), ctypes.addressof(extent)))
    for _ in range(20 if quick else 200):
        calls.time(5, 100)
    return {"case": "subarray of 3 dimensions", "read_us": round(calls.least_us, 3)}


def child(quick: bool, only: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of this interpreter's library."""
    import warpwright.mpi
    from warpwright.domains.mpi.activate import library_of_mpi4py

    shim, library = warpwright.mpi.activate(), ctypes.CDLL(str(library_of_mpi4py()))
    from mpi4py import MPI

    name = " ".join(MPI.Get_library_version().replace("Version:", "").split(",")[0].split()[:3])
    rows = []
    cases: tuple[Case | Irregular, ...] = (*CASES, *IRREGULAR)
    for case in cases:
        if re.search(only, case.name):
            rows.append(measure(case, shim, library, MPI, 4 if quick else 25, 0.0 if quick else seconds))
            yield {"table": "cases", "library": name, **rows[-1]}
    for kind in ("pack", "unpack"):
        goal = [row[f"{kind}_ratio"] for row in rows if 8 <= row["block"] <= 64]
        mean = math.exp(sum(map(math.log, goal)) / max(1, len(goal)))
        least, lowest = (min((row[f"{kind}_{column}"] for row in rows), default=0.0) for column in ("ratio", "low"))
        below = [row["case"] for row in rows if row[f"{kind}_high"] < 0.95]
        row = {"call": f"MPI_{kind.title()}", "blocks": "8 to 64 bytes", "geometric_mean": round(mean, 2), "least_of_all": least, "lowest": lowest}
        which = {"which": ", ".join(below)} if below else {}
        yield {"table": "means", "library": name, **row, "cases": len(rows), "below_095": len(below), **which}
    yield {"table": "forward", "library": name, **forwarded(shim, library, MPI, quick)}
    yield {"table": "commit", "library": name, **commits(MPI, shim, quick)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--dry", action="store_true", help="few repetitions")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose names match")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one direction of one case, at most")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    options = parser.parse_args()
    if options.child:
        for row in child(options.dry, options.only, options.seconds):
            print(json.dumps(row), flush=True)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    code = 0
    with (options.out / "rows.jsonl").open("w") as file:
        for python in options.pythons or [sys.executable]:
            command = [python, "-m", "benchmarks.mpi.pack_cpu", "--child", "--out", str(options.out), *(["--dry"] if options.dry else [])]
            command += ["--only", options.only, "--seconds", str(options.seconds)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
            for line in process.stdout or ():
                file.write(line)
                file.flush()
                print(line, end="", flush=True)
            code |= process.wait()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
