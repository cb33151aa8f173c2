"""Run by mpiexec on two processes: what the shim learns of a program's own messages, and that trials leave no trace. Rank 0 prints one JSON line."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

import warpwright.mpi

# isort: split
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK = COMM.Get_rank()
USES = int(os.environ.get("USES", "20"))


def sent(datatype: Any, room: int) -> bool:
    """Whether an object arrives as it is, every time, with all bytes around it as they were."""
    right = True
    source, before = np.arange(room, dtype=np.uint8), np.arange(room, dtype=np.uint8)
    for turn in range(USES):
        if RANK == 0:
            COMM.Send([source, 1, datatype], 1, turn)
            right = right and np.array_equal(source, before)
            continue
        target = np.full(room, 200 + turn % 2, np.uint8)
        expected = target.copy()
        layout = warpwright.mpi.layout(datatype)
        packed = np.empty(layout.bytes, np.uint8)
        layout.pack(source.ctypes.data, packed)
        layout.unpack(packed, expected.ctypes.data)
        COMM.Recv([target, 1, datatype], 0, turn)
        right = right and np.array_equal(target, expected)
    return bool(COMM.allreduce(int(right)) == 2)


def wildcard() -> bool:
    """Whether a receive of anything from oneself gets what the program sends, and no trial."""
    anything, column = np.zeros(4, np.int64), MPI.BYTE.Create_vector(64, 8, 32).Commit()
    request = MPI.COMM_SELF.Irecv(anything, MPI.ANY_SOURCE, MPI.ANY_TAG)
    right = sent(column, 64 * 32)
    known = warpwright.mpi.explain(column)
    MPI.COMM_SELF.Send(np.arange(4, dtype=np.int64), 0, 9)
    request.Wait()
    return right and known["why"].startswith("by ") and np.array_equal(anything, np.arange(4))


def main() -> None:
    column = MPI.DOUBLE.Create_vector(4096, 1, 8).Commit()
    early = warpwright.mpi.explain(column)
    right = sent(column, 4096 * 64)
    late, counts = warpwright.mpi.explain(column), warpwright.mpi.counts()["send"]
    # Open MPI sends the first of these complex numbers twice.
    pairs = MPI.C_DOUBLE_COMPLEX.Create_hvector(2, 1, 8).Create_resized(0, 64).Create_contiguous(100).Commit()
    for turn in range(USES):  # to oneself, as bytes: the receiver of such a type would write places twice
        packed = np.empty(3200, np.uint8)
        request = MPI.COMM_SELF.Irecv([packed, MPI.BYTE], 0, turn)
        MPI.COMM_SELF.Send([np.arange(6400, dtype=np.uint8), 1, pairs], 0, turn)
        request.Wait()
    last = bool((packed[16:24] == np.arange(8, 16)).all())
    told = {"right": right, "pairs_right": last, "early": early, "late": late, "pairs": warpwright.mpi.explain(pairs), "wildcard": bool(wildcard()), "sends": counts}
    if RANK == 0:
        print(json.dumps({**told, "library": MPI.Get_library_version().split()[0]}))


if __name__ == "__main__":
    main()
