"""A graph's index and the work list of its kernels by counting, on a GPU: one launch where torch's sorts and searches take a hundred.

Edges are sorted by (relation, node) with a bin for each such key, so graphs with few keys are built this way (`fits`). Edges of one pair come in the
order in which the device counts them, which may change from run to run; under torch.use_deterministic_algorithms(True) torch's sorts are used.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from warpwright.domains.rgnn.sorting import answers
from warpwright.errors import UsageError
from warpwright.native import BuildError
from warpwright.templates.driver import Kernel, check, driver, machine_code

THREADS, BINS, CLASSES = 256, 4096, 8
"""Threads of a block, bins of a block, and classes of chunks by length: those of counting.cu."""

LONGEST, SHORT, SMALL = 64, 16, 1_000_000
"""Edges of a chunk, at most: of a graph of more than SMALL edges, and of others. A kernel goes through a chunk's edges one after another, and a small
graph's is done when its longest chunk is: its other chunks keep a GPU busy for less."""

PROGRAMS, LONGEST_TILE = 1024, 16
"""Tiles are made longer, up to so many steps, as long as there are so many: a relation's weight is then read, and its gradient added, less often.

On an H200 RGCN's forward and step take 160 and 415 us on bgs' graph so, 165 and 418 with 2048; 92 and 350, 108 and 365 on fb15k's; RGAT's 217 and
632, 218 and 597 on bgs'; HGT's the same.
"""

USUAL_STEP = 64
"""Chunks of a step of most kernels with products: their work list is made with the index."""

FEW, MOST, PER_EDGE = 1 << 22, 1 << 26, 128
"""Bins that always pay, that are never passed (256 MB), and that pay for each edge."""

FORMATS = {"index_graph": "PPPqqqqqqPPPPqqPq", "work_list": "PPqqqqqqPP", "make_tiles": "PqqqPPPP"}
"""Parameters of the kernels, in codes of the struct module."""

MEET = {"index_graph", "work_list"}
"""Kernels whose blocks wait for one another."""

Launch = Callable[..., None]
"""launch(name, blocks, *arguments): arguments are arrays, None and integers. Kernels of `MEET` may get fewer blocks."""


def text() -> str:
    """Return the kernels' CUDA text."""
    return Path(__file__).with_name("counting.cu").read_text()


def launcher(device: torch.device) -> Launch | None:
    """Return what launches the kernels on a GPU; None on a CPU, where sums have to be in a fixed order, and where there is no NVRTC (warns once)."""
    if device.type != "cuda" or torch.version.hip or torch.are_deterministic_algorithms_enabled():
        return None
    return _loaded(torch.cuda.current_device() if device.index is None else device.index)


class Cooperative(Kernel):
    """A kernel whose blocks wait for one another: no more are launched than the device runs at once."""

    resident = 0
    """Blocks that the device runs at once."""

    def __call__(self, grid: int, stream: int, *arguments: Any) -> None:
        """Launch at most `grid` blocks on `stream`."""
        with self.lock:
            self.layout.pack_into(self.room, self.start, *arguments)
            block, _, _, shared = self.shape
            sizes = min(grid, self.resident), 1, 1, block, 1, 1, shared
            self.launched(_together(), *sizes, stream, self.places)

    def measure(self, device: int) -> Cooperative:
        """Ask the driver how many blocks run at once."""
        each, units = ctypes.c_int(), torch.cuda.get_device_properties(device).multi_processor_count
        block, _, _, shared = self.shape
        asked = driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(each), self.function, block, ctypes.c_size_t(shared))
        check(asked, f"asking how many blocks of {self.name} fit")
        self.resident = max(1, each.value * units)
        return self


@functools.cache
def _together() -> Any:
    launch = driver().cuLaunchCooperativeKernel
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p]
    return launch


