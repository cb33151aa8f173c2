"""A layout of bytes: where the bytes of an object lie, in the order in which they are packed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.mpi import core
from warpwright.domains.mpi.errors import DeviceError
from warpwright.errors import UsageError

_REFUSED = (
    "expected memory of one GPU that CUDA is in use on, saw addresses that the driver refused",
    "unset WARPWRIGHT_MPI_GPU (docs/mpi.md), and look at the addresses and the free memory",
)


class Layout:
    """A canonical, ordered layout; the core's own object, freed with this one.

    It is made by `dense`, `strided` and `concat`, or from a datatype of mpi4py (`warpwright.mpi.layout`).
    """

    def __init__(self, handle: int | None) -> None:
        """Take over a handle of the core; raise UsageError for none: a layout of more than 2^63 bytes."""
        if not handle:
            raise UsageError("expected a layout whose size and addresses fit 64 bits, saw one that does not", "use smaller counts or strides")
        self._handle = handle

    @staticmethod
    def dense(count: int) -> Layout:
        """Return `count` consecutive bytes."""
        return Layout(core.library().warpwright_dense(count))

    @staticmethod
    def concat(parts: Iterable[tuple[int, Layout]]) -> Layout:
        """Return layouts one after the other in the packed stream, each at its offset in bytes."""
        parts = list(parts)
        offsets = (ctypes.c_int64 * len(parts))(*(offset for offset, _ in parts))
        children = (ctypes.c_void_p * len(parts))(*(part._handle for _, part in parts))
        return Layout(core.library().warpwright_concat(len(parts), offsets, children))

    def strided(self, count: int, step: int) -> Layout:
        """Return this layout `count` times, `step` bytes apart."""
        return Layout(core.library().warpwright_strided(count, step, self._handle))

    def shifted(self, offset: int) -> Layout:
        """Return this layout `offset` bytes further on."""
        return Layout.concat([(offset, self)])

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            core.library().warpwright_free(self._handle)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and bool(core.library().warpwright_equal(self._handle, other._handle))

    __hash__ = None  # type: ignore[assignment]

    @property
    def bytes(self) -> int:
        """The number of bytes that are packed."""
        return int(core.library().warpwright_bytes(self._handle))

    @property
    def span(self) -> tuple[int, int]:
        """The bytes that are touched, relative to address 0 of the object: from the first up to the second."""
        low, high = ctypes.c_int64(), ctypes.c_int64()
        core.library().warpwright_span(self._handle, ctypes.byref(low), ctypes.byref(high))
        return low.value, high.value

    def canonical(self) -> str:
        """Return the canonical form as text, such as 8 + Strided(4, 64, Dense(24))."""
        describe = core.library().warpwright_describe
        room = ctypes.create_string_buffer(describe(self._handle, None, 0) + 1)
        describe(self._handle, room, len(room))
        return room.value.decode()

    def __repr__(self) -> str:
        return f"Layout({self.canonical()})"

    def runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return offsets and lengths of the contiguous runs, in packing order."""
        runs = core.library().warpwright_runs
        offsets, lengths = (np.empty(runs(self._handle, None, None, 0), np.int64) for _ in range(2))
        runs(self._handle, offsets.ctypes.data, lengths.ctypes.data, len(offsets))
        return offsets, lengths

    def pack(self, base: int, packed: Any, first: int = 0) -> None:
        """Copy what lies at address `base` into `packed`, a writable contiguous buffer, from byte `first` of the stream until it is full."""
        self._copy(base, packed, first, unpack=False)

    def unpack(self, packed: Any, base: int, first: int = 0) -> None:
        """Copy a contiguous buffer, which holds the stream from byte `first` on, to where its bytes belong at address `base`."""
        self._copy(base, packed, first, unpack=True)

    def _copy(self, base: int, packed: Any, first: int, *, unpack: bool) -> None:
        view = np.frombuffer(packed, np.uint8)
        if not 0 <= first <= first + len(view) <= self.bytes:
            raise UsageError(f"expected at most the {self.bytes} bytes of the layout, saw {len(view)} from byte {first} on", "use a smaller buffer")
        if not unpack and not view.flags.writeable:
            raise UsageError("expected a writable buffer to pack into, saw one that is read-only", "give a bytearray or a numpy array")
        core.library().warpwright_copy(self._handle, base, view.ctypes.data, first, first + len(view), int(unpack))

    def pack_to(self, base: int, packed: int) -> None:
        """Copy what lies at address `base` to address `packed`, where either may be memory of a GPU; returns when it has arrived."""
        self._anywhere(base, packed, unpack=False)

    def unpack_from(self, packed: int, base: int) -> None:
        """Copy the stream at address `packed` to where its bytes belong at address `base`, where either may be memory of a GPU."""
        self._anywhere(base, packed, unpack=True)

    def _anywhere(self, base: int, packed: int, *, unpack: bool) -> None:
        if core.library().warpwright_copy_anywhere(self._handle, base, packed, int(unpack)):
            raise DeviceError(*_REFUSED)


def pack_group(layouts: Sequence[Layout], bases: Sequence[int], packed: Sequence[int]) -> None:
    """Pack many objects of one GPU, each to its own address, in as few launches as possible (up to 26 strided ones in one)."""
    _group(layouts, bases, packed, unpack=False)


def unpack_group(layouts: Sequence[Layout], packed: Sequence[int], bases: Sequence[int]) -> None:
    """Unpack many streams into objects of one GPU in as few launches as possible."""
    _group(layouts, bases, packed, unpack=True)


def _group(layouts: Sequence[Layout], bases: Sequence[int], packed: Sequence[int], *, unpack: bool) -> None:
    if not len(layouts) == len(bases) == len(packed):
        raise UsageError(f"expected as many layouts as addresses, saw {len(layouts)}, {len(bases)} and {len(packed)}", "give one of each")
    handles, here, there = ((ctypes.c_void_p * len(layouts))(*all_) for all_ in ([one._handle for one in layouts], bases, packed))
    if core.library().warpwright_copy_group(len(layouts), handles, here, there, int(unpack)):
        raise DeviceError(*_REFUSED)
