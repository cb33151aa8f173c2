"""The CUDA driver as the child process calls it: through ctypes, with one context, on anything that has libcuda."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

LARGE_SHARED = 48 * 1024
FUNCTION_SHARED = 8
"""The driver's number of the attribute "most dynamic shared memory"."""

CAPTURE_RELAXED = 2
"""The driver's number of the mode of capture that forbids other threads nothing."""


NOT_FOUND = 500
"""The driver's number of the error "named symbol not found"."""


class DriverFailed(Exception):
    """A call of the CUDA driver failed; the context may be lost."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"CUDA error {code} in {where}")
        self.code = code


class Driver:
    """The CUDA driver, through ctypes, with one context."""

    def __init__(self, library: str, device: int) -> None:
        self.library = ctypes.CDLL(library)
        self.call("cuInit", 0)
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self.call("cuCtxSetCurrent", context)
        room = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", room, 128, handle)
        self.name = room.value.decode()
        self.capturing: ctypes.c_void_p | None = None

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; raise DriverFailed when it fails, or where the driver is older than the function.

        (`cuGraphInstantiateWithFlags` came with CUDA 11.4. Without it launches are made one by one.)
        """
        function = getattr(self.library, name, None)
        code = NOT_FOUND if function is None else function(*arguments)
        if code:
            raise DriverFailed(code, name)

    def module(self, image: bytes) -> ctypes.c_void_p:
        """Load a cubin."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.create_string_buffer(image, len(image)))
        return module

    def function(self, module: ctypes.c_void_p, name: str, shared: int = 0) -> ctypes.c_void_p:
        """Return a kernel of a module."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > LARGE_SHARED:
            self.call("cuFuncSetAttribute", function, FUNCTION_SHARED, shared)
        return function

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def memory(self) -> tuple[int, int]:
        """Return the bytes of the device's memory that are free, and all."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def set_words(self, address: int, word: int, count: int) -> None:
        """Fill `count` 32-bit words."""
        self.call("cuMemsetD32_v2", ctypes.c_uint64(address), ctypes.c_uint(word), ctypes.c_size_t(count))

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the device's memory."""
        room = (ctypes.c_char * size)()
        self.call("cuMemcpyDtoH_v2", room, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return bytes(room)

    def wait(self) -> None:
        """Wait for the device."""
        self.call("cuCtxSynchronize")

    def graph(self, launches: Callable[[ctypes.c_void_p], None]) -> ctypes.c_void_p:
        """Return an executable graph of what `launches` puts on the stream that it is given."""
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        if self.capturing is None:
            self.capturing = ctypes.c_void_p()
            self.call("cuStreamCreate", ctypes.byref(self.capturing), 0)
        self.call("cuStreamBeginCapture_v2", self.capturing, CAPTURE_RELAXED)
        try:
            launches(self.capturing)
        finally:
            self.call("cuStreamEndCapture", self.capturing, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_uint64(0))
        self.call("cuGraphDestroy", graph)
        return made

    def event(self) -> ctypes.c_void_p:
        """Return a new event."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def milliseconds(self, begin: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Return the time between two events."""
        value = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(value), begin, end)
        return value.value


_FLOATS = {2: "<e", 4: "<f"}
"""Bytes -> how a float is packed: one of two bytes is a half (of bfloat16 a harness gives the bits, as an integer)."""


def packed(values: Sequence[tuple[int, int | float]]) -> Any:
    """Return (size, value) pairs as the array of pointers that a launch takes; it keeps what it points to."""
    rooms = []
    for size, value in values:
        is_float = isinstance(value, float)
        data = struct.pack(_FLOATS.get(size, "<d"), value) if is_float else (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        rooms.append(ctypes.create_string_buffer(data, size))
    pointers = (ctypes.c_void_p * len(rooms))(*(ctypes.addressof(room) for room in rooms))
    pointers.rooms = rooms  # type: ignore[attr-defined]
    return pointers
