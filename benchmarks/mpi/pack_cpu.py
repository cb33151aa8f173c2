"""MPI_Pack and MPI_Unpack on host buffers, the shim beside the library behind it: `python -m benchmarks.mpi.pack_cpu --out FOLDER [PYTHON ...]`.

Each PYTHON is an interpreter with mpi4py and one MPI library (this one, if none is given); a process of each times both functions call by call, in
alternating rounds. Times are least values in us, because others share the machine; `ratio` is the library's over the shim's. Before that both pack
the same bytes. The rows "forward" are calls of a contiguous type, which the shim only forwards: what it adds, in ns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
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


def rounds(case: Case, pairs: list[Calls], quick: bool) -> None:
    """Time the functions in turn, whichever comes first."""
    inner = max(1, (1 << 14) // case.bytes)
    for number in range(4 if quick else 25):
        for calls in pairs if number % 2 else pairs[::-1]:
            calls.time(5, inner)


def measure(case: Case, shim: Any, library: Any, mpi: Any, quick: bool) -> dict[str, Any]:
    """Return the row of one case; raise RuntimeError where the bytes differ."""
    datatype = case.datatype(mpi)
    handle, self = mpi._handleof(datatype), mpi._handleof(mpi.COMM_SELF)
    rng = np.random.default_rng(0)
    source, packed = rng.integers(0, 256, case.room, dtype=np.uint8), [np.zeros(case.bytes, np.uint8) for _ in range(2)]
    target = [np.zeros(case.room, np.uint8) for _ in range(2)]
    libraries = (shim, library)
    pack = [
        Calls(one.MPI_Pack, (source.ctypes.data, 1, handle, packed[i].ctypes.data, case.bytes, None, self), position=True)
        for i, one in enumerate(libraries)
    ]
    unpack = [
        Calls(one.MPI_Unpack, (packed[i].ctypes.data, case.bytes, None, target[i].ctypes.data, 1, handle, self), position=True)
        for i, one in enumerate(libraries)
    ]
    rounds(case, pack, quick)
    rounds(case, unpack, quick)
    if not (np.array_equal(*packed) and np.array_equal(*target)):
        raise RuntimeError(f"{case.name}: the shim and the library differ")
    datatype.Free()
    row: dict[str, Any] = {"case": case.name, "block": case.block, "bytes": case.bytes}
    for name, (ours, theirs) in (("pack", pack), ("unpack", unpack)):
        row |= {f"{name}_us": round(ours.least_us, 3), f"{name}_library_us": round(theirs.least_us, 3)}
        row[f"{name}_ratio"] = round(theirs.least_us / ours.least_us, 2)
    return row


def forwarded(shim: Any, library: Any, mpi: Any, quick: bool) -> dict[str, Any]:
    """Return what a forwarded call of MPI_Pack costs more."""
    source, packed = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    arguments = (source.ctypes.data, 64, mpi._handleof(mpi.BYTE), packed.ctypes.data, 64, None, mpi._handleof(mpi.COMM_SELF))
    through, straight = (Calls(one.MPI_Pack, arguments, position=True) for one in (shim, library))
    for _ in range(20 if quick else 400):
        through.time(5, 1000), straight.time(5, 1000)
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


def child(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of this interpreter's library."""
    import warpwright.mpi
    from warpwright.domains.mpi.activate import library_of_mpi4py

    shim, library = warpwright.mpi.activate(), ctypes.CDLL(str(library_of_mpi4py()))
    from mpi4py import MPI

    name = " ".join(MPI.Get_library_version().replace("Version:", "").split(",")[0].split()[:3])
    ratios: dict[str, list[float]] = {"pack": [], "unpack": []}
    for case in CASES:
        row = measure(case, shim, library, MPI, quick)
        yield {"table": "cases", "library": name, **row}
        for kind in ratios:
            if 8 <= case.block <= 64:
                ratios[kind].append(row[f"{kind}_ratio"])
    for kind, all_ in ratios.items():
        mean = math.exp(sum(map(math.log, all_)) / len(all_))
        row = {"call": f"MPI_{kind.title()}", "blocks": "8 to 64 bytes", "geometric_mean": round(mean, 2), "least": min(all_)}
        yield {"table": "means", "library": name, **row}
    yield {"table": "forward", "library": name, **forwarded(shim, library, MPI, quick)}
    yield {"table": "commit", "library": name, **commits(MPI, shim, quick)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--dry", action="store_true", help="few repetitions")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    options = parser.parse_args()
    if options.child:
        for row in child(options.dry):
            print(json.dumps(row), flush=True)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    code = 0
    with (options.out / "rows.jsonl").open("w") as file:
        for python in options.pythons or [sys.executable]:
            command = [python, "-m", "benchmarks.mpi.pack_cpu", "--child", "--out", str(options.out), *(["--dry"] if options.dry else [])]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
            for line in process.stdout or ():
                file.write(line)
                file.flush()
                print(line, end="", flush=True)
            code |= process.wait()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
