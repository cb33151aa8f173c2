"""Indices by counting: the CUDA kernels, run on the CPU by the transpiler, against torch's sorts."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch
from domains.rgnn.layers import edges
from hypothesis import given
from hypothesis import strategies as st

from warpwright.domains.rgnn.emit.tiles import _chunks, _tiles
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.sorting import counting
from warpwright.errors import UsageError

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

@pytest.fixture(scope="module")
def launch() -> counting.Launch:
    import warpwright.transpile

    kernels = warpwright.transpile.loads(counting.text())

    def run(name: str, blocks: int, *arguments: Any) -> None:
        alone = 1 if name in counting.MEET else blocks  # blocks run one after another here: one of them cannot wait for the next
        getattr(kernels, name)[alone, counting.THREADS](*arguments)

    return run


@pytest.fixture(params=[counting.SHORT, counting.LONGEST], autouse=True)
def longest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Edges of a chunk, as of a small graph and as of a large one."""
    monkeypatch.setattr(counting, "SHORT", request.param)
    most: int = request.param
    return most


def made(launch: counting.Launch, nodes: int, count: int, relations: int, hub: int) -> tuple[Index, counting.Sorted]:
    index, kind = edges(nodes, count, relations, hub=hub)
    return Index(index[0], index[1], kind, nodes, nodes, relations), counting.sort(launch, index[0], index[1], kind, nodes, nodes, relations)


SHAPES = [(20, 90, 4, 0), (20, 400, 4, 150), (700, 3000, 9, 0), (1, 70, 1, 70), (5000, 300, 3, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_counting_gives_the_index_that_sorting_gives(launch: counting.Launch, shape: tuple[int, int, int, int]) -> None:
    index, found = made(launch, *shape)
    for pairs, end, side in ((Domain.PAIR_DST, Domain.DST, found.of_dst), (Domain.PAIR_SRC, Domain.SRC, found.of_src)):
        assert torch.equal(side.start, index.start(pairs))
        assert torch.equal(side.node, index.lift(end, pairs)) and torch.equal(side.etype, index.lift(Domain.ETYPE, pairs))
    assert torch.equal(found.dst, index.lift(Domain.DST, Domain.EDGE)) and torch.equal(found.etype, index.lift(Domain.ETYPE, Domain.EDGE))
    assert torch.equal(found.to_dst, index.lift(Domain.PAIR_DST, Domain.EDGE))
    # within a pair edges come in any order: those of equal pairs have the same sources and source pairs
    for own, wanted in ((found.src, index.lift(Domain.SRC, Domain.EDGE)), (found.to_src, index.lift(Domain.PAIR_SRC, Domain.EDGE))):
        assert torch.equal(torch.sort(found.to_dst.long() << 32 | own)[0], torch.sort(found.to_dst.long() << 32 | wanted)[0])
    assert torch.equal(torch.sort(found.order)[0], torch.arange(len(found.order), dtype=torch.int32))
    assert torch.equal(found.to_src[found.order.long()], torch.sort(found.to_src)[0])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rows", [Domain.PAIR_DST, Domain.PAIR_SRC, Domain.DST], ids=str)
def test_the_work_list_is_the_same(launch: counting.Launch, shape: tuple[int, int, int, int], rows: Domain) -> None:
    index, _ = made(launch, *shape)
    wanted = _chunks(index, rows)
    relations = wanted.relation_start.numel() - 1
    etype = index.lift(Domain.ETYPE, rows) if relations > 1 or rows is not Domain.DST else None
    room = wanted.row.numel()
    work = counting.work(launch, index.start(rows), etype, relations, room, counting.span_of(room, 4), index.longest)
    found = (work.row, work.begin, work.end, work.first)
    assert torch.equal(work.relation_start, wanted.relation_start.int())
    count = int(work.relation_start[-1])
    own, others = (torch.stack([x[:count].long() for x in parts]) for parts in (found, (wanted.row, wanted.begin, wanted.end, wanted.first)))
    lengths = [7 - torch.ceil(torch.log2((x[2] - x[1]).float())).long() for x in (own, others)]
    assert torch.equal(*lengths)  # of each relation those of like length come together, the longest first
    assert {tuple(x) for x in own.T.tolist()} == {tuple(x) for x in others.T.tolist()}
    for step in (1, 4, 32):
        plain, span = _tiles(index, rows, step), counting.span_of(room, step)
        tiles = counting.tiles(launch, work.relation_start, span, plain.count)
        if step == 4:
            assert all(torch.equal(a, b) for a, b in zip(tiles, (work.relation, work.tile_begin, work.tile_end), strict=True))
        assert all(torch.equal(a, b) for a, b in zip(tiles, (plain.relation, plain.tile_begin, plain.tile_end), strict=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pairs_come_with_their_counts_and_their_work_list(launch: counting.Launch, shape: tuple[int, int, int, int]) -> None:
    index, found = made(launch, *shape)
    lengths = index.start(Domain.PAIR_DST).diff()
    assert torch.equal(found.count, lengths.float()) and torch.equal(found.inverse, 1 / lengths.float())
    plain, work = _tiles(index, Domain.PAIR_DST, counting.USUAL_STEP), found.work
    of_work, of_plain = ((y.relation, y.tile_begin, y.tile_end) for y in (work, plain))
    assert all(torch.equal(a, b) for a, b in zip(of_work, of_plain, strict=True))
    count = int(work.relation_start[-1])
    own, others = (torch.stack([x[:count].long() for x in (y.row, y.begin, y.end, y.first)]) for y in (work, plain))
    assert {tuple(x) for x in own.T.tolist()} == {tuple(x) for x in others.T.tolist()}


@given(st.integers(1, 10**7), st.sampled_from([1, 32, 64, 256]), st.data())
def test_a_work_list_has_room_for_the_tiles_of_any_number_of_chunks(most: int, step: int, data: st.DataObject) -> None:
    chunks = data.draw(st.integers(0, most))
    assert chunks // counting.span_of(chunks, step) <= max(counting.most_tiles(most, step), 1)


def test_numbers_out_of_range_are_refused(launch: counting.Launch) -> None:
    index, kind = edges()
    for end, relation in ((index + 10, kind), (index, kind + 3), (-index, kind)):
        with pytest.raises(UsageError, match="out of range"):
            counting.sort(launch, end[0], end[1], relation, 20, 20, 4)


def test_what_fits() -> None:
    assert counting.fits(100_000, 100_000, 30) and counting.fits(1_000, 1_000, 30)
    assert not counting.fits(0, 10, 3) and not counting.fits(16_000_000, 5_000_000, 535)


def test_what_is_to_be_done_meanwhile_is_done_once(launch: counting.Launch) -> None:
    called: list[int] = []
    index, kind = edges(20, 90, 4)
    counting.sort(launch, index[0], index[1], kind, 20, 20, 4, lambda: called.append(1))
    Index(index[0], index[1], kind, 20, 20, 4, meanwhile=lambda: called.append(2))
    assert called == [1, 2]
