"""A graph's index and the work list of its kernels by counting, on a GPU: one launch where torch's sorts and searches take a hundred.

Edges are sorted by (relation, node) with a bin for each such key, so graphs with few keys are built this way (`fits`). Edges of one pair come in the
order in which the device counts them, which may change from run to run; under torch.use_deterministic_algorithms(True) torch's sorts are used.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from warpwright.errors import UsageError
from warpwright.native import BuildError
from warpwright.templates.driver import Kernel, check, driver, machine_code

THREADS, BINS, CLASSES = 256, 4096, 8
"""Threads of a block, bins of a block, and classes of chunks by length: those of counting.cu."""

LONGEST, SHORT, SMALL = 64, 16, 1_000_000
"""Edges of a chunk, at most: of a graph of more than SMALL edges, and of others. A kernel goes through a chunk's edges one after another, and a small
graph's is done when its longest chunk is: its other chunks keep a GPU busy for less."""

PROGRAMS, LONGEST_TILE = 2048, 16
"""Tiles are made longer, up to so many steps, as long as there are so many: a relation's weight is then read, and its gradient added, less often."""

USUAL_STEP = 64
"""Chunks of a step of most kernels with products: their work list is made with the index."""

FEW, MOST, PER_EDGE = 1 << 22, 1 << 26, 128
"""Bins that always pay, that are never passed (256 MB), and that pay for each edge."""

FORMATS = {"index_graph": "PPPqqqqqqPPPPqq", "work_list": "PPqqqqqqPP", "make_tiles": "PqqqPPPP"}
"""Parameters of the kernels, in codes of the struct module."""

MEET = {"index_graph", "work_list"}
"""Kernels whose blocks wait for one another."""

Launch = Callable[..., None]
"""launch(name, blocks, *arguments): arguments are tensors, None and integers. Kernels of `MEET` may get fewer blocks."""


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
            check(_together()(self.function, *sizes, stream, self.places), f"launching {self.name}")

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

    row: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor
    first: torch.Tensor
    relation: torch.Tensor
    tile_begin: torch.Tensor
    tile_end: torch.Tensor
    relation_start: torch.Tensor
    span: int

    @property
    def count(self) -> int:
        """How many tiles there may be; the last ones may be empty."""
        return self.relation.numel()

    @staticmethod
    def of(parts: Sequence[torch.Tensor], span: int) -> Tiles:
        """Return the list of these arrays, in the order of the fields."""
        row, begin, end, first, relation, tile_begin, tile_end, relation_start = parts
        return Tiles(row, begin, end, first, relation, tile_begin, tile_end, relation_start, span)


@dataclass(frozen=True)
class Sorted:
    """Edges in the order of (relation, destination), int32 [E]."""

    src: torch.Tensor
    dst: torch.Tensor
    etype: torch.Tensor
    to_dst: torch.Tensor
    """Each edge's (destination, relation) pair."""
    to_src: torch.Tensor
    order: torch.Tensor
    """The edges in the order of (relation, source)."""
    of_dst: Side
    of_src: Side
    count: torch.Tensor
    """Edges of each (destination, relation) pair, float32, and one over it."""
    inverse: torch.Tensor
    work: Tiles
    """That of (destination, relation) pairs."""


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
    """Sort int64 edges. Reads the device once; `meanwhile` is called while it works. Raises UsageError where a number is out of range."""
    src, dst, etype = (x.long().contiguous() for x in (src, dst, etype))
    edges, device, step = src.numel(), src.device, USUAL_STEP
    longest = longest_of(edges)
    blocks = sum(-(-relations * nodes // BINS) for nodes in (targets, sources))
    most, sources_most = (min(edges, relations * nodes) for nodes in (targets, sources))
    rooms = most + edges // longest, max(most_tiles(most + edges // longest, step), 1) + relations
    sizes = [most + 1, *[most] * 4, sources_most + 1, *[sources_most] * 2, *[rooms[0]] * 4, *[rooms[1]] * 3, relations + 1, relations]
    zeroed = torch.zeros(64 + _padded(relations * CLASSES) + blocks * BINS, dtype=torch.int32, device=device)
    large = edges > 1 << 20  # the room for as many pairs as edges is given back then; of a small graph all is one allocation
    needed = _padded(2 * edges) + 2 * _padded(blocks), 6 * _padded(edges), sum(map(_padded, sizes))
    rooms_of = [torch.empty(size, dtype=torch.int32, device=device) for size in (needed if large else [sum(needed)])]
    scratch, of_edges, of_pairs = rooms_of if large else rooms_of[0].split(needed)
    counts = edges, sources, targets, relations, step, longest
    work = max(_blocks(edges), blocks)
    launch("index_graph", work, src, dst, etype, *counts, zeroed, scratch, of_edges, of_pairs, _padded(rooms[0]), _padded(rooms[1]))
    by_source, by_target, types, to_dst, to_src, order = of_edges.view(6, -1)[:, :edges].unbind()
    meanwhile()
    _, refused, pairs, others = zeroed[:4].tolist()  # by way of pinned memory and an event a batch took 0.56 to 0.61 ms, so 0.51 (an H200)
    if refused:
        raise UsageError(f"expected edges of {sources} sources, {targets} targets and {relations} relations, saw a number out of range")
    chunks = pairs + edges // longest
    span = span_of(chunks, step)
    exact = [pairs + 1, *[pairs] * 4, others + 1, *[others] * 2, *[chunks] * 4, *[chunks // span + relations] * 3, relations + 1]
    parts = _parts(of_pairs, sizes, exact)
    if large:
        parts = [part.clone() for part in parts]
    count, inverse = (x.view(torch.float32) for x in parts[3:5])
    sides = Side(*parts[:3]), Side(*parts[5:8])
    return Sorted(by_source, by_target, types, to_dst, to_src, order, *sides, count, inverse, Tiles.of(parts[8:], span))


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
