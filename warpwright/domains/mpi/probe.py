"""Run by mpiexec on two processes (`warpwright mpi measure`): half ping-pongs of derived datatypes by each method, and the same within one
process; rank 0 prints one JSON line."""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ["WARPWRIGHT_MPI_LEAST"], os.environ["WARPWRIGHT_MPI_BLOCK"] = "1", str(1 << 62)  # the shim packs everything

from warpwright.domains.mpi import activate, model  # noqa: E402

SIZES = tuple(1 << at for at in (9, 11, 12, 13, 14, 15, 17, 20))
BLOCKS = (8, 32, 128, 512, 4096)
SECONDS = 0.03
"""Of one method at one point."""


def pingpong(library: Any, buffer: Any, handle: Any, comm: Any, rank: int) -> float:
    """Return the microseconds of half of there and back by a library's own functions."""
    peer, status = 1 - rank, ctypes.create_string_buffer(64)
    start = time.perf_counter()
    for turn in (0, 1):
        if turn == rank:
            library.MPI_Send(buffer, 1, handle, peer, 7, comm)
        else:
            library.MPI_Recv(buffer, 1, handle, peer, 7, comm, status)
    return (time.perf_counter() - start) * 5e5


def alone(shim: Any, handle: Any, memory: Any, rounds: int) -> dict[str, list[float]]:
    """Return the times of what a process sends to itself, as the shim's own trials tell them."""
    times: dict[str, list[float]] = {method: [] for method in model.ALONE}
    both = (ctypes.c_double * 2)()
    for round_ in range(rounds):
        if shim.warpwright_try(handle, 1, memory, round_ % 2, both) == 0:
            for method, us in zip(model.ALONE, both, strict=True):
                times[method].append(us)
    return {method: all_ for method, all_ in times.items() if len(all_) > 1}


def measured(mpi: Any, libraries: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the time of each method at each point, both in turns."""
    comm = mpi.COMM_WORLD.Dup()
    rank = comm.Get_rank()
    wide: Any = ctypes.c_void_p if mpi._sizeof(mpi.BYTE) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
    memory = ctypes.create_string_buffer(4 * SIZES[-1])
    for size in SIZES:
        for block in (block for block in BLOCKS if 2 * block <= size):
            datatype = mpi.BYTE.Create_vector(size // block, block, 4 * block).Commit()
            arguments = (memory, wide(mpi._handleof(datatype)), wide(mpi._handleof(comm)), rank)
            once = max(pingpong(library, *arguments) for library in libraries.values() for _ in range(2))
            rounds = comm.bcast(max(8, min(200, int(SECONDS * 1e6 / (2 * once)))))
            times: dict[str, list[float]] = {method: [] for method in libraries}
            for _ in range(rounds):
                for method, library in libraries.items():
                    comm.Barrier()
                    times[method].append(pingpong(library, *arguments))
            times |= alone(libraries["packed"], arguments[1], memory, rounds)
            datatype.Free()
            for method, all_ in times.items():
                low, middle, high = statistics.quantiles(all_, n=4)
                yield {"method": method, "bytes": size, "block": block, "us": [low, middle, high]}


def main() -> int:
    """Print the key and the points."""
    shim = activate.activate()
    from mpi4py import MPI

    if shim is None or MPI.COMM_WORLD.Get_size() != 2:
        print("expected two processes with mpi4py and the shim (unset WARPWRIGHT_MPI)", file=sys.stderr)
        return 1
    path = activate.library_of_mpi4py()
    points = list(measured(MPI, {"library": ctypes.CDLL(str(path)), "packed": shim}))
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(json.dumps({"key": model.key(path), "library": MPI.Get_library_version().split(",")[0].splitlines()[0], "points": points}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
