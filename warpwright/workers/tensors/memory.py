"""Bytes in and out of another process's memory, by the kernel's hand: the process need not run for it, and a stopped one cannot interfere.

Whatever reads or writes here raises ProcessLookupError if the process has ended, be it a moment ago.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Callable
from typing import Any

ONE_CALL = 1 << 30  # process_vm_readv and writev move at most 2 GiB - 4 KiB at once


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _function(name: str) -> Callable[..., int] | None:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_ssize_t
    return function  # type: ignore[no-any-return]


_readv, _writev = _function("process_vm_readv"), _function("process_vm_writev")


def _move(function: Callable[..., int] | None, pid: int, ours: int, theirs: int, size: int) -> bool:
    """Move `size` bytes between two addresses; False where that is not permitted or not mapped. Raises ProcessLookupError: the process has ended."""
    if function is None:
        return size == 0
    done = 0
    while done < size:
        piece = min(ONE_CALL, size - done)
        local, remote = _Vector(ours + done, piece), _Vector(theirs + done, piece)
        got = function(pid, ctypes.byref(local), ctypes.c_ulong(1), ctypes.byref(remote), ctypes.c_ulong(1), ctypes.c_ulong(0))
        if got <= 0:
            if got < 0 and ctypes.get_errno() == errno.ESRCH:
                raise ProcessLookupError(errno.ESRCH, f"process {pid} has ended")
            return False
        done += got
    return True


def read(pid: int, address: int, size: int) -> bytes | None:
    """Return `size` bytes at `address` of a process, or None where that is not permitted or not mapped."""
    buffer = ctypes.create_string_buffer(size)
    return buffer.raw if _move(_readv, pid, ctypes.addressof(buffer), address, size) else None


def write(pid: int, address: int, data: bytes) -> bool:
    """Write `data` at `address` of a process; False where that is not permitted or not mapped."""
    buffer = ctypes.create_string_buffer(data, len(data))
    return _move(_writev, pid, ctypes.addressof(buffer), address, len(data))


def write_from(pid: int, address: int, ours: int, size: int) -> bool:
    """Write `size` bytes at an address of this process at `address` of another; False where that is not permitted or not mapped."""
    return _move(_writev, pid, ours, address, size)


def read_to_file(pid: int, address: int, size: int, path: str) -> bool:
    """Copy bytes of a process into a file, which is made as long as that; False where that is not permitted or not mapped."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(handle).st_size != size:
            os.truncate(handle, size)
        os.posix_fallocate(handle, 0, size)  # a full /dev/shm is an error here and a SIGBUS below
        return _through_map(handle, 0, size, lambda ours: _move(_readv, pid, ours, address, size))
    finally:
        os.close(handle)


def write_from_file(pid: int, address: int, path: str, offset: int, size: int) -> bool:
    """Copy bytes of a file into a process; False where that is not permitted or not mapped."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return _through_map(handle, offset, size, lambda ours: _move(_writev, pid, ours, address, size))
    finally:
        os.close(handle)


def _through_map(handle: int, offset: int, size: int, move: Callable[[int], bool]) -> bool:
    """Call `move` with the address at which `size` bytes of a file, from `offset` on, are mapped."""
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(handle, size + offset - start, offset=start)
    view: Any = ctypes.c_char.from_buffer(mapped, offset - start)
    try:
        return move(ctypes.addressof(view))
    finally:
        del view  # a mapping that is looked at cannot be closed
        mapped.close()
