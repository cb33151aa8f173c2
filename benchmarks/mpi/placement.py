"""What passes between hosts after `--reorder`, beside METIS: `python -m benchmarks.mpi.placement --out FOLDER` (wants pymetis).

Grids (periodic), points in a cube tied to their nearest, and graphs with few vertices of many ties, dealt out to hosts in turns. METIS balances
within some per cent: of its partitions (recursive and k-way, ten seeds each, the best of four inside) only those that fill the hosts exactly count.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.mpi import core

Edges = list[tuple[int, int, int]]


def grid(*sides: int) -> Edges:
    """Return a periodic grid."""
    index = np.arange(np.prod(sides)).reshape(sides)
    return [(int(a), int(b), 1) for axis in range(len(sides)) for a, b in zip(index.ravel(), np.roll(index, -1, axis).ravel(), strict=True)]


def points(count: int, rng: np.random.Generator) -> Edges:
    """Return points in a cube, each tied to its six nearest by 1 to 99."""
    at = rng.random((count, 3))
    return [(i, int(j), int(rng.integers(1, 100))) for i in range(count) for j in np.argsort(((at - at[i]) ** 2).sum(1))[1:7]]


def hubs(count: int, rng: np.random.Generator) -> Edges:
    """Return a graph in which each vertex comes with three ties to those that have many."""
    edges, ends = [], [0, 1]
    for vertex in range(2, count):
        for _ in range(3):
            peer = int(rng.choice(ends))
            edges.append((vertex, peer, int(rng.integers(1, 10))))
            ends += [peer, vertex]
    return edges


def cut(hosts: list[int], edges: Edges) -> int:
    """Return what passes between hosts."""
    return sum(weight for a, b, weight in edges if hosts[a] != hosts[b])


def ours(hosts: list[int], edges: Edges) -> list[int]:
    """Return the hosts that the core chooses."""
    ends = [np.ascontiguousarray([edge[i] for edge in edges], np.int32) for i in (0, 1)]
    weights, lie, result = np.array([edge[2] for edge in edges], np.int64), np.array(hosts, np.int32), np.empty(len(hosts), np.int32)
    arrays: list[NDArray[Any]] = [*ends, weights, result]
    pointers = [one.ctypes.data for one in arrays]
    core.library().warpwright_partition(len(hosts), ctypes.c_void_p(lie.ctypes.data), len(edges), *pointers)
    return [int(one) for one in result]


def metis(count: int, hosts: int, edges: Edges) -> int | None:
    """Return the least cut of METIS's partitions that fill all hosts alike."""
    import pymetis

    ties: list[Counter[int]] = [Counter() for _ in range(count)]
    for a, b, weight in edges:
        if a != b:
            ties[a][b] += weight
            ties[b][a] += weight
    starts = np.cumsum([0, *map(len, ties)]).tolist()
    graph = pymetis.CSRAdjacency(adj_starts=starts, adjacent=[peer for one in ties for peer in one])
    weights = [weight for one in ties for weight in one.values()]
    found = []
    for recursive in (True, False):
        for seed in range(10):
            _, parts = pymetis.part_graph(hosts, graph, eweights=weights, recursive=recursive, options=pymetis.Options(ufactor=1, seed=seed, ncuts=4))
            if set(np.bincount(parts, minlength=hosts)) == {count // hosts}:
                found.append(cut(parts, edges))
    return min(found, default=None)


def rows() -> Iterator[dict[str, object]]:
    """Yield a row for each graph."""
    rng = np.random.default_rng(1)
    sides = (((8, 8), 8), ((16, 16), 16), ((32, 32), 16), ((4, 4, 8), 8), ((8, 8, 8), 8), ((8, 8, 8), 32), ((16, 8, 8), 64))
    graphs = [(f"grid {' x '.join(map(str, one))}", grid(*one), int(np.prod(one)), each) for one, each in sides]
    graphs += [(f"{size} points", points(size, rng), size, each) for size, each in ((128, 8), (512, 16))]
    graphs += [(f"{size} with hubs", hubs(size, rng), size, each) for size, each in ((256, 8), (512, 32))]
    for name, edges, count, each in graphs:
        hosts = count // each
        dealt = [vertex % hosts for vertex in range(count)]
        start = time.process_time()
        placed = ours(dealt, edges)
        ms = 1000 * (time.process_time() - start)
        yield {
            "table": "placement", "graph": name, "hosts": hosts, "processes a host": each, "dealt": cut(dealt, edges),
            "in order": cut([vertex // each for vertex in range(count)], edges), "ours": cut(placed, edges), "METIS": metis(count, hosts, edges),
            "ms": round(ms, 1),
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "rows.jsonl").open("w") as file:
        for row in rows():
            print(json.dumps(row), file=file, flush=True)
            print(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
