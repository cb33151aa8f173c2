"""Graphs of processes on several hosts: full hosts, less between them, and every process with the neighbours of its new place."""

from __future__ import annotations

import ctypes
import subprocess
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import HERE, environment, last_line, launcher

from warpwright.domains.mpi import core

pytestmark = pytest.mark.compiler

Edges = list[tuple[int, int, int]]


def placed(hosts: list[int], edges: Edges) -> tuple[list[int], int]:
    """Return the host of each vertex, and what passes between hosts, as the core says."""
    ends = [np.ascontiguousarray([edge[i] for edge in edges], np.int32) for i in (0, 1)]
    weights = np.ascontiguousarray([edge[2] for edge in edges], np.int64)
    lie, result = np.array(hosts, np.int32), np.empty(len(hosts), np.int32)
    pointers = [one.ctypes.data for one in (*ends, weights, result)]
    cut = core.library().warpwright_partition(len(hosts), ctypes.c_void_p(lie.ctypes.data), len(edges), *pointers)
    return result.tolist(), int(cut)


def between(hosts: list[int], edges: Edges) -> int:
    """What passes between hosts; peers that do not exist cost nothing."""
    return sum(weight for a, b, weight in edges if max(a, b) < len(hosts) and min(a, b) >= 0 and hosts[a] != hosts[b])


graphs = st.integers(2, 12).flatmap(
    lambda size: st.tuples(
        st.lists(st.integers(0, 3), min_size=size, max_size=size).map(lambda hosts: [sorted(set(hosts)).index(one) for one in hosts]),
        st.lists(st.tuples(st.integers(-2, size), st.integers(-2, size), st.integers(0, 1000)), max_size=30),
    )
)


@settings(max_examples=100, deadline=None)
@given(graphs)
def test_hosts_stay_as_full_and_never_more_passes_between_them(graph: tuple[list[int], Edges]) -> None:
    hosts, edges = graph
    found, cut = placed(hosts, edges)
    assert Counter(found) == Counter(hosts)
    assert cut == between(found, edges) <= between(hosts, edges)


@pytest.mark.parametrize(("side", "most"), [(4, 16), (8, 52), (16, 144)])
def test_blocks_of_a_grid_that_are_scattered_over_hosts_come_together(side: int, most: int) -> None:
    """A periodic grid of processes, dealt out in turns to hosts of `side` processes each: rows cut `size` edges, blocks 16, 48, 128."""
    size = side * side
    edges = [(v, (v + side) % size, 1) for v in range(size)] + [(v, v - v % side + (v + 1) % side, 1) for v in range(size)]
    hosts = [(v // side + v) % side for v in range(size)]  # every edge goes to another host
    found, cut = placed(hosts, edges)
    assert Counter(found) == Counter(hosts) and between(hosts, edges) == 2 * size and cut <= most


def told(python: str, hosts: int, **more: str) -> dict[str, Any]:
    command = [*launcher(python, 4), python, str(HERE / "reordering.py"), str(hosts)]
    return last_line(subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(**more)))


def test_processes_that_exchange_much_come_to_one_host(python: str) -> None:
    result = told(python, 2, WARPWRIGHT_MPI_REORDER="on")
    assert result["weighted"] == {"right": 4, "moved": 2, "across": 2}, result  # 202 as they lie
    assert result["unweighted"]["right"] == 4 and result["unweighted"]["moved"] == 2, result


@pytest.mark.slow
@pytest.mark.parametrize(("hosts", "asked"), [(1, "on"), (2, "off")])
def test_on_one_host_or_not_asked_nothing_moves(python: str, hosts: int, asked: str) -> None:
    result = told(python, hosts, WARPWRIGHT_MPI_REORDER=asked)
    assert all(kind["right"] == 4 and kind["moved"] == 0 for kind in result.values()), result
