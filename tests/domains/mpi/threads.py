"""Run by mpiexec on two processes: eight threads of each exchange objects of types of their own, all at once. Prints "exact" on rank 0."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import warpwright.mpi

# isort: split
from mpi4py import MPI  # after warpwright.mpi

COMM = MPI.COMM_WORLD
RANK, PEER = COMM.Get_rank(), 1 - COMM.Get_rank()


def exchange(thread: int) -> bool:
    """Send and receive columns of a matrix many times, with types that come and go; return whether all arrived."""
    good = True
    for turn in range(60):
        rows, width = 20 + (turn + thread) % 50, 1 + turn % 5
        mine, theirs = (np.full((rows, 16), 100.0 * rank + thread + turn / 100) for rank in (RANK, PEER))
        target = np.zeros((rows, 16))
        column = MPI.DOUBLE.Create_vector(rows, width, 16).Commit()
        requests = [COMM.Irecv([target, 1, column], PEER, thread), COMM.Isend([mine, 1, column], PEER, thread)]
        column.Free()
        MPI.Request.Waitall(requests)
        good = good and bool((target[:, :width] == theirs[:, :width]).all()) and not target[:, width:].any()
    return good


SHARED = MPI.DOUBLE.Create_vector(100, 2, 16).Commit()


def share(thread: int) -> bool:
    """The same with one type of all threads, used often enough that the library's engine is tried on it."""
    good = True
    for turn in range(12):
        mine, theirs = (np.full((100, 16), 100.0 * rank + thread + turn / 100) for rank in (RANK, PEER))
        target = np.zeros((100, 16))
        MPI.Request.Waitall([COMM.Irecv([target, 1, SHARED], PEER, thread), COMM.Isend([mine, 1, SHARED], PEER, thread)])
        good = good and bool((target[:, :2] == theirs[:, :2]).all()) and not target[:, 2:].any()
    return good


if __name__ == "__main__":
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    with ThreadPoolExecutor(8) as pool:
        exact = all(pool.map(exchange, range(8))) and all(pool.map(share, range(8)))
    exact = exact and "here" in warpwright.mpi.explain(SHARED)
    if COMM.allreduce(int(exact)) == 2 and RANK == 0:
        print("exact", warpwright.mpi.counts()["send"]["served"])
    sys.exit(not exact)
