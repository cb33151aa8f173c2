"""Run in four processes: a ring of processes with heavy and light edges, on hosts that take turns; rank 0 prints what came of it as JSON."""

from __future__ import annotations

import json
import os
import sys

RANK = int(next(os.environ[name] for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if name in os.environ))
HOSTS = int(sys.argv[1])
os.environ["WARPWRIGHT_MPI_HOST"] = f"host {RANK % HOSTS}"

import warpwright.mpi  # noqa: E402

# isort: split
from mpi4py import MPI  # noqa: E402

COMM = MPI.COMM_WORLD
HEAVY, LIGHT = 100, 1


def neighbours(vertex: int) -> tuple[list[int], list[int]]:
    """The vertices before and after, and what is exchanged with them: much between 0 and 1, 2 and 3."""
    size = COMM.Get_size()
    before, after = (vertex - 1) % size, (vertex + 1) % size
    return [before, after], [HEAVY if vertex % 2 else LIGHT, LIGHT if vertex % 2 else HEAVY]


def main() -> None:
    peers, weights = neighbours(RANK)
    kinds = {"weighted": {"sourceweights": weights, "destweights": weights}, "unweighted": {}}
    told = {}
    for name, more in kinds.items():
        graph = COMM.Create_dist_graph_adjacent(peers, peers, reorder=True, **more)
        vertex = graph.Get_rank()
        expected, paid = neighbours(vertex)
        sources, destinations, given = graph.Get_dist_neighbors()
        right = list(sources) == expected and list(destinations) == expected and (not more or [list(one) for one in given] == [paid, paid])
        arrived = graph.neighbor_allgather(vertex)
        right = right and sorted(arrived) == sorted(expected)
        hosts = graph.allgather(os.environ["WARPWRIGHT_MPI_HOST"])
        across = sum(cost for peer, cost in zip(expected, paid, strict=True) if hosts[peer] != hosts[vertex])
        told[name] = {"right": COMM.allreduce(int(right)), "moved": COMM.allreduce(int(vertex != RANK)), "across": COMM.allreduce(across) // 2}
        graph.Free()
    if RANK == 0:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
    assert "warpwright.mpi" in sys.modules and warpwright.mpi.activate() is not None
