"""The work list of a CPU kernel over rows: ranges of nodes of about equal work, each taken by one thread; a hub alone is shared."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import PAIRS, Domain

IN_CACHE = 4096
"""Nodes of a range, if there are enough pairs: their rows stay in a core's second cache, 256 bytes each."""
OF_RELATION = 32
"""Pairs of one relation in a range, at least, on average: they share the reading of a weight."""
HUB = 16384
"""Edges of a node that threads may share: each adds its part of the row atomically."""


@dataclass(frozen=True)
class Units:
    """`cut` [ranges, relations, 2]: first row and end; `table` [units, 3]: range, part, parts; all int32."""

    cut: torch.Tensor
    table: torch.Tensor
    relations: int


def units(index: Index, rows: Domain, threads: int) -> Units:
    """Return the work list over `rows`."""
    return index.keep(("units", rows, threads), lambda: _units(index, rows, threads))


def _units(index: Index, rows: Domain, threads: int) -> Units:
    nodes = {Domain.PAIR_DST: Domain.DST, Domain.PAIR_SRC: Domain.SRC}.get(rows, rows)
    count, relations = index.rows[nodes], index.relations if rows in PAIRS else 1
    edges = torch.bincount(index.lift(nodes, Domain.EDGE), minlength=count)
    cost = edges.double() + 0.1
    if rows in PAIRS:
        cost += 3 * torch.bincount(index.lift(nodes, rows), minlength=count)
    hubs = torch.nonzero(edges > max(HUB, index.edges // (2 * threads))).flatten() if threads > 1 else torch.zeros(0, dtype=torch.long)
    ranges = min(count // IN_CACHE, index.rows[rows] // (relations * OF_RELATION)) if rows in PAIRS else count // IN_CACHE
    ranges = max(2 * threads, min(64 * threads, ranges))
    work = cost.cumsum(0)
    even = torch.searchsorted(work, work[-1:] * torch.arange(1, ranges, dtype=torch.float64) / ranges) if count else hubs
    ends = torch.unique(torch.cat([torch.tensor([0, count]), even, hubs, hubs + 1]))
    first = ends[:-1]
    table = torch.stack([torch.arange(len(first)), torch.zeros_like(first), torch.ones_like(first)], 1)
    if len(hubs):
        alone = torch.isin(first, hubs)
        parts = 4 * threads
        shared = torch.stack([t.flatten() for t in torch.meshgrid(torch.nonzero(alone).flatten(), torch.arange(parts), indexing="ij")], 1)
        table = torch.cat([torch.cat([shared, torch.full((len(shared), 1), parts)], 1), table[~alone]])
    if rows in PAIRS:
        keys = index.lift(Domain.ETYPE, rows).long() * count + index.lift(nodes, rows)
        places = torch.searchsorted(keys, torch.arange(relations)[None, :] * count + ends[:, None])
    else:
        places = ends[:, None]
    cut = torch.stack([places[:-1], places[1:]], 2)
    return Units(cut.int().contiguous(), table.int().contiguous(), relations)
