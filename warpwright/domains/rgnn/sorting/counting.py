"""A graph's index and the work list of its kernels by counting, on a GPU: about ten launches where torch's sorts and searches take a hundred.

Edges are sorted by (relation, node) with a bin for each such key, so graphs with few keys are built this way (`fits`). Edges of one pair come in the
order in which the device counts them, which may change from run to run; under torch.use_deterministic_algorithms(True) torch's sorts are used.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from warpwright.errors import UsageError
from warpwright.native import BuildError
from warpwright.templates.driver import Kernel, machine_code

THREADS, BINS, CLASSES = 256, 4096, 8
"""Threads of a block, bins of a block, and classes of chunks by length: those of counting.cu."""

FEW, MOST, PER_EDGE = 1 << 22, 1 << 26, 128
"""Bins that always pay, that are never passed (256 MB), and that pay for each edge."""

FORMATS = {
    "count_keys": "PPPqqqqqPPP", "sum_bins": "PP", "number_pairs": "PPqqqqqPPPPPPP", "place_edges": "PPPqqqqPPPPPPPPPPP",
    "count_chunks": "PPqP", "place_classes": "PqP", "place_chunks": "PPqPPPPP", "make_tiles": "PqqqPPPP",
}  # fmt: skip
"""Parameters of the kernels, in codes of the struct module."""

Launch = Callable[..., None]
"""launch(name, blocks, *arguments): arguments are tensors, None and integers."""


def text() -> str:
    """Return the kernels' CUDA text."""
    return Path(__file__).with_name("counting.cu").read_text()


def launcher(device: torch.device) -> Launch | None:
    """Return what launches the kernels on a GPU; None on a CPU, where sums have to be in a fixed order, and where there is no NVRTC (warns once)."""
    if device.type != "cuda" or torch.version.hip or torch.are_deterministic_algorithms_enabled():
        return None
    return _loaded(torch.cuda.current_device() if device.index is None else device.index)


@functools.cache
def _loaded(device: int) -> Launch | None:
    try:
        major, minor = torch.cuda.get_device_capability(device)
        code = machine_code(text(), f"{major}{minor}")
        with torch.cuda.device(device):
            kernels = {name: Kernel(code, name, list(formats), THREADS) for name, formats in FORMATS.items()}
    except (UsageError, BuildError) as problem:
        warnings.warn(f"indices of relational graphs are built by torch calls, which is slower: {problem}", stacklevel=2)
        return None

    def launch(name: str, blocks: int, *arguments: torch.Tensor | int | None) -> None:
        given = (x if isinstance(x, int) else 0 if x is None else x.data_ptr() for x in arguments)
        stream = torch._C._cuda_getCurrentRawStream(device)
        if torch.cuda.current_device() == device:
            kernels[name](blocks, stream, *given)
        else:
            with torch.cuda.device(device):
                kernels[name](blocks, stream, *given)

    return launch


@dataclass(frozen=True)
class Side:
    """The pairs of one end: where the edges of each begin [pairs + 1], its node and its relation [pairs]; int32."""

    start: torch.Tensor
    node: torch.Tensor
    etype: torch.Tensor


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


def fits(edges: int, nodes: int, relations: int) -> bool:
    """Does counting pay, for keys of all ends together?"""
    return edges > 0 and min(nodes, relations) > 0 and nodes * relations <= min(MOST, max(FEW, PER_EDGE * edges)) and edges < 1 << 31


def sort(launch: Launch, src: torch.Tensor, dst: torch.Tensor, etype: torch.Tensor, sources: int, targets: int, relations: int) -> Sorted:
    """Sort int64 edges. Reads the device once. Raises UsageError where a number is out of range."""
    src, dst, etype = (x.long().contiguous() for x in (src, dst, etype))
    edges, device = src.numel(), src.device
    first, second = (-(-relations * nodes // BINS) for nodes in (targets, sources))
    bins, counts = _parts(torch.zeros, device, ((first + second) * BINS, 3))
    rank, sums = _parts(torch.empty, device, (2 * edges, 2 * (first + second)))
    found = _parts(torch.empty, device, [edges] * 6)
    most = [min(edges, relations * nodes) for nodes in (targets, sources)]
    sides = _parts(torch.empty, device, [size for pairs in most for size in (pairs + 1, pairs, pairs)])
    launch("count_keys", _blocks(edges), src, dst, etype, edges, sources, targets, relations, first * BINS, bins, rank, counts[2:])
    launch("sum_bins", first + second, bins, sums)
    launch("number_pairs", first + second, bins, sums, first, targets, sources, relations, edges, *sides, counts)
    starts = sides[0], sides[3]
    launch("place_edges", _blocks(edges), src, dst, etype, edges, sources, targets, first * BINS, bins, rank, *starts, counts[2:], *found)
    *pairs, refused = counts.tolist()
    if refused:
        raise UsageError(f"expected edges of {sources} sources, {targets} targets and {relations} relations, saw a number out of range")
    exact = [part[: pairs[i // 3] + (i % 3 == 0)] for i, part in enumerate(sides)]
    if edges > 1 << 20:  # the room for as many pairs as edges is given back
        exact = [part.clone() for part in exact]
    by_source, by_target, types, to_dst, to_src, order = found
    return Sorted(by_source, by_target, types, to_dst, to_src, order, Side(*exact[:3]), Side(*exact[3:]))


def chunks(launch: Launch, start: torch.Tensor, etype: torch.Tensor | None, relations: int, room: int) -> tuple[torch.Tensor, ...]:
    """Return row, begin, end and first of at most `room` chunks, and where each relation's begin (int64 [relations + 1]); see tiles.py."""
    rows, device = start.numel() - 1, start.device
    classes = torch.zeros(relations * CLASSES, dtype=torch.int32, device=device)
    found = _parts(torch.empty, device, [room] * 4)
    relation_start = torch.empty(relations + 1, dtype=torch.long, device=device)
    launch("count_chunks", _blocks(rows), start, etype, rows, classes)
    launch("place_classes", 1, classes, relations, relation_start)
    launch("place_chunks", _blocks(rows), start, etype, rows, classes, *found)
    return *found, relation_start


def tiles(launch: Launch, relation_start: torch.Tensor, span: int, count: int) -> list[torch.Tensor]:
    """Return relation, begin and end of `count` tiles of `span` chunks of one relation."""
    relations = relation_start.numel() - 1
    ends, *found = _parts(torch.empty, relation_start.device, (relations, count, count, count))
    launch("make_tiles", 1, relation_start, relations, span, count, ends, *found)
    return found


def _blocks(threads: int) -> int:
    return -(-threads // THREADS)


def _parts(make: Callable[..., torch.Tensor], device: torch.device, sizes: Sequence[int]) -> list[torch.Tensor]:
    """Return int32 tensors of one allocation, each of which begins at a multiple of 256 bytes."""
    rooms = [-(-size // 64) * 64 for size in sizes]
    whole = make(sum(rooms), dtype=torch.int32, device=device)
    return [part[:size] for part, size in zip(whole.split(rooms), sizes, strict=True)]
