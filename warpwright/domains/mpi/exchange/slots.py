"""Memory of one GPU that neighbours on the same host pack their regions into: two slots, in turns, exported by CUDA IPC.

Slot k mod 2 of exchange k is free when it is packed into: whoever starts exchange k has the neighbour's message of exchange k - 1, which was sent
after the neighbour had unpacked exchange k - 2.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence
from typing import Any

from warpwright.domains.mpi import core

_INFO = struct.Struct("<32s64sQQQ")
"""Of a region that is received: the host, the handle of the memory, the size of a slot, where the region lies in it, its bytes; zeros: not shared."""


def host() -> bytes:
    """Return what tells this host, as it runs now, from others."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            told = file.read().replace("-", "").strip()
    except OSError:
        told = socket.gethostname()
    return told.encode()[:32].ljust(32, b"\0")


def traded(comm: Any, pairs: Sequence[tuple[int, tuple[int, int]]], mine: Sequence[bytes], size: int, *, to_sender: bool) -> list[bytes]:
    """Send bytes about each region to the process at its other end; return what came from there. `pairs` are processes and tags."""
    from mpi4py import MPI

    theirs = [bytearray(size) for _ in mine]
    out, back = (1, 0) if to_sender else (0, 1)
    requests = [comm.Irecv([one, MPI.BYTE], rank, tags[back]) for one, (rank, tags) in zip(theirs, pairs, strict=True)]
    requests += [comm.Isend([one, MPI.BYTE], rank, tags[out]) for one, (rank, tags) in zip(mine, pairs, strict=True)]
    MPI.Request.Waitall(requests)
    return [bytes(one) for one in theirs]


def spoken(messages: Sequence[tuple[int, int]], silent: Sequence[bool]) -> list[int]:
    """Return which messages, each a process and a tag, have to be made: all but the silent ones, of which one says it for all of a process.

    It is the one with the lowest tag, so that both sides choose the same.
    """
    lowest: dict[int, int] = {}
    for (rank, tag), quiet in zip(messages, silent, strict=True):
        if quiet:
            lowest[rank] = min(tag, lowest.get(rank, tag))
    return [i for i, (rank, tag) in enumerate(messages) if not silent[i] or tag == lowest[rank]]


class Slots:
    """This process's slots, and the neighbours' that could be opened. Made, and freed, together with the neighbours."""

    def __init__(self, comm: Any, device: int, pairs: Sequence[tuple[int, tuple[int, int]]], sizes: Sequence[tuple[int, int]]) -> None:
        """Exchange handles with the neighbours: `pairs` are each region's process and tags, `sizes` the bytes that it sends and receives.

        Afterwards `sends[i]` are the addresses at which region i's bytes are packed for both slots, or None, and `receives[i]` those at which its
        own arrive, or None where the neighbour sends them in a message.
        """
        self._comm, self._device, self._pairs = comm, device, pairs
        starts = [0]
        for _, size in sizes:
            starts.append(starts[-1] + -(-size // 256) * 256)
        self._slot = starts[-1]
        handle = ctypes.create_string_buffer(64)
        self._memory = core.library().warpwright_share(max(1, 2 * self._slot), device, handle)
        self._opened: dict[bytes, int | None] = {}
        mine = handle.raw if self._memory else bytes(64)
        infos = [_INFO.pack(host(), mine, self._slot, start, size) for start, (_, size) in zip(starts[:-1], sizes, strict=True)]
        told = traded(comm, pairs, infos, _INFO.size, to_sender=True)
        self.sends = [self._reached(info, rank, size) for info, (rank, _), (size, _) in zip(told, pairs, sizes, strict=True)]
        known = traded(comm, pairs, [bytes([one is not None]) for one in self.sends], 1, to_sender=False)
        base = self._memory or 0
        self.receives = [(base + start, base + self._slot + start) if one == b"\1" else None for one, start in zip(known, starts[:-1], strict=True)]

    def _reached(self, info: bytes, rank: int, size: int) -> tuple[int, int] | None:
        """The addresses of a neighbour's region in both slots, if it lies on this host, has as many bytes and can be opened."""
        there, handle, slot, start, room = _INFO.unpack(info)
        if there != host() or handle == bytes(64) or room != size:  # a message of another length is the library's to judge
            return None
        if handle not in self._opened:
            own = rank == self._comm.Get_rank()  # a process cannot open its own
            self._opened[handle] = self._memory if own else core.library().warpwright_open_shared(handle, self._device)
        base = self._opened[handle]
        return None if base is None else (base + start, base + slot + start)

    def free(self) -> None:
        """Give everything back; nobody packs into the slots any more once all neighbours are here."""
        library = core.library()
        for base in self._opened.values():
            if base is not None and base != self._memory:
                library.warpwright_unshare(base, self._device, 1)
        traded(self._comm, self._pairs, [b"\0"] * len(self._pairs), 1, to_sender=False)
        if self._memory:
            library.warpwright_unshare(self._memory, self._device, 0)
        self._memory, self._opened = None, {}
