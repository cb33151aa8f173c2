"""Random datatypes as nested tuples: drawn, built by mpi4py, and expanded to runs of bytes independently of warpwright.

    ("vector", count, blocklength, stride, child), ("BYTE",), ...

Extents are asked of the library, because the families pad structs differently.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

Draw = Callable[[int, int], int]
Spec = tuple[Any, ...]
Run = tuple[int, int]

PLAIN = ("BYTE", "SHORT", "INT", "DOUBLE", "CHAR", "FLOAT")
NAMED = (*PLAIN, "SHORT_INT", "DOUBLE_INT", "LONG_INT", "FLOAT_INT", "INT_INT", "LONG_DOUBLE_INT", "C_DOUBLE_COMPLEX")
SECOND = {"SHORT_INT": (2, 4, 4), "DOUBLE_INT": (8, 8, 4), "LONG_INT": (8, 8, 4), "LONG_DOUBLE_INT": (16, 16, 4)}
"""Pair types whose members do not fill them: length of the first, offset and length of the second."""
DISTRIBUTIONS = {"block": MPI.DISTRIBUTE_BLOCK, "cyclic": MPI.DISTRIBUTE_CYCLIC, "none": MPI.DISTRIBUTE_NONE}


def draw_spec(draw: Draw, depth: int, wild: bool) -> Spec:
    """Draw a type of at most `depth` constructors; `wild` ones have negative and zero strides, zero counts and overlaps."""
    if depth == 0:
        return (NAMED[draw(0, len(NAMED if wild else PLAIN) - 1)],)
    child = draw_spec(draw, depth - 1, wild)
    maker = MAKERS[draw(0, len(MAKERS) - 1)]
    return maker(draw, child, wild)


def _contiguous(draw: Draw, child: Spec, wild: bool) -> Spec:
    return ("contiguous", draw(0 if wild else 1, 4), child)


def _vector(draw: Draw, child: Spec, wild: bool) -> Spec:
    block = draw(0 if wild else 1, 3)
    return ("vector", draw(0 if wild else 1, 5), block, draw(-5, 6) if wild else block + draw(0, 3), child)


def _hvector(draw: Draw, child: Spec, wild: bool) -> Spec:
    block = draw(1, 3)
    return ("hvector", draw(1, 4), block, draw(-40, 60) if wild else 16 * (block + draw(0, 3)) + draw(0, 9), child)


def _subarray(draw: Draw, child: Spec, wild: bool) -> Spec:
    dims = draw(1, 4)
    sizes = [draw(1, 4) for _ in range(dims)]
    chosen = [draw(1, size) for size in sizes]
    starts = [draw(0, size - part) for size, part in zip(sizes, chosen, strict=True)]
    return ("subarray", tuple(sizes), tuple(chosen), tuple(starts), "CF"[draw(0, 1)], child)


def _resized(draw: Draw, child: Spec, wild: bool) -> Spec:
    return ("resized", draw(-8, 8) if wild else 0, draw(-16, 64) if wild else draw(32, 64), child)


def _dup(draw: Draw, child: Spec, wild: bool) -> Spec:
    return ("dup", child)


def _indexed(draw: Draw, child: Spec, wild: bool) -> Spec:
    lengths = tuple(draw(0 if wild else 1, 2) for _ in range(draw(1, 5)))
    places, at = [], 0
    for length in lengths:
        at += draw(-1 if wild else 0, 2)
        places.append(at)
        at += length
    return ("indexed", lengths, tuple(places), child)


def _hindexed(draw: Draw, child: Spec, wild: bool) -> Spec:
    lengths = tuple(draw(0 if wild else 1, 2) for _ in range(draw(1, 4)))
    return ("hindexed", lengths, tuple(draw(-30, 60) if wild else 64 * i + draw(0, 4) for i in range(len(lengths))), child)


def _indexed_block(draw: Draw, child: Spec, wild: bool) -> Spec:
    return ("indexed_block", draw(1, 2), tuple(draw(-3, 12) if wild else 3 * i + draw(0, 1) for i in range(draw(1, 5))), child)


def _hindexed_block(draw: Draw, child: Spec, wild: bool) -> Spec:
    return ("hindexed_block", draw(1, 2), tuple(draw(-30, 90) if wild else 64 * i + draw(0, 8) for i in range(draw(1, 5))), child)


def _struct(draw: Draw, child: Spec, wild: bool) -> Spec:
    members = [child, *((NAMED[draw(0, len(NAMED) - 1)],) for _ in range(draw(0, 2)))]
    lengths = tuple(draw(0 if wild else 1, 2) for _ in members)
    return ("struct", lengths, tuple(draw(-40, 80) if wild else 80 * i + draw(0, 8) for i in range(len(members))), *members)


def _darray(draw: Draw, child: Spec, wild: bool) -> Spec:
    dims = draw(1, 3)
    sizes, kinds, arguments, grid = [], [], [], []
    for _ in range(dims):
        size, kind = draw(1, 7), ("block", "cyclic", "none")[draw(0, 2)]
        processes = 1 if kind == "none" else draw(1, 3)
        least = -(-size // processes) if kind == "block" else 1
        sizes.append(size)
        kinds.append(kind)
        arguments.append(None if kind == "none" or draw(0, 1) else least + draw(0, 2))
        grid.append(processes)
    ranks = 1
    for processes in grid:
        ranks *= processes
    return ("darray", ranks, draw(0, ranks - 1), tuple(sizes), tuple(kinds), tuple(arguments), tuple(grid), "CF"[draw(0, 1)], child)


MAKERS = (_contiguous, _vector, _hvector, _subarray, _resized, _dup, _indexed, _hindexed, _indexed_block, _hindexed_block, _struct, _darray)


def build(spec: Spec) -> MPI.Datatype:
    """Return the datatype, not committed; the caller frees it."""
    kind, *given = spec
    if not given:
        return getattr(MPI, kind).Dup()
    children = [build(one) for one in (given[2:] if kind == "struct" else given[-1:])]
    child, order = children[0], {"C": MPI.ORDER_C, "F": MPI.ORDER_F}
    try:
        if kind == "struct":
            return MPI.Datatype.Create_struct(list(given[0]), list(given[1]), children)
        if kind == "darray":
            ranks, rank, sizes, kinds, arguments, grid, order_name, _ = given
            dargs = [MPI.DISTRIBUTE_DFLT_DARG if one is None else one for one in arguments]
            return child.Create_darray(ranks, rank, list(sizes), [DISTRIBUTIONS[one] for one in kinds], dargs, list(grid), order[order_name])
        if kind == "subarray":
            return child.Create_subarray(list(given[0]), list(given[1]), list(given[2]), order[given[3]])
        if kind == "dup":
            return child.Dup()
        return getattr(child, f"Create_{kind}")(*(list(one) if isinstance(one, tuple) else one for one in given[:-1]))
    finally:
        for one in children:
            one.Free()


def extent_of(spec: Spec) -> int:
    """Return the extent that the library gives the type."""
    datatype = build(spec)
    try:
        return datatype.Get_extent()[1]
    finally:
        datatype.Free()


def expand(spec: Spec) -> list[Run]:
    """Return (offset, bytes) of each element in typemap order, by the definitions of the standard (MPI 4.1, section 5.1)."""
    kind, *given = spec
    if not given:
        if kind in SECOND:
            first, at, second = SECOND[kind]
            return [(0, first), (at, second)]
        return [(0, getattr(MPI, kind).Get_size())]
    if kind == "struct":
        lengths, places, *children = given
        return [run for length, place, child in zip(lengths, places, children, strict=True) for run in _block(child, length, place)]
    child = given[-1]
    if kind in ("dup", "resized"):
        return expand(child)
    runs, extent = expand(child), extent_of(child)
    return [(place + at, size) for place in places_of(kind, given, extent) for at, size in runs]


def _block(child: Spec, length: int, place: int) -> list[Run]:
    extent = extent_of(child)
    return [(place + i * extent + at, size) for i in range(length) for at, size in expand(child)]


def places_of(kind: str, given: list[Any], extent: int) -> list[int]:
    """Return where each copy of the child stands, in order."""
    if kind == "contiguous":
        return [i * extent for i in range(given[0])]
    if kind in ("vector", "hvector"):
        count, block, stride, _ = given
        return [i * stride * (extent if kind == "vector" else 1) + j * extent for i in range(count) for j in range(block)]
    if kind in ("indexed", "hindexed"):
        return [place * (extent if kind == "indexed" else 1) + j * extent for length, place in zip(*given[:2], strict=True) for j in range(length)]
    if kind in ("indexed_block", "hindexed_block"):
        return [place * (extent if kind == "indexed_block" else 1) + j * extent for place in given[1] for j in range(given[0])]
    if kind == "subarray":
        sizes, chosen, starts, order, _ = given
        return _elements(sizes, [range(start, start + count) for start, count in zip(starts, chosen, strict=True)], order, extent)
    assert kind == "darray", kind
    _, rank, sizes, kinds, arguments, grid, order, _ = given
    coordinates = []
    for processes in reversed(grid):
        coordinates.insert(0, rank % processes)
        rank //= processes
    owned = []
    for size, how, argument, processes, mine in zip(sizes, kinds, arguments, grid, coordinates, strict=True):
        length = argument or (-(-size // processes) if how == "block" else 1)
        owned.append([i for i in range(size) if how == "none" or i // length % processes == mine])
    return _elements(sizes, owned, order, extent)


def _elements(sizes: Any, chosen: Any, order: str, extent: int) -> list[int]:
    """Return the places of the chosen elements of an array, in the order of its storage."""
    slow_first = list(range(len(sizes))) if order == "C" else list(range(len(sizes)))[::-1]
    steps, step = {}, extent
    for dim in reversed(slow_first):
        steps[dim] = step
        step *= sizes[dim]
    indices = itertools.product(*(chosen[dim] for dim in slow_first))
    return [sum(i * steps[dim] for dim, i in zip(slow_first, index, strict=True)) for index in indices]


def has_step_of_minus_one(spec: Spec) -> bool:
    """Open MPI (4.1.4 to 5.0.11) takes a step of exactly -1 byte for the default: what it packs then is not the standard's."""
    kind, *given = spec
    if not given:
        return False
    children = given[2:] if kind == "struct" else given[-1:]
    if any(has_step_of_minus_one(child) for child in children) or any(extent_of(child) == -1 for child in children):
        return True
    if kind == "resized":
        return bool(given[1] == -1)
    return bool((kind == "hvector" and given[2] == -1) or (kind == "vector" and given[2] * extent_of(given[-1]) == -1))


def has_negative_extent(spec: Spec) -> bool:
    """MPICH (5.0.2) packs several objects of a contiguous run of elements of negative extent at places of its own."""
    kind, *given = spec
    if not given:
        return False
    return extent_of(spec) < 0 or any(has_negative_extent(child) for child in (given[2:] if kind == "struct" else given[-1:]))


def has_empty_member(spec: Spec) -> bool:
    """MPICH (5.0.2) divides by zero in MPI_Pack of a struct with an empty member, such as a vector of blocks of no hvector: the process ends."""
    kind, *given = spec
    if not given:
        return False
    children = given[2:] if kind == "struct" else given[-1:]
    return (kind == "struct" and not all(map(expand, children))) or any(map(has_empty_member, children))