@functools.cache
def _loaded(device: int) -> Launch | None:
    kernels: dict[str, Kernel] = {}
    try:
        major, minor = torch.cuda.get_device_capability(device)
        code = machine_code(text(), f"{major}{minor}")
        with torch.cuda.device(device):
            for name, formats in FORMATS.items():
                kernels[name] = Cooperative(code, name, formats, THREADS).measure(device) if name in MEET else Kernel(code, name, formats, THREADS)
    except (UsageError, BuildError) as problem:
        warnings.warn(f"indices of relational graphs are built by torch calls, which is slower: {problem}", stacklevel=2)
        return None

    def launch(name: str, blocks: int, *arguments: torch.Tensor | int | None) -> None:
        pointers = [x if isinstance(x, int) else 0 if x is None else x.data_ptr() for x in arguments]
        stream = torch._C._cuda_getCurrentRawStream(device)
        if torch.cuda.current_device() == device:
            kernels[name](blocks, stream, *pointers)
        else:
            with torch.cuda.device(device):
                kernels[name](blocks, stream, *pointers)

    return launch


class Part:
    """An array of int32 within memory that it shares: kernels want its address alone, and to make a tensor of it takes a host microseconds."""

    __slots__ = ("memory", "size", "start")

    def __init__(self, memory: torch.Tensor, start: int, size: int) -> None:
        self.memory, self.start, self.size = memory, start, size

    def data_ptr(self) -> int:
        """Return its address."""
        return self.memory.data_ptr() + 4 * self.start

    def numel(self) -> int:
        """Return how many numbers it has."""
        return self.size

    @property
    def tensor(self) -> torch.Tensor:
        """The same as a tensor."""
        return self.memory.as_strided((self.size,), (1,), self.start + self.memory.storage_offset())


Array = torch.Tensor | Part


def tensor_of(array: Array) -> torch.Tensor:
    """Return an array as a tensor."""
    return array.tensor if isinstance(array, Part) else array


@dataclass(frozen=True)
class Side:
    """The pairs of one end: where the edges of each begin [pairs + 1], its node and its relation [pairs]; int32."""

    start: torch.Tensor
    node: torch.Tensor
    etype: torch.Tensor


@dataclass(frozen=True)
class Tiles:
    """The work list of a kernel over rows, int32.

    Chunks (`row`, `begin`, `end` among the edges in the rows' order, `first` of its row), tiles of `span` chunks of one relation, and where each
    relation's chunks begin [relations + 1].
    """

    row: Array
    begin: Array
    end: Array
    first: Array
    relation: Array
    tile_begin: Array
    tile_end: Array
    relation_start: Array
    span: int

    @property
    def count(self) -> int:
        """How many tiles there may be; the last ones may be empty."""
        return self.relation.numel()

    @staticmethod
    def of(parts: Sequence[Array], span: int) -> Tiles:
        """Return the list of these arrays, in the order of the fields."""
        row, begin, end, first, relation, tile_begin, tile_end, relation_start = parts
        return Tiles(row, begin, end, first, relation, tile_begin, tile_end, relation_start, span)


@dataclass(frozen=True)
class Layout:
    """How the memory of an index is laid out: numbers of int32."""

    edges: int
    longest: int
    blocks: int
    """Blocks that there is work for."""
    zeroed: int
    needed: tuple[int, int, int]
    """Scratch, what edges have, and what pairs and their work list have."""
    starts: tuple[int, ...]
    """Where the arrays of pairs begin: the fields of `Sorted.of_dst`, count and inverse, those of `Sorted.of_src` and of `Tiles`."""
    rooms: tuple[int, int]
    """Of chunks and of tiles, padded."""


