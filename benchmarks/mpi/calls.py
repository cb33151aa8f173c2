"""Time C functions call by call (calls.cpp), and the cases that both benchmarks share."""

from __future__ import annotations

import ctypes
import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.domains.mpi.layout import Layout


@dataclass(frozen=True)
class Case:
    """An object: `counts` and `steps` in bytes from the outermost level in, above blocks of `block` bytes."""

    name: str
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    block: int
    offset: int = 0

    @property
    def layout(self) -> Layout:
        """Its layout."""
        layout = Layout.dense(self.block)
        for count, step in zip(reversed(self.counts), reversed(self.steps), strict=True):
            layout = layout.strided(count, step)
        return layout.shifted(self.offset)

    @property
    def bytes(self) -> int:
        """The bytes that are packed."""
        total = self.block
        for count in self.counts:
            total *= count
        return total

    @property
    def room(self) -> int:
        """The bytes of a buffer that holds the object."""
        return self.offset + sum((count - 1) * step for count, step in zip(self.counts, self.steps, strict=True)) + self.block

    def datatype(self, mpi: Any) -> Any:
        """Return the committed mpi4py datatype of the object, made of byte vectors."""
        made = mpi.BYTE.Create_contiguous(self.block)
        for count, step in zip(reversed(self.counts), reversed(self.steps), strict=True):
            made, inner = made.Create_hvector(count, 1, step), made
            inner.Free()
        if self.offset:
            made, inner = made.Create_hindexed_block(1, [self.offset]), made
            inner.Free()
        return made.Commit()


def vector(total: int, block: int, step: int) -> Case:
    """Return about `total` bytes in blocks at a step."""
    size = f"{total >> 20} MiB" if total >> 20 else f"{total >> 10} KiB"
    return Case(f"{size} {block} of {step}", (total // block,), (step,), block)


def face(axis: str, width: int, side: int = 256) -> Case:
    """Return the face of a cube of doubles, `width` elements thick; x varies fastest."""
    row, plane = 8 * side, 8 * side * side
    if axis == "x":
        return Case(f"face x {width} wide of {side}^3", (side * side,), (row,), 8 * width)
    return Case(f"face y {width} wide of {side}^3", (side,), (plane,), row * width)


@functools.cache
def library() -> ctypes.CDLL:
    """Return calls.cpp, compiled."""
    flags = ("-O2", "-std=c++17", "-shared", "-fPIC")
    return ctypes.CDLL(str(native.build((Path(__file__).parent / "calls.cpp").read_text(), flags=flags)))


def address(function: Any) -> int:
    """Return the address of a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def ping_pong(shim: ctypes.CDLL, base: int, datatype: int, comm: int, rank: int, rounds: int) -> float:
    """Return the median microseconds of MPI_Send and MPI_Recv between processes 0 and 1, half of there and back; RuntimeError where one fails."""
    ns = (ctypes.c_double * rounds)()
    functions = [ctypes.c_void_p(address(one)) for one in (shim.MPI_Send, shim.MPI_Recv)]
    handles = [ctypes.c_uint64(one & 2**64 - 1) for one in (base, datatype, comm)]
    if library().ping_pong(*functions, *handles, rank, rounds, ns):
        raise RuntimeError("expected messages to pass, saw another code than 0")
    return statistics.median(ns) / 1000


class Calls:
    """One function with its arguments, timed again and again."""

    def __init__(self, function: Any, arguments: Sequence[int | None], position: bool = False) -> None:
        """Keep the arguments, whole numbers; with `position` None among them stands for the address of a position that is 0 at each call."""
        self.position = ctypes.c_int64()
        given = [ctypes.addressof(self.position) if one is None else one for one in arguments]
        self.function = ctypes.c_void_p(address(function))
        self.arguments = (ctypes.c_uint64 * 7)(*(one & 2**64 - 1 for one in given))
        self.ns: list[float] = []

    def time(self, count: int, inner: int = 1) -> None:
        """Add `count` times of `inner` calls each; raise RuntimeError where a call fails."""
        times = (ctypes.c_double * count)()
        if library().time_calls(self.function, self.arguments, ctypes.byref(self.position), inner, count, times):
            raise RuntimeError("expected a function that returns 0, saw another code")
        self.ns += list(times)

    @property
    def median_us(self) -> float:
        """The median of all times."""
        return statistics.median(self.ns) / 1000

    @property
    def least_us(self) -> float:
        """The least of all times: what the machine can, where others disturb it."""
        return min(self.ns) / 1000
