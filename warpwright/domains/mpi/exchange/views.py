"""Strided arrays of NumPy, CuPy, torch and whatever speaks their protocols, as layouts and as datatypes: nobody writes subarrays by hand."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.domains.mpi.ir import Dense, Strided, parse
from warpwright.domains.mpi.layout import Layout
from warpwright.errors import UsageError


@dataclass(frozen=True)
class View:
    """Where the elements of an array lie."""

    owner: Any
    """What keeps the memory alive."""
    address: int
    """Of the first element."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    itemsize: int
    device: int | None
    """The ordinal of the GPU; None for memory of the host."""
    writable: bool

    @functools.cached_property
    def layout(self) -> Layout:
        """The bytes in the array's own order (the last index runs fastest), from `address` on."""
        layout = Layout.dense(self.itemsize)
        for count, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            layout = layout.strided(count, step)
        return layout

    @property
    def bytes(self) -> int:
        """The number of bytes of all elements."""
        return math.prod(self.shape) * self.itemsize


def view(array: Any) -> View:
    """Return the view of an array with a CUDA array interface, an array interface or DLPack; raise UsageError for anything else."""
    if isinstance(array, View):
        return array
    if _has(array, "__cuda_array_interface__"):
        return _of_interface(array, array.__cuda_array_interface__, cuda=True)
    if _has(array, "__array_interface__"):
        return _of_interface(array, array.__array_interface__, cuda=False)
    if _has(array, "__dlpack__"):
        return _of_dlpack(array)
    expected = "expected an array with __cuda_array_interface__, __array_interface__ or __dlpack__"
    raise UsageError(f"{expected}, saw {type(array).__name__}", "give a NumPy, CuPy or torch array")


def message(array: Any) -> list[Any]:
    """Return what mpi4py sends or receives for the array: its memory, 1, and a committed datatype (free it with `[2].Free()`)."""
    from mpi4py import MPI

    seen = view(array)
    low, high = seen.layout.span
    return [MPI.buffer.fromaddress(seen.address, max(high, 0)), 1, _datatype(MPI, seen.layout)] if low >= 0 else _backwards(MPI, seen, low, high)


def _backwards(mpi: Any, seen: View, low: int, high: int) -> list[Any]:
    """A view that runs to lower addresses: the buffer begins at its lowest byte."""
    return [mpi.buffer.fromaddress(seen.address + low, high - low), 1, _datatype(mpi, seen.layout.shifted(-low))]


def _datatype(mpi: Any, layout: Layout) -> Any:
    whole = parse(layout.canonical())

    def build(node: Any) -> Any:
        if isinstance(node, Dense):
            return mpi.BYTE.Create_contiguous(node.bytes)
        if not isinstance(node, Strided):
            raise UsageError(f"expected the layout of an array, saw {layout.canonical()}", "an array is a nest of strides")
        inner = build(node.child)
        outer = inner.Create_hvector(node.count, 1, node.step)
        inner.Free()
        return outer

    if whole.node is None:
        return mpi.BYTE.Create_contiguous(0).Commit()
    one = build(whole.node)
    if not whole.offset:
        return one.Commit()
    placed = one.Create_hindexed_block(1, [whole.offset])
    one.Free()
    return placed.Commit()


def _has(array: Any, name: str) -> bool:
    try:
        return getattr(array, name, None) is not None
    except (AttributeError, TypeError, RuntimeError):  # torch raises for a tensor on the host that is asked for CUDA
        return False


def _of_interface(array: Any, interface: dict[str, Any], *, cuda: bool) -> View:
    address, read_only = interface["data"]
    shape, itemsize = tuple(interface["shape"]), int(interface["typestr"][2:])
    strides = interface.get("strides") or _packed(shape, itemsize)
    return View(array, int(address), shape, tuple(strides), itemsize, _ordinal(array) if cuda else None, not read_only)


def _ordinal(array: Any) -> int:
    """The GPU of an array: CuPy's .device.id, torch's .device.index, else what DLPack says, else 0."""
    device = getattr(array, "device", None)
    for name in ("id", "index"):
        ordinal = getattr(device, name, None)
        if isinstance(ordinal, int):
            return ordinal
    return int(array.__dlpack_device__()[1]) if hasattr(array, "__dlpack_device__") else 0


def _packed(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class _Tensor(ctypes.Structure):
    """DLTensor of DLPack's header, which begins a DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_CUDA, _CUDA_MANAGED = 2, 13


def _of_dlpack(array: Any) -> View:
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    shape, itemsize = tuple(tensor.shape[: tensor.ndim]), tensor.bits * tensor.lanes // 8
    strides = tuple(step * itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else _packed(shape, itemsize)
    device = tensor.device_id if tensor.device_type in (_CUDA, _CUDA_MANAGED) else None
    return View(array, (tensor.data or 0) + tensor.byte_offset, shape, strides, itemsize, device, True)
