"""Indices by counting: the CUDA kernels, run on the CPU by the transpiler, against torch's sorts."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from domains.rgnn.layers import edges
from hypothesis import given
from hypothesis import strategies as st

from warpwright.domains.rgnn.emit.tiles import _chunks, _tiles
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.sorting import answers, counting
from warpwright.domains.rgnn.sorting.counting import tensor_of
from warpwright.errors import UsageError

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

@pytest.fixture(scope="module")
def launch() -> counting.Launch:
    import warpwright.transpile

    kernels = warpwright.transpile.loads(counting.text())

    def run(name: str, blocks: int, *arguments: Any) -> None:
        alone = 1 if name in counting.MEET else blocks  # blocks run one after another here: one of them cannot wait for the next
        getattr(kernels, name)[alone, counting.THREADS](*(x.tensor if isinstance(x, counting.Part) else x for x in arguments))

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
    src, dst, etype, to_dst, to_src, order = (found.of_edge(number).tensor for number in range(6))
    assert torch.equal(dst, index.lift(Domain.DST, Domain.EDGE)) and torch.equal(etype, index.lift(Domain.ETYPE, Domain.EDGE))
    assert torch.equal(to_dst, index.lift(Domain.PAIR_DST, Domain.EDGE))
    # within a pair edges come in any order: those of equal pairs have the same sources and source pairs
    for own, wanted in ((src, index.lift(Domain.SRC, Domain.EDGE)), (to_src, index.lift(Domain.PAIR_SRC, Domain.EDGE))):
        assert torch.equal(torch.sort(to_dst.long() << 32 | own)[0], torch.sort(to_dst.long() << 32 | wanted)[0])
    assert torch.equal(torch.sort(order)[0], torch.arange(len(order), dtype=torch.int32))
    assert torch.equal(to_src[order.long()], torch.sort(to_src)[0])
    small = found.shrunk()
    for number in range(16):
        part = small.part(number)
        assert torch.equal(part.tensor, found.part(number).tensor) and part.data_ptr() == part.tensor.data_ptr()
    assert small.memory.numel() <= found.memory.numel()


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_an_index_of_counting_gives_what_one_of_sorting_gives(launch: counting.Launch, shape: tuple[int, int, int, int]) -> None:
    index, kind = edges(*shape[:3], hub=shape[3])
    nodes, relations = shape[0], shape[2]
    plain = Index(index[0], index[1], kind, nodes, nodes, relations)
    with patch.object(counting, "launcher", lambda device: launch):
        found = Index(index[0], index[1], kind, nodes, nodes, relations)
    assert found.counted is not None and found.rows == plain.rows
    for pairs, end in ((Domain.PAIR_DST, Domain.DST), (Domain.PAIR_SRC, Domain.SRC)):
        assert torch.equal(found.start(pairs), plain.start(pairs))
        for domain in (end, Domain.ETYPE):
            lifted = found.lifted(domain, pairs)  # before and after it is made a tensor
            assert isinstance(lifted, counting.Part) and torch.equal(lifted.tensor, plain.lift(domain, pairs))
            assert torch.equal(found.lift(domain, pairs), plain.lift(domain, pairs)) and found.lifted(domain, pairs) is found.lift(domain, pairs)
    for domain in (Domain.DST, Domain.ETYPE, Domain.PAIR_DST):
        assert torch.equal(found.lift(domain, Domain.EDGE), plain.lift(domain, Domain.EDGE))
    key = "inverse", 0.0, Domain.PAIR_DST, torch.float32
    lengths = plain.start(Domain.PAIR_DST).diff()
    assert torch.equal(found.keep(key, lambda: lengths), 1 / lengths.float())
    found.count_pairs_as(lengths + 1)  # what counting says of the counts is no longer so, of the work list it is
    assert torch.equal(found.keep(key, lambda: lengths), lengths) and found.keep(("work", Domain.PAIR_DST), lambda: lengths) is not lengths


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
        tiles = counting.tiles(launch, tensor_of(work.relation_start), span, plain.count)
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
    assert all(torch.equal(tensor_of(a), tensor_of(b)) for a, b in zip(of_work, of_plain, strict=True))
    count = int(tensor_of(work.relation_start)[-1])
    own, others = (torch.stack([tensor_of(x)[:count].long() for x in (y.row, y.begin, y.end, y.first)]) for y in (work, plain))
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


def test_the_host_is_told(launch: counting.Launch) -> None:
    asked, (index, kind) = answers.Answer([0]), edges(20, 90, 4)
    with patch.object(answers, "answer", lambda device: asked):
        for wanted in (1, 2):
            found = counting.sort(launch, index[0], index[1], kind, 20, 20, 4)
            assert asked.told() == [0, found.pairs, found.others] and asked.compared == [wanted] and not asked.waiting
        with pytest.raises(UsageError, match="out of range"):
            counting.sort(launch, index[0] + 10, index[1], kind, 20, 20, 4)
        assert asked.told() == [1, 0, 0] and asked.compared == [3]


def test_a_device_that_tells_something_else_is_asked_no_more(launch: counting.Launch) -> None:
    asked, (index, kind) = answers.Answer([0]), edges(20, 90, 4)
    wanted = counting.sort(launch, index[0], index[1], kind, 20, 20, 4)

    def other(name: str, blocks: int, *arguments: Any) -> None:
        launch(name, blocks, *arguments[:-2], None, 0)
        arguments[-2].copy_(torch.tensor([arguments[-1], 0, 5, 5], dtype=torch.int32))

    with patch.object(answers, "answer", lambda device: asked), pytest.warns(UserWarning, match="wait for copies"):
        found = counting.sort(other, index[0], index[1], kind, 20, 20, 4)
    assert (found.pairs, found.others) == (wanted.pairs, wanted.others) and asked.compared == [-1]


def test_another_stream_waits_for_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    index, kind = edges(20, 90, 4)
    found, waits, stream, capturing = Index(index[0], index[1], kind, 20, 20, 4), list[Any](), [7], [False]
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: stream[0], raising=False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(wait_event=waits.append))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    found.awaited()  # an index by sorts has been waited for
    found.counted = SimpleNamespace(built="built", stream=7)  # type: ignore[assignment]
    found.awaited()
    assert not waits
    stream[0] = 8
    found.awaited()
    capturing[0] = True
    found.awaited()
    assert waits == ["built"]


def test_without_an_answer_the_host_copies(launch: counting.Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PATIENCE", 1e-6)
    asked = answers.Answer([answers.COMPARED])
    asked.ask()
    assert answers.read(asked, torch.tensor([9, 0, 7, 8])) == [0, 7, 8] and asked.compared == [answers.COMPARED]
    asked.ask()
    asked.memory.copy_(torch.tensor([asked.ticket, 0, 3, 4]))
    assert answers.read(asked, torch.tensor([9, 0, 7, 8])) == [0, 3, 4]  # believed by now


def test_what_fits() -> None:
    assert counting.fits(100_000, 100_000, 30) and counting.fits(1_000, 1_000, 30)
    assert not counting.fits(0, 10, 3) and not counting.fits(16_000_000, 5_000_000, 535)


def test_what_is_to_be_done_meanwhile_is_done_once(launch: counting.Launch) -> None:
    called: list[int] = []
    index, kind = edges(20, 90, 4)
    counting.sort(launch, index[0], index[1], kind, 20, 20, 4, lambda: called.append(1))
    Index(index[0], index[1], kind, 20, 20, 4, meanwhile=lambda: called.append(2))
    assert called == [1, 2]
