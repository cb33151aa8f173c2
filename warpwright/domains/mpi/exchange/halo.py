"""A halo exchange that is planned once: all regions are packed in one go, travel by persistent requests, and are unpacked in one go."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, Literal

from warpwright.domains.mpi import core
from warpwright.domains.mpi.errors import DeviceError
from warpwright.domains.mpi.exchange.links import Links
from warpwright.domains.mpi.exchange.slots import Slots, spoken
from warpwright.domains.mpi.exchange.views import View, view
from warpwright.errors import UsageError

Direct = bool | Literal["arrays"]

_ADVICE = "unset WARPWRIGHT_MPI_GPU (docs/mpi.md), and look at the addresses and the free memory"


class HaloPlan:
    """The exchange of pairs of regions with neighbours; `exchange()` as often as wanted, `free()` at the end (or use it in a `with`)."""

    def __init__(
        self, views: Sequence[tuple[Any, Any]], neighbours: Sequence[int], comm: Any = None, *,
        tags: Sequence[tuple[int, int]] | None = None, stream: Any = 0, direct: Direct = False,
    ) -> None:  # fmt: skip
        """Plan it: pair i of `views` is the region that is sent to process `neighbours[i]` and the one that is received from there.

        The regions are strided arrays of one kind, of the host or of one GPU. `tags` are what pair i sends with and receives with; without them
        the pairs with one process are matched in their order on both sides, which is wrong where a process is its neighbour twice: there give
        tags, or use `grid`. On a GPU all work runs on `stream` (of torch, of CuPy, or a CUstream; 0 is the legacy default one), after what was
        launched there before.
        With `direct` neighbours on this host pack into each other's GPU memory where CUDA IPC lets them; then all of them must make their plans
        with it, and make and free them together, as in a collective call. With "arrays" they write into each other's arrays instead, without a
        buffer and without unpacking: then `start` waits for the neighbours' starts, and the arrays have to live until the plan is freed.
        Raises UsageError for regions that differ in kind, DeviceError where a GPU refuses.
        """
        from mpi4py import MPI

        if len(views) != len(neighbours) or (tags is not None and len(tags) != len(views)):
            raise UsageError(f"expected a neighbour and a pair of tags for each of {len(views)} pairs, saw {len(neighbours)}", "give one for each")
        self._stream = _handle_of(stream)
        self._comm = MPI.COMM_WORLD if comm is None else comm
        messages = zip(views, neighbours, tags or _in_order(neighbours), strict=True)
        pairs = [(view(send), view(receive), rank, tag) for (send, receive), rank, tag in messages if rank != MPI.PROC_NULL]
        self._turn = 0
        self._slots: Slots | None = None
        sends, receives = [send for send, _, _, _ in pairs], [receive for _, receive, _, _ in pairs]
        device = _device(sends + receives)
        if not all(receive.writable for receive in receives):
            raise UsageError("expected regions that can be written to receive into, saw a read-only array", "copy it first")
        meetings = [(rank, tag) for _, _, rank, tag in pairs]
        self._links = Links(self._comm, device, meetings, sends, receives) if direct == "arrays" else None
        if direct is True:
            sizes = [(send.bytes, receive.bytes) for send, receive, _, _ in pairs]
            self._slots = Slots(self._comm, device, meetings, sizes)
        links = self._links
        self._sends = _Regions(sends, device, self._slots.sends if self._slots else None, links.sends if links else None)
        self._receives = _Regions(receives, device, self._slots.receives if self._slots else None, links.receives if links else None)
        incoming, outgoing = [(rank, tag[1]) for rank, tag in meetings], [(rank, tag[0]) for rank, tag in meetings]
        here, there = self._receives.parts(MPI), self._sends.parts(MPI)
        self._incoming = [self._comm.Recv_init([here[i], MPI.BYTE], *incoming[i]) for i in spoken(incoming, self._receives.silent)]
        self._outgoing = [self._comm.Send_init([there[i], MPI.BYTE], *outgoing[i]) for i in spoken(outgoing, self._sends.silent)]

    @classmethod
    def grid(cls, array: Any, width: int, comm: Any, *, stream: Any = 0, direct: Direct = False) -> HaloPlan:
        """Plan the exchange of a block of a distributed array with all neighbours of a Cartesian communicator, across edges and corners too.

        The outer `width` elements of the array's first dimensions, as many as the communicator has, are the neighbours'; `array` must be
        sliceable, as NumPy, CuPy and torch arrays are.
        """
        from mpi4py import MPI

        dims, periods, here = comm.Get_topo()
        views, ranks, tags = [], [], []
        directions = [where for where in itertools.product((-1, 0, 1), repeat=len(dims)) if any(where)]
        for where in directions:
            there = [at + step for at, step in zip(here, where, strict=True)]
            inside = all(periodic or 0 <= at < size for at, size, periodic in zip(there, dims, periods, strict=True))
            ranks.append(comm.Get_cart_rank(there) if inside else MPI.PROC_NULL)
            views.append((array[_region(array.shape, where, width, own=True)], array[_region(array.shape, where, width, own=False)]))
            tags.append((directions.index(where), directions.index(tuple(-step for step in where))))
        return cls(views, ranks, comm, tags=tags, stream=stream, direct=direct)

    @property
    def bytes(self) -> int:
        """The bytes that one exchange sends."""
        return self._sends.bytes

    @property
    def direct(self) -> int:
        """How many regions are packed straight into a neighbour's memory, or copied into its array."""
        if self._links:
            return sum(self._links.sends)
        return sum(one is not None for one in self._slots.sends) if self._slots else 0

    def start(self) -> None:
        """Pack and send; until `wait` the received regions are not to be touched."""
        from mpi4py import MPI

        self._turn = 1 - self._turn
        if self._links:
            self._links.move(self._stream)
        MPI.Prequest.Startall(self._incoming)
        self._sends.move(self._turn, unpack=False, stream=self._stream)
        MPI.Prequest.Startall(self._outgoing)

    def wait(self) -> None:
        """Wait until everything has arrived and lies in its place."""
        from mpi4py import MPI

        MPI.Request.Waitall([*self._incoming, *self._outgoing])
        self._receives.move(self._turn, unpack=True, stream=self._stream)

    def exchange(self) -> None:
        """Start and wait."""
        self.start()
        self.wait()

    def free(self) -> None:
        """Give requests and buffers back; the plan is of no use any more. Together with the neighbours if it is a direct one."""
        for request in (*self._incoming, *self._outgoing):
            request.Free()
        self._incoming, self._outgoing = [], []
        self._sends.free()
        self._receives.free()
        if self._slots:
            self._slots.free()
            self._slots = None
        if self._links:
            self._links.free()
            self._links = None

    def __enter__(self) -> HaloPlan:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()


