"""CUDA memory of another process, through the driver's own IPC calls.

torch's `_share_cuda_` also passes the name of a reference counter file, which an untrusted worker could point anywhere; the driver
calls pass 64 opaque bytes. The sender keeps its tensor alive until the receiver says that it has copied.
"""

from __future__ import annotations

import base64
import ctypes
from functools import cache
from typing import Any

HANDLE_BYTES = 64  # CU_IPC_HANDLE_SIZE
LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag there is


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


class IpcError(RuntimeError):
    """The driver refused: memory from cuMemCreate (expandable segments), another container, another user."""


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise IpcError(f"libcuda.so.1 cannot be loaded: {error}") from error


def _checked(name: str, code: int) -> None:
    if code != 0:
        raise IpcError(f"{name} returned CUDA error {code}")


def export(tensor: Any) -> dict[str, Any]:
    """Return the descriptor of a dense CUDA tensor's memory, to be sent to another process."""
    import torch

    torch.cuda.current_stream(tensor.device).synchronize()
    base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), _Handle()
    pointer = tensor.data_ptr()
    with torch.cuda.device(tensor.device):
        _checked("cuMemGetAddressRange", _driver().cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)))
        _checked("cuIpcGetMemHandle", _driver().cuIpcGetMemHandle(ctypes.byref(handle), base))
    return {"handle": base64.b64encode(bytes(handle)).decode(), "offset": pointer - base.value, "segment": size.value}


class _Memory:
    """What torch.as_tensor reads to wrap foreign memory without a copy."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (pointer, False), "version": 3, "strides": None}


def copy_into(descriptor: dict[str, Any], target: Any) -> None:
    """Fill the flat uint8 CUDA tensor `target` from the memory that `descriptor` names."""
    import torch

    raw, offset, size = base64.b64decode(descriptor["handle"]), int(descriptor["offset"]), target.numel()
    if len(raw) != HANDLE_BYTES or offset < 0 or offset + size > int(descriptor["segment"]):
        raise IpcError(f"expected {HANDLE_BYTES} bytes of handle and {size} bytes inside the segment, saw {len(raw)} and offset {offset}")
    handle = _Handle()
    ctypes.memmove(ctypes.byref(handle), raw, HANDLE_BYTES)
    base = ctypes.c_uint64()
    with torch.cuda.device(target.device):
        torch.cuda.current_stream()  # makes the primary context current
        _checked("cuIpcOpenMemHandle", _driver().cuIpcOpenMemHandle_v2(ctypes.byref(base), handle, ctypes.c_uint(LAZY_PEER_ACCESS)))
        try:
            target.copy_(torch.as_tensor(_Memory(base.value + offset, size), device=target.device))
            torch.cuda.synchronize()
        finally:
            _checked("cuIpcCloseMemHandle", _driver().cuIpcCloseMemHandle(base))
