"""The work list of a kernel over rows: rows cut into chunks of edges, chunks of like length of one relation in tiles. Made on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import PAIRS, Domain
from warpwright.domains.rgnn.sorting import counting
from warpwright.domains.rgnn.sorting.counting import Tiles


def tiles(index: Index, rows: Domain, step: int) -> Tiles:
    """Return the tiles over `rows`, of at most a multiple of `step` chunks each."""
    return index.keep(("tiles", rows, step), lambda: _tiles(index, rows, step))


@dataclass(frozen=True)
class _Chunks:
    """Chunks in order of relation and length, and where each relation's begin."""

    row: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor
    first: torch.Tensor
    relation_start: torch.Tensor


def _chunks(index: Index, rows: Domain) -> _Chunks:
    device, count, longest = index.device, index.rows[rows], index.longest
    relations = index.relations if rows in PAIRS else 1
    if not count:
        none = torch.zeros(0, dtype=torch.int32, device=device)
        return _Chunks(none, none, none, none, torch.zeros(relations + 1, dtype=torch.long, device=device))
    start = index.start(rows).long()
    lengths = start[1:] - start[:-1]
    per_row = (lengths + longest - 1) // longest
    ends = per_row.cumsum(0)
    number = torch.arange(count + index.edges // longest, device=device)  # at least as many as there are chunks
    row = torch.searchsorted(ends, number, right=True)
    real = row < count
    row = row.clamp(max=count - 1)
    begin = start[row] + (number - (ends - per_row)[row]) * longest
    end = torch.minimum(begin + longest, start[row + 1])
    of = torch.where(real, index.lift(Domain.ETYPE, rows)[row].long() if rows in PAIRS else 0, relations)
    shorter = 7 - torch.ceil(torch.log2((end - begin).clamp(min=1).float())).long()
    order = torch.sort(of * 8 + shorter, stable=True)[1]
    relation_start = torch.searchsorted(of[order], torch.arange(relations + 1, device=device))
    return _Chunks(row[order].int(), begin[order].int(), end[order].int(), (begin == start[row])[order].int(), relation_start)


def _counted(index: Index, rows: Domain, step: int, launch: counting.Launch) -> Tiles:
    """Return the tiles from a work list by counting, made at the first step that is asked for."""
    relations, room = index.relations if rows in PAIRS else 1, index.rows[rows] + index.edges // index.longest
    span = counting.span_of(room, step)

    def make() -> Tiles:
        etype = index.lift(Domain.ETYPE, rows) if rows in PAIRS else None
        return counting.work(launch, index.start(rows), etype, relations, room, span, index.longest)

    work = index.keep(("work", rows), make)
    if work.span == span:
        return work
    relation, begin, end = counting.tiles(launch, counting.tensor_of(work.relation_start), span, room // span + relations)
    return replace(work, relation=relation, tile_begin=begin, tile_end=end, span=span)


def _tiles(index: Index, rows: Domain, step: int) -> Tiles:
    launch = counting.launcher(index.device)
    if launch is not None and index.rows[rows]:
        return _counted(index, rows, step, launch)
    chunks = index.keep(("chunks", rows), lambda: _chunks(index, rows))
    room, start = chunks.row.numel(), chunks.relation_start
    relations = start.numel() - 1
    span = counting.span_of(room, step)
    needed = (start[1:] - start[:-1] + span - 1) // span
    ends = needed.cumsum(0)
    tile = torch.arange(room // span + relations, device=index.device)
    of = torch.searchsorted(ends, tile, right=True)
    used = of < relations
    of = of.clamp(max=relations - 1)
    begin = start[of] + (tile - (ends - needed)[of]) * span
    end = torch.minimum(begin + span, start[of + 1])
    return Tiles(
        chunks.row, chunks.begin, chunks.end, chunks.first, of.int(), torch.where(used, begin, 0).int(), torch.where(used, end, 0).int(),
        start.int(), span,
    )
