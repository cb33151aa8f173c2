"""The work list of a kernel over rows: rows cut into chunks of edges, chunks of like length of one relation in tiles. Made on the device, without waiting."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from warpwright.domains.rgnn.index import LONGEST, Index
from warpwright.domains.rgnn.lattice import PAIRS, Domain

PROGRAMS = 2048
"""Tiles are made longer as long as there are this many: a relation's weight is then read, and its gradient added, less often."""
LONGEST_TILE = 16
"""Steps of a tile at most."""


@dataclass(frozen=True)
class Tiles:
    """Chunks (`row`, `begin`, `end` among the edges in the rows' order, `first` of its row) and tiles of chunks of one relation, all int32."""

    row: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor
    first: torch.Tensor
    relation: torch.Tensor
    tile_begin: torch.Tensor
    tile_end: torch.Tensor

    @property
    def count(self) -> int:
        """How many tiles there may be; the last ones may be empty."""
        return self.relation.numel()


def tiles(index: Index, rows: Domain, step: int) -> Tiles:
    """Return the tiles over `rows`, of at most a multiple of `step` chunks each."""
    key = ("tiles", rows, step)
    if key not in index.kept:
        index.kept[key] = _tiles(index, rows, step)
    kept: Tiles = index.kept[key]
    return kept


def _tiles(index: Index, rows: Domain, step: int) -> Tiles:
    device, count = index.device, index.rows[rows]
    room = count + index.edges // LONGEST
    relations = index.relations if rows in PAIRS else 1
    start = index.start(rows).long()
    lengths = start[1:] - start[:-1]
    per_row = (lengths + LONGEST - 1) // LONGEST
    ends = per_row.cumsum(0)
    number = torch.arange(room, device=device)
    row = torch.searchsorted(ends, number, right=True)
    real = row < count
    row = row.clamp(max=max(count - 1, 0))
    if not count:
        row = torch.zeros(0, dtype=torch.long, device=device)
        begin = end = relation_of = row
        real = row.bool()
    else:
        before = number - (ends - per_row)[row]
        begin = start[row] + before * LONGEST
        end = torch.minimum(begin + LONGEST, start[row + 1])
        relation_of = index.lift(Domain.ETYPE, rows)[row].long() if rows in PAIRS else torch.zeros_like(row)
    length = torch.where(real, end - begin, 0)
    bucket = 7 - torch.ceil(torch.log2(length.clamp(min=1).float())).long()
    order = torch.sort(torch.where(real, relation_of, relations) * 8 + bucket, stable=True)[1]
    sorted_relation = torch.where(real, relation_of, relations)[order]
    relation_start = torch.searchsorted(sorted_relation, torch.arange(relations + 1, device=device))
    span = step * max(1, min(LONGEST_TILE, room // (step * PROGRAMS)))
    needed = (relation_start[1:] - relation_start[:-1] + span - 1) // span
    tile_ends = needed.cumsum(0)
    tile = torch.arange(room // span + relations, device=device)
    of = torch.searchsorted(tile_ends, tile, right=True)
    used = of < relations
    of = of.clamp(max=relations - 1)
    tile_begin = relation_start[of] + (tile - (tile_ends - needed)[of]) * span
    tile_end = torch.minimum(tile_begin + span, relation_start[of + 1])
    first = begin == start[row] if count else real
    chosen = [x[order].int() for x in (row, begin, end, first)]
    return Tiles(*chosen, of.int(), torch.where(used, tile_begin, 0).int(), torch.where(used, tile_end, 0).int())
