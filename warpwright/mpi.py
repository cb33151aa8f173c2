"""Derived datatypes of MPI at the speed of the memory: import this before mpi4py and its calls are served here (docs/mpi.md).

    import warpwright.mpi
    from mpi4py import MPI

    warpwright.mpi.layout(datatype)          # its canonical layout: .bytes, .span, .runs(), .pack(), .unpack()
    warpwright.mpi.plan(layout)              # the kernel that serves it on a GPU, and its words
    warpwright.mpi.pack_group(layouts, bases, packed)       # many objects of one GPU in one launch
    warpwright.mpi.message(array[1:-1, :3])  # a strided NumPy, CuPy or torch array as mpi4py sends it
    warpwright.mpi.HaloPlan.grid(array, width, comm)        # a halo exchange planned once; .exchange()
    warpwright.mpi.explain(datatype, count, peer)           # which method serves a message, what each would take, and why
    warpwright.mpi.counts()                  # calls served and forwarded, by function
"""

from __future__ import annotations

import ctypes
from typing import Any

from warpwright.domains.mpi import model
from warpwright.domains.mpi.activate import activate, library_of_mpi4py
from warpwright.domains.mpi.exchange.halo import HaloPlan
from warpwright.domains.mpi.exchange.views import message, view
from warpwright.domains.mpi.explain import plan
from warpwright.domains.mpi.layout import Layout, pack_group, unpack_group
from warpwright.errors import UsageError

__all__ = ["HaloPlan", "Layout", "activate", "counts", "explain", "layout", "message", "pack_group", "plan", "predict", "unpack_group", "view"]

_COUNTED = ("MPI_Pack", "MPI_Unpack", "send", "receive", "persistent", "all-to-all", "neighbour", "ring")
"""All kinds of sends are one counter; so are receives, and persistent requests. `ring` counts sends into another process's GPU memory."""

activate()


def layout(datatype: Any, count: int = 1) -> Layout:
    """Return the layout of `count` objects of an mpi4py datatype; raise UsageError for a type that is left to the library."""
    extent = ctypes.c_int64()
    one = _shim().warpwright_of_datatype(_handle(datatype), ctypes.byref(extent))
    if not one:
        raise UsageError(f"expected a datatype that can be read, saw {datatype.name or datatype}", "the library itself serves it")
    return Layout(one) if count == 1 else Layout(one).strided(count, extent.value)


def _shim() -> ctypes.CDLL:
    shim = activate()
    if shim is None:
        raise UsageError("expected an MPI to read the datatype with, saw none", "install mpi4py and an MPI library, and unset WARPWRIGHT_MPI")
    return shim


def _handle(datatype: Any) -> ctypes.c_void_p | ctypes.c_int:
    """A datatype as C passes it: an address or an int, by the library."""
    from mpi4py import MPI

    handle = MPI._handleof(datatype)
    return ctypes.c_void_p(handle) if MPI._sizeof(datatype) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int(handle)


def predict(datatype: Any, count: int = 1) -> dict[str, float]:
    """Return the microseconds of half a ping-pong of `count` objects by each method; nothing where this machine was not measured."""
    one = layout(datatype, count)
    measured = _measured()
    return {} if measured is None or not one.bytes else {name: time.us for name, time in measured.predict(one.bytes, _block(one)).items()}


def explain(datatype: Any, count: int = 1, peer: int | None = None) -> dict[str, Any]:
    """Return which method serves a message of `count` objects to `peer`, what each would take, and why.

    All peers are taken to be on this host; one that is MPI_PROC_NULL costs nothing.
    """
    from mpi4py import MPI

    if peer == MPI.PROC_NULL:
        return {"method": "library", "why": "nothing is sent to MPI_PROC_NULL"}
    one = layout(datatype, count)
    known = (ctypes.c_double * 5)()
    packs = _shim().warpwright_choice(_handle(datatype), ctypes.c_int64(count), known)
    trials = None if packs < 0 else model.Trials(packs > 0, int(known[0]), int(known[1]), known[2], known[3], known[4] > 0)
    return model.explanation(_measured(), one.bytes, _block(one), trials)


def _measured() -> model.Model | None:
    return model.Model.read(model.key(library_of_mpi4py()))


def _block(one: Layout) -> int:
    """The mean length of a run."""
    return max(1, one.bytes // max(1, len(one.runs()[0])))


def counts() -> dict[str, dict[str, int]]:
    """Return how many calls of each function were served and forwarded by this process."""
    shim = activate()
    numbers = (ctypes.c_uint64 * (2 * len(_COUNTED)))()
    if shim is not None:
        shim.warpwright_counts(numbers)
    return {name: {"served": numbers[2 * i], "forwarded": numbers[2 * i + 1]} for i, name in enumerate(_COUNTED)}
