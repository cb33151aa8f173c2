"""What the shims choose for messages in host memory, and what it costs: `python -m benchmarks.mpi.choice --out FOLDER PYTHON ...`.

Half ping-pongs of MPI_Send and MPI_Recv between two processes over sizes, lengths of blocks and distances between them, in three jobs a library:
`packed` (everything is packed), `chosen` (the shim as it is without a measurement: two thresholds, then its trials) and `measured` (the same after
`warpwright mpi measure`). Each job times the library's own types in turns with ours, so that a ratio is of one job. A row tells both ratios (the
library's time over ours) and what was chosen in the end.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.mpi.gpu_programs import run
from benchmarks.mpi.suites import FORCED, environment, launcher, library_of

SIZES = (512, 1 << 11, 1 << 13, 1 << 15, 1 << 17, 1 << 20)
BLOCKS = (8, 24, 64, 128, 512, 4096)
DISTANCES = (2, 16)
"""From the start of a block to the next, in blocks."""
ROOM = 16 << 20
TURNS = 24
LIMIT_S = 200


def pingpong(library: Any, arguments: tuple[Any, ...], rank: int) -> float:
    """Return the microseconds of half of there and back."""
    base, handle, comm, status = arguments
    start = time.perf_counter()
    for turn in (0, 1):
        if turn == rank:
            library.MPI_Send(base, 1, handle, 1 - rank, 7, comm)
        else:
            library.MPI_Recv(base, 1, handle, 1 - rank, 7, comm, status)
    return (time.perf_counter() - start) * 5e5


def rows(mpi: Any, shim: Any, library: Any, turns: int) -> Iterator[dict[str, Any]]:
    """Yield the times of every case, the library's and ours in turns; the first sixteen exchanges of ours, among them its trials, are not counted."""
    comm = mpi.COMM_WORLD.Dup()
    rank, memory, status = comm.Get_rank(), ctypes.create_string_buffer(b"\1" * ROOM, ROOM), ctypes.create_string_buffer(64)
    wide: Any = ctypes.c_void_p if mpi._sizeof(mpi.BYTE) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
    for size in SIZES:
        for block in (block for block in BLOCKS if 2 * block <= size):
            for distance in (distance for distance in DISTANCES if size * distance <= ROOM):
                datatype = mpi.BYTE.Create_vector(size // block, block, distance * block).Commit()
                handle = wide(mpi._handleof(datatype))
                arguments = (memory, handle, wide(mpi._handleof(comm)), status)
                for _ in range(8):
                    pingpong(shim, arguments, rank)
                times: dict[str, list[float]] = {"library": [], "ours": []}
                for _ in range(turns):
                    for name, one in (("library", library), ("ours", shim)):
                        comm.Barrier()
                        times[name].append(pingpong(one, arguments, rank))
                known = (ctypes.c_double * 5)()
                chosen = shim.warpwright_choice(handle, ctypes.c_int64(1), known)
                datatype.Free()
                ratios = [before / after for before, after in zip(times["library"], times["ours"], strict=True)]
                yield {
                    "bytes": size, "block": block, "distance": distance, "library_us": round(statistics.median(times["library"]), 2),
                    "ours_us": round(statistics.median(times["ours"]), 2), "ratio": round(statistics.median(ratios), 3), "packs": bool(chosen),
                    "trials": int(known[1]), "alone": round(known[2] / known[3], 2) if known[3] else None,
                }  # fmt: skip


def job(turns: int) -> None:
    """One process of a job; process 0 prints a line for each case."""
    import warpwright.mpi

    # isort: split
    from mpi4py import MPI

    from warpwright.domains.mpi.activate import library_of_mpi4py

    library = ctypes.CDLL(str(library_of_mpi4py()))
    for row in rows(MPI, warpwright.mpi.activate(), library, turns):
        if MPI.COMM_WORLD.Get_rank() == 0:
            print(json.dumps(row), flush=True)


def jobs(python: Path, folder: Path, turns: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each job and case of one library, in which the ratios of the job that packs everything stand beside."""
    file = folder / "model.json"
    settings: dict[str, dict[str, str]] = {"packed": FORCED, "chosen": {}, "measured": {"WARPWRIGHT_MPI_MODEL": str(file)}}
    name, command = library_of(python), [*launcher(python, 2), str(python), "-m", "benchmarks.mpi.choice", "--turns", str(turns), "--job"]
    always: dict[tuple[int, ...], float] = {}
    quiet = {**environment(), "OMPI_MCA_mpi_yield_when_idle": "0"}  # each process has a core
    for kind, more in settings.items():
        if kind == "measured":
            verb = [sys.executable, "-m", "warpwright", "mpi", "measure", "--python", str(python)]
            told = run(verb, {**quiet, **more}, LIMIT_S)
            if told["code"]:
                yield {"table": "failed", "library": name, "job": kind, "error": told["err"][-300:]}
                continue
        elsewhere = {"WARPWRIGHT_MPI_MODEL": str(folder / "none.json")} if kind == "chosen" else {}
        told = run(command, {**quiet, **more, **elsewhere}, LIMIT_S)
        if told["code"]:
            yield {"table": "failed", "library": name, "job": kind, "error": told["err"][-300:]}
        for row in map(json.loads, filter(lambda line: line.startswith("{"), told["out"].splitlines())):
            case = (row["bytes"], row["block"], row["distance"])
            if kind == "packed":
                always[case] = row["ratio"]
            else:
                row["packed_ratio"] = always.get(case)
            yield {"table": kind, "library": name, **row}


def means(told: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what each job of each library comes to."""
    for library, kind in dict.fromkeys((row["library"], row["table"]) for row in told if row["table"] != "failed"):
        mine = [row for row in told if (row["library"], row["table"]) == (library, kind)]
        ratios = [row["ratio"] for row in mine]
        yield {
            "table": "means", "library": library, "job": kind, "cases": len(mine), "packs": sum(row["packs"] for row in mine),
            "geometric_mean": round(math.exp(statistics.fmean(map(math.log, ratios))), 3), "least": min(ratios),
            "below_095": sum(ratio < 0.95 for ratio in ratios),
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--turns", type=int, default=TURNS, help="of each case")
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("python", type=Path, nargs="*", help="an interpreter with mpi4py over one MPI library, its launcher beside it")
    options = parser.parse_args()
    if options.job:
        job(options.turns)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    told = []
    with (options.out / "rows.jsonl").open("a") as file, tempfile.TemporaryDirectory() as folder:
        for row in (row for python in options.python for row in jobs(python.absolute(), Path(folder), options.turns)):
            told.append(row)
            print(json.dumps(row), file=file, flush=True)
        for row in means(told):
            print(json.dumps(row), file=file, flush=True)
            print(row, flush=True)
    failed = [row for row in told if row["table"] == "failed"]
    print(f"{len(told)} rows, {len(failed)} failed", *failed)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