@functools.lru_cache(maxsize=64)
def layout(edges: int, sources: int, targets: int, relations: int, longest: int) -> Layout:
    """Return the layout of the index of a graph of so many edges."""
    blocks = sum(-(-relations * nodes // BINS) for nodes in (targets, sources))
    most, sources_most = (min(edges, relations * nodes) for nodes in (targets, sources))
    rooms = most + edges // longest, max(most_tiles(most + edges // longest, USUAL_STEP), 1) + relations
    sizes = [most + 1, *[most] * 4, sources_most + 1, *[sources_most] * 2, *[rooms[0]] * 4, *[rooms[1]] * 3, relations + 1, relations]
    starts = [0, *itertools.accumulate(map(_padded, sizes))]
    needed = _padded(2 * edges) + 2 * _padded(blocks), 6 * _padded(edges), starts[-1]
    zeroed = 64 + _padded(relations * CLASSES) + blocks * BINS
    return Layout(edges, longest, max(_blocks(edges), blocks), zeroed, needed, tuple(starts), (_padded(rooms[0]), _padded(rooms[1])))


class Sorted:
    """Edges in the order of (relation, destination), the pairs of both ends and a work list. An array is made when it is asked for: few ever are."""

    def __init__(self, of_edges: torch.Tensor, of_pairs: torch.Tensor, places: Layout, pairs: int, others: int, relations: int) -> None:
        """Take the memory of the edges' arrays and of the pairs', and the numbers of pairs."""
        self.memory, self.places, self.edges, self.pairs, self.others = of_pairs, places, places.edges, pairs, others
        self.of_edges, self.room = of_edges, of_edges.numel() // 6
        self.built: torch.cuda.Event | None = None
        self.stream = 0
        """On a GPU, what says that all is made, and the stream on which it is."""
        chunks = pairs + places.edges // places.longest
        self.span = span_of(chunks, USUAL_STEP)
        tiles = chunks // self.span + relations
        self.sizes = pairs + 1, *[pairs] * 4, others + 1, *[others] * 2, *[chunks] * 4, *[tiles] * 3, relations + 1

    def of_edge(self, number: int) -> Part:
        """Return source, destination, relation, (destination, relation) pair or (source, relation) pair of each edge, or the order by sources."""
        return Part(self.of_edges, number * self.room, self.edges)

    def part(self, number: int) -> Part:
        """Return an array of the pairs."""
        return Part(self.memory, self.places.starts[number], self.sizes[number])

    def shrunk(self) -> Sorted:
        """Return the same in memory that has no room for more pairs."""
        starts = (0, *itertools.accumulate(map(_padded, self.sizes)))
        memory = self.memory.new_empty(starts[-1])
        for number, (start, size) in enumerate(zip(starts, self.sizes, strict=False)):
            memory.narrow(0, start, size).copy_(self.part(number).tensor)
        found = copy.copy(self)
        found.memory, found.places = memory, replace(self.places, starts=starts)
        return found

    @property
    def of_dst(self) -> Side:
        """The (destination, relation) pairs."""
        return Side(*(self.part(number).tensor for number in range(3)))

    @property
    def of_src(self) -> Side:
        """The (source, relation) pairs."""
        return Side(*(self.part(number).tensor for number in range(5, 8)))

    @property
    def count(self) -> torch.Tensor:
        """Edges of each (destination, relation) pair, float32."""
        return self.part(3).tensor.view(torch.float32)

    @property
    def inverse(self) -> torch.Tensor:
        """One over them."""
        return self.part(4).tensor.view(torch.float32)

    @property
    def work(self) -> Tiles:
        """That of (destination, relation) pairs."""
        return Tiles.of([self.part(number) for number in range(8, 16)], self.span)


def fits(edges: int, nodes: int, relations: int) -> bool:
    """Does counting pay, for keys of all ends together?"""
    return edges > 0 and min(nodes, relations) > 0 and nodes * relations <= min(MOST, max(FEW, PER_EDGE * edges)) and edges < 1 << 31


def longest_of(edges: int) -> int:
    """Return how many edges a chunk has at most, in a graph of so many."""
    return LONGEST if edges > SMALL else SHORT


def span_of(room: int, step: int) -> int:
    """Return how many of at most `room` chunks a tile has, for kernels that take `step` at once."""
    return step * max(1, min(LONGEST_TILE, room // (step * PROGRAMS)))


def sort(
    launch: Launch, src: torch.Tensor, dst: torch.Tensor, etype: torch.Tensor, sources: int, targets: int, relations: int,
    meanwhile: Callable[[], None] = lambda: None,
) -> Sorted:  # fmt: skip
    """Sort int64 edges. Waits for the device once; `meanwhile` is called while it works. Raises UsageError where a number is out of range."""
    src, dst, etype = (x if x.dtype is torch.int64 and x.is_contiguous() else x.long().contiguous() for x in (src, dst, etype))
    edges, device = src.numel(), src.device
    places = layout(edges, sources, targets, relations, longest_of(edges))
    zeroed = torch.zeros(places.zeroed, dtype=torch.int32, device=device)
    large = edges > 1 << 20  # the room for as many pairs as edges is given back then; of a small graph all is one allocation
    if large:
        scratch, of_edges, of_pairs = (torch.empty(size, dtype=torch.int32, device=device) for size in places.needed)
    else:
        scratch, of_edges, of_pairs = torch.empty(sum(places.needed), dtype=torch.int32, device=device).split(places.needed)
    answer = answers.answer(device)
    counts = edges, sources, targets, relations, USUAL_STEP, places.longest
    asked = (None, 0) if answer is None else answer.ask()
    launch("index_graph", places.blocks, src, dst, etype, *counts, zeroed, scratch, of_edges, of_pairs, *places.rooms, *asked)
    meanwhile()
    built = torch.cuda.Event() if device.type == "cuda" else None
    if built is not None:
        built.record(torch.cuda.current_stream(device))
    refused, pairs, others = answers.read(answer, zeroed)
    if refused:
        raise UsageError(f"expected edges of {sources} sources, {targets} targets and {relations} relations, saw a number out of range")
    found = Sorted(of_edges, of_pairs, places, pairs, others, relations)
    found = found.shrunk() if large else found
    if built is not None:
        found.built, found.stream = built, torch._C._cuda_getCurrentRawStream(device.index)
        if large:
            built.record(torch.cuda.current_stream(device))
    return found


def work(launch: Launch, start: torch.Tensor, etype: torch.Tensor | None, relations: int, room: int, span: int, longest: int) -> Tiles:
    """Return the work list of rows with at most `room` chunks, of at most `longest` edges each."""
    count = room // span + relations
    sizes = [*[room] * 4, *[count] * 3, relations + 1, relations]
    zeroed = torch.zeros(64 + relations * CLASSES, dtype=torch.int32, device=start.device)
    out = torch.empty(sum(map(_padded, sizes)), dtype=torch.int32, device=start.device)
    rows = start.numel() - 1
    launch("work_list", _blocks(rows), start, etype, rows, relations, room, span, count, longest, zeroed, out)
    return Tiles.of(_parts(out, sizes, sizes[:-1]), span)


def tiles(launch: Launch, relation_start: torch.Tensor, span: int, count: int) -> list[torch.Tensor]:
    """Return relation, begin and end of `count` tiles of `span` chunks of one relation."""
    relations = relation_start.numel() - 1
    sizes = [relations, count, count, count]
    out = torch.empty(sum(map(_padded, sizes)), dtype=torch.int32, device=relation_start.device)
    ends, *columns = _parts(out, sizes, sizes)
    launch("make_tiles", 1, relation_start, relations, span, count, ends, *columns)
    return columns


def most_tiles(room: int, step: int) -> int:
    """Return the most full tiles of `room` chunks or fewer. Those longer than a step number fewer than 2 PROGRAMS, unless they are the longest."""
    return min(room // step, max(2 * PROGRAMS, room // (step * LONGEST_TILE)))


def _blocks(threads: int) -> int:
    return -(-threads // THREADS)


def _padded(size: int) -> int:
    """Return the numbers that a part takes: each begins at a multiple of 256 bytes."""
    return -(-size // 64) * 64


def _parts(whole: torch.Tensor, sizes: Sequence[int], exact: Sequence[int]) -> list[torch.Tensor]:
    """Return the first `exact` numbers of the parts of an allocation that has room for `sizes`; what is beyond `exact`'s own length is left out."""
    cuts: list[int] = []
    for size, used in zip(sizes, exact, strict=False):
        cuts += [used, _padded(size) - used]
    rest = whole.numel() - sum(cuts)
    return list(whole.split([*cuts, rest]))[: 2 * len(exact) : 2]
