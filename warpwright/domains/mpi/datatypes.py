"""Datatypes written as nested lists, without an MPI: ["vector", 4, 1, 8, "double"] -> its layout, by the definitions of the standard (MPI 4.1, 5.1).

    ["contiguous", count, type]                       ["hvector", count, blocklength, bytes, type]
    ["vector", count, blocklength, stride, type]      ["indexed", [lengths], [displacements], type]       and hindexed
    ["indexed_block", blocklength, [displacements], type]                                                 and hindexed_block
    ["subarray", [sizes], [subsizes], [starts], "C" or "F", type]
    ["struct", [lengths], [displacements], [types]]   ["resized", lower bound, extent, type]

A struct has no padding at its end: write ["resized", ...] for what a compiler adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.domains.mpi.layout import Layout
from warpwright.errors import TaskError

SIZES = {"byte": 1, "char": 1, "short": 2, "int": 4, "float": 4, "long": 8, "double": 8, "complex": 16}


@dataclass(frozen=True)
class Datatype:
    """A layout of one object, and its lower and upper bound in bytes."""

    layout: Layout
    low: int
    high: int

    @property
    def extent(self) -> int:
        """The distance of one object from the next."""
        return self.high - self.low

    def objects(self, count: int) -> Layout:
        """Return the layout of `count` objects."""
        return self.layout.strided(count, self.extent)


def read(written: Any) -> Datatype:
    """Return the datatype of a nested list or a name; raise TaskError for what is none."""
    if isinstance(written, str) and written in SIZES:
        return Datatype(Layout.dense(SIZES[written]), 0, SIZES[written])
    if not isinstance(written, list) or not written or written[0] not in _MAKERS:
        known = ", ".join((*SIZES, *_MAKERS))
        raise TaskError(f"expected a datatype, one of {known}, saw {str(written)[:80]!r}", 'write ["vector", 4, 1, 8, "double"], see docs/mpi.md')
    name, *parts = written
    try:
        return _MAKERS[name](*parts)
    except (TypeError, ValueError) as error:
        raise TaskError(f"expected the parts of a {name}, saw {str(parts)[:80]}: {error}", "see docs/mpi.md") from error


def _placed(blocks: Sequence[tuple[int, int, Datatype]]) -> Datatype:
    """Return blocks of (displacement in bytes, length, type), one after the other."""
    layout = Layout.concat((place, child.layout.strided(length, child.extent)) for place, length, child in blocks)
    ends = [(place + last * child.extent, child) for place, length, child in blocks if length for last in (0, length - 1)]
    lows, highs = [place + child.low for place, child in ends], [place + child.high for place, child in ends]
    return Datatype(layout, min(lows, default=0), max(highs, default=0))


def _contiguous(count: int, child: Any) -> Datatype:
    return _placed([(0, count, read(child))])


def _hvector(count: int, length: int, step: int, child: Any) -> Datatype:
    inner = _placed([(0, length, read(child))])
    if not count or not length:
        return Datatype(Layout.dense(0), 0, 0)
    last = (count - 1) * step
    return Datatype(inner.layout.strided(count, step), inner.low + min(0, last), inner.high + max(0, last))


def _vector(count: int, length: int, stride: int, child: Any) -> Datatype:
    return _hvector(count, length, stride * read(child).extent, child)


def _hindexed(lengths: list[int], places: list[int], child: Any) -> Datatype:
    inner = read(child)
    return _placed([(place, length, inner) for length, place in zip(lengths, places, strict=True)])


def _indexed(lengths: list[int], places: list[int], child: Any) -> Datatype:
    extent = read(child).extent
    return _hindexed(lengths, [place * extent for place in places], child)


def _hindexed_block(length: int, places: list[int], child: Any) -> Datatype:
    return _hindexed([length] * len(places), places, child)


def _indexed_block(length: int, places: list[int], child: Any) -> Datatype:
    return _indexed([length] * len(places), places, child)


def _struct(lengths: list[int], places: list[int], children: list[Any]) -> Datatype:
    return _placed([(place, length, read(child)) for length, place, child in zip(lengths, places, children, strict=True)])


def _subarray(sizes: list[int], chosen: list[int], starts: list[int], order: str, child: Any) -> Datatype:
    if order not in ("C", "F") or any(not 0 <= start <= start + part <= size for size, part, start in zip(sizes, chosen, starts, strict=True)):
        raise ValueError("expected the order C or F, and subsizes and starts inside the sizes")
    inner = read(child)
    layout, step = inner.layout, inner.extent
    for size, part, start in list(zip(sizes, chosen, starts, strict=True))[:: -1 if order == "C" else 1]:
        layout = layout.strided(part, step).shifted(start * step)
        step *= size
    return Datatype(layout, inner.low, inner.low + step)


def _resized(low: int, extent: int, child: Any) -> Datatype:
    return Datatype(read(child).layout, low, low + extent)


_MAKERS: Mapping[str, Callable[..., Datatype]] = {
    "contiguous": _contiguous, "vector": _vector, "hvector": _hvector, "indexed": _indexed, "hindexed": _hindexed, "indexed_block": _indexed_block,
    "hindexed_block": _hindexed_block, "struct": _struct, "subarray": _subarray, "resized": _resized,
}  # fmt: skip