def _handle_of(stream: Any) -> int:
    """The CUstream of torch's or CuPy's object, or the number that it is."""
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    if isinstance(stream, int):
        return stream
    raise UsageError(f"expected a stream of torch or CuPy, or a CUstream as a number, saw {type(stream).__name__}", "give 0 for the default stream")


def _in_order(neighbours: Sequence[int]) -> list[tuple[int, int]]:
    """Tags by which the pairs with one process follow one another in the same order on both sides."""
    order = [list(neighbours[:i]).count(rank) for i, rank in enumerate(neighbours)]
    return [(number, number) for number in order]


def _region(shape: Sequence[int], where: Sequence[int], width: int, *, own: bool) -> tuple[slice, ...]:
    """The part of a block that lies in a direction: its own outermost elements, or the halo beyond them."""
    slices = []
    for size, step in zip(shape, where, strict=False):
        if size < 3 * width:
            raise UsageError(f"expected at least {3 * width} elements in each direction, saw {size}", "use larger blocks or a thinner halo")
        first = {-1: width if own else 0, 0: width, 1: size - (2 * width if own else width)}[step]
        slices.append(slice(first, size - width if step == 0 else first + width))
    return tuple(slices)


def _device(views: Sequence[View]) -> int:
    """The one GPU that all regions lie on; -1 for the host's."""
    devices = {one.device for one in views}
    if len(devices) > 1:
        raise UsageError(f"expected regions of the host or of one GPU, saw {sorted(map(str, devices))}", "plan an exchange for each")
    return -1 if None in devices or not devices else int(next(iter(devices)) or 0)


class _Regions:
    """Regions of one kind of memory, and where their bytes lie one after the other: a buffer of the host, or two slots of a GPU, in turns."""

    def __init__(
        self, views: Sequence[View], device: int, slots: Sequence[tuple[int, int] | None] | None, linked: Sequence[bool] | None
    ) -> None:  # fmt: skip
        """Place all regions but those that are `linked`: somebody else moves them."""
        self._views, self._device = views, device
        self.bytes = sum(one.bytes for one in views)
        self._apart = slots or [None] * len(views)
        self._linked = linked or [False] * len(views)
        library = core.library()
        sizes = [0 if slot or link else one.bytes for one, slot, link in zip(views, self._apart, self._linked, strict=True)]
        self._memory = library.warpwright_allocate(max(sum(sizes), 1), device)
        if not self._memory:
            raise DeviceError("expected pinned memory for the messages, saw the driver refuse it", _ADVICE)
        self._starts = list(itertools.accumulate(sizes, initial=self._memory))[: len(views)]
        self._groups = [self._group(turn) for turn in ((0, 1) if slots else (0,))]

    def _group(self, turn: int) -> Any:
        """All regions, with the places of their bytes in one turn."""
        ends = [slot[turn] if slot else start for slot, start in zip(self._apart, self._starts, strict=True)]
        ours = [(one, end) for one, end, link in zip(self._views, ends, self._linked, strict=True) if not link]
        lists = ([one.layout._handle for one, _ in ours], [one.address for one, _ in ours], [end for _, end in ours])
        handles, bases, packed = ((ctypes.c_void_p * len(ours))(*all_) for all_ in lists)
        return core.library().warpwright_group(len(ours), handles, bases, packed, self._device)

    @property
    def silent(self) -> list[bool]:
        """Which messages only say that the bytes lie in their slot, or in their place."""
        return [bool(slot or link) for slot, link in zip(self._apart, self._linked, strict=True)]

    def parts(self, mpi: Any) -> list[Any]:
        """The messages' buffers; nothing in those that are silent."""
        places = zip(self._starts, self._views, self.silent, strict=True)
        return [mpi.buffer.fromaddress(start, 0 if quiet else one.bytes) for start, one, quiet in places]

    def move(self, turn: int, *, unpack: bool, stream: int) -> None:
        """Pack all regions into their places, or unpack them from there."""
        if all(self._linked):
            return
        if core.library().warpwright_group_run(self._groups[turn % len(self._groups)], int(unpack), stream):
            raise DeviceError("expected the GPU to pack the regions, saw it refuse", _ADVICE)

    def free(self) -> None:
        """Give the buffer back."""
        library = core.library()
        for group in self._groups:
            library.warpwright_group_free(group)
        library.warpwright_release(self._memory, self._device)
        self._groups, self._memory = [], None
