"""Regions of neighbours' arrays on the same host, opened by CUDA IPC: one kernel reads strided here and writes strided there.

Nothing lies in between, so that the receiver has to say when its regions may be written to: its earlier work on the GPU is awaited, and a message
without bytes says so to each neighbour, before each exchange. It goes the other way than the regions' own, by the lowest tag of those that this
process sends; messages from one process with one tag arrive in order, and the one that says ready is always sent, and awaited, first.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from warpwright.domains.mpi import core
from warpwright.domains.mpi.errors import DeviceError
from warpwright.domains.mpi.exchange.slots import host, spoken, traded
from warpwright.domains.mpi.exchange.views import View
from warpwright.domains.mpi.ir import Concat, Dense, Strided, parse
from warpwright.domains.mpi.layout import Layout

_INFO = struct.Struct("<32s64sqQ256s")
"""Of a region that is received: the host, the handle of its allocation, its place in it, its address, its layout; zeros: not to be opened."""
_REFUSED = ("expected the GPU to copy regions into the neighbours' arrays, saw it refuse", "keep the arrays until the plan is freed")


class Links:
    """The neighbours' regions that could be opened. Made, and freed, together with the neighbours."""

    def __init__(self, comm: Any, device: int, pairs: Sequence[tuple[int, tuple[int, int]]], sends: Sequence[View], receives: Sequence[View]) -> None:
        """Exchange handles with the neighbours: `pairs` are each region's process and tags.

        Afterwards `sends[i]` says whether region i is written straight into the neighbour's array, `receives[i]` whether its own is so written.
        """
        from mpi4py import MPI

        self._comm, self._device, self._pairs, self._mpi = comm, device, pairs, MPI
        self._opened: dict[bytes, int | None] = {}
        told = traded(comm, pairs, [self._info(one) for one in receives], _INFO.size, to_sender=True)
        targets = [self._target(info, rank, one) for info, (rank, _), one in zip(told, pairs, sends, strict=True)]
        self.sends = [one is not None for one in targets]
        known = traded(comm, pairs, [bytes([one]) for one in self.sends], 1, to_sender=False)
        self.receives = [one == b"\1" for one in known]
        self._links = _built([(one.layout, one.address, *target) for one, target in zip(sends, targets, strict=True) if target is not None], device)
        silence = [self._mpi.buffer.fromaddress(0, 0), MPI.BYTE]
        written = [(rank, tags[0]) for (rank, tags), yes in zip(pairs, self.sends, strict=True) if yes]
        awaited = [(rank, tags[1]) for (rank, tags), yes in zip(pairs, self.receives, strict=True) if yes]
        self._heard = [comm.Recv_init(silence, *written[i]) for i in spoken(written, [True] * len(written))]
        self._ready = [comm.Send_init(silence, *awaited[i]) for i in spoken(awaited, [True] * len(awaited))]

    def _info(self, one: View) -> bytes:
        handle, offset = ctypes.create_string_buffer(64), ctypes.c_int64()
        text = one.layout.canonical().encode()
        if len(text) > 256 or core.library().warpwright_export(one.address, self._device, handle, ctypes.byref(offset)):
            return bytes(_INFO.size)
        return _INFO.pack(host(), handle.raw, offset.value, one.address, text)

    def _target(self, info: bytes, rank: int, one: View) -> tuple[Layout, int] | None:
        """The neighbour's region and its address here, if it lies on this host, has as many bytes, can be opened and needs no more than a nest."""
        there, handle, offset, address, text = _INFO.unpack(info)
        if there != host():
            return None
        layout = _rebuilt(text.rstrip(b"\0").decode())
        base: int | None = address
        if rank != self._comm.Get_rank():  # a process cannot open its own
            if handle not in self._opened:
                self._opened[handle] = core.library().warpwright_open_shared(handle, self._device)
            start = self._opened[handle]
            base = None if start is None else start + offset
        if base is None:
            return None
        alone = _built([(one.layout, one.address, layout, base)], self._device)
        if not alone:
            return None
        core.library().warpwright_links_free(alone)
        return layout, base

    def move(self, stream: int) -> None:
        """Say that the regions here may be written to, wait until the neighbours have said so, and copy."""
        library = core.library()
        if self._ready and library.warpwright_wait(self._device, stream):
            raise DeviceError(*_REFUSED)
        self._mpi.Prequest.Startall(self._heard)
        self._mpi.Prequest.Startall(self._ready)
        self._mpi.Request.Waitall([*self._heard, *self._ready])
        if self._heard and library.warpwright_links_run(self._links, stream):
            raise DeviceError(*_REFUSED)

    def free(self) -> None:
        """Close what was opened; nobody writes into the arrays any more once all neighbours are here."""
        library = core.library()
        for request in (*self._heard, *self._ready):
            request.Free()
        library.warpwright_links_free(self._links)
        for base in self._opened.values():
            if base is not None:
                library.warpwright_unshare(base, self._device, 1)
        traded(self._comm, self._pairs, [b"\0"] * len(self._pairs), 1, to_sender=False)
        self._opened, self._heard, self._ready, self._links = {}, [], [], None


def _built(links: Sequence[tuple[Layout, int, Layout, int]], device: int) -> Any:
    """The core's links: each a layout and its address here, and there; None where one is more than a nest."""
    columns = [[one._handle for one, *_ in links], [at for _, at, *_ in links], [one._handle for _, _, one, _ in links], [at for *_, at in links]]
    return core.library().warpwright_links(len(links), *((ctypes.c_void_p * len(links))(*column) for column in columns), device)


def _rebuilt(text: str) -> Layout:
    """The layout that a canonical text stands for."""

    def built(node: Dense | Strided | Concat | None) -> Layout:
        if node is None:
            return Layout.dense(0)
        if isinstance(node, Dense):
            return Layout.dense(node.bytes)
        if isinstance(node, Strided):
            return built(node.child).strided(node.count, node.step)
        return Layout.concat([(offset, built(part)) for offset, part in node.parts])

    object_ = parse(text)
    return built(object_.node).shifted(object_.offset)
