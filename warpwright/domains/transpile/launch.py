"""Load a translated program and launch its kernels on numpy arrays and torch tensors of the CPU."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpwright import native
from warpwright.domains.transpile.errors import LaunchFailed
from warpwright.domains.transpile.sanitize import Finding, findings
from warpwright.errors import UsageError

FLAGS = (*native.FLAGS, "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing")
"""errno and floating-point exceptions are nobody's business here, and they keep loops from being vectorised; Inf and NaN stay what they are."""

Shape = int | Sequence[int]

_SCALARS: Mapping[str, type[Any]] = {
    "b1": ctypes.c_bool, "i1": ctypes.c_int8, "u1": ctypes.c_uint8, "i2": ctypes.c_int16, "u2": ctypes.c_uint16, "i4": ctypes.c_int32,
    "u4": ctypes.c_uint32, "i8": ctypes.c_int64, "u8": ctypes.c_uint64, "f4": ctypes.c_float, "f8": ctypes.c_double,
}  # fmt: skip


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel that can be launched: `kernel[grid, block, shared_bytes](*arguments)`."""

    name: str
    function: Any
    """`int f(const unsigned shape[6], size_t shared, void** arguments)`; not 0 means failed."""
    codes: tuple[str, ...]
    """One code for each parameter: `f4` is a float, `pf4` a pointer to float, `s12` a struct of 12 bytes."""
    error: Any
    """Returns the text of the last failure."""
    library: Any = None
    """The library, when it was written by `sanitize`."""

    def findings(self) -> list[Finding]:
        """Return what the sanitizer found in the last launch."""
        if self.library is None:
            raise UsageError(f"expected a program that was compiled with sanitize=True, saw one without, for {self.name}")
        return findings(self.library.ww_findings().decode())

    def __getitem__(self, shape: tuple[Any, ...]) -> Launcher:
        """Give the launch shape: `[grid, block]` or `[grid, block, shared_bytes]`; grid and block are a number or up to three."""
        if not isinstance(shape, tuple) or len(shape) not in (2, 3):
            raise UsageError(f"expected {self.name}[grid, block] or {self.name}[grid, block, shared_bytes], saw {shape!r}")
        return Launcher(self, (*_three(shape[0]), *_three(shape[1])), int(shape[2]) if len(shape) == 3 else 0)


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch shape."""

    kernel: LoadedKernel
    shape: tuple[int, ...]
    """Grid x, y, z and block x, y, z."""
    shared: int
    """Dynamic shared memory, bytes."""

    @functools.cached_property
    def given_shape(self) -> Any:
        """The shape as the library takes it."""
        return (ctypes.c_uint * 6)(*self.shape)

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel; arrays are changed in place."""
        kernel = self.kernel
        if len(arguments) != len(kernel.codes):
            raise UsageError(f"expected {len(kernel.codes)} arguments of {kernel.name}, saw {len(arguments)}")
        held = [_argument(value, code, kernel.name, i) for i, (value, code) in enumerate(zip(arguments, kernel.codes, strict=True))]
        pointers = (ctypes.c_void_p * max(len(held), 1))(*map(ctypes.addressof, held))
        if kernel.library is not None:
            kernel.library.ww_forget()
            for value in arguments:
                if size := getattr(value, "nbytes", 0):
                    address = value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data
                    kernel.library.ww_watch(ctypes.c_void_p(address), ctypes.c_size_t(size))
        if kernel.function(self.given_shape, self.shared, pointers):
            raise LaunchFailed(f"{kernel.name} failed: {kernel.error().decode()}")


def _three(shape: Shape) -> tuple[int, int, int]:
    given = [int(shape)] if isinstance(shape, int | np.integer) else [int(n) for n in shape]
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise UsageError(f"expected one to three numbers above 0 for grid and block, saw {shape!r}")
    x, y, z = [*given, 1, 1][:3]
    return x, y, z


def _argument(value: Any, code: str, kernel: str, index: int) -> Any:
    """Return a ctypes object that holds the argument as the kernel's parameter wants it."""
    if code.startswith("p"):
        return _pointer(value, code[1:], kernel, index)
    if code in _SCALARS:
        return _SCALARS[code](value if code.startswith("f") else int(value))
    size = int(code[1:])
    raw = bytes(value) if isinstance(value, bytes | bytearray) else np.asarray(value).tobytes()
    if len(raw) != size:
        raise UsageError(f"expected {size} bytes for argument {index} of {kernel}, a struct, saw {len(raw)}", "give bytes or a numpy record")
    return (ctypes.c_char * size).from_buffer_copy(raw)


def _pointer(value: Any, element: str, kernel: str, index: int) -> Any:
    if value is None:
        return ctypes.c_void_p(0)
    if isinstance(value, int):
        return ctypes.c_void_p(value)
    if hasattr(value, "data_ptr"):
        if not value.is_cpu or not value.is_contiguous():
            raise UsageError(
                f"expected a contiguous tensor on the CPU for argument {index} of {kernel}, saw {value.device}, strides {value.stride()}"
            )
        kind = "f" if value.is_floating_point() else "i"
        _check_element(kind, value.element_size(), element, kernel, index)
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, np.ndarray):
        if not value.flags["C_CONTIGUOUS"]:
            raise UsageError(
                f"expected a contiguous array for argument {index} of {kernel}, saw strides {value.strides}", "pass np.ascontiguousarray(...)"
            )
        _check_element(value.dtype.kind, value.dtype.itemsize, element, kernel, index)
        return ctypes.c_void_p(value.ctypes.data)
    raise UsageError(f"expected an array, a tensor, an address or None for argument {index} of {kernel}, a pointer, saw {type(value).__name__}")


def _check_element(kind: str, size: int, element: str, kernel: str, index: int) -> None:
    if element[0] in "svp" or kind == "V" or (element[0] == "u" and size == 1) or element == "i1":
        return  # structs, void and bytes are the caller's business
    if int(element[1:]) != size or (element[0] == "f") != (kind == "f"):
        raise UsageError(f"expected an array of {element} (kind and bytes) for argument {index} of {kernel}, saw {kind}{size}")


def load(source: str, exports: Mapping[str, int], flags: Sequence[str] = FLAGS) -> dict[str, LoadedKernel]:
    """Build the source (cached) and return its kernels by name."""
    return open_library(native.build(source, flags=[*flags, "-w"]), exports)


def open_library(path: Path, exports: Mapping[str, int]) -> dict[str, LoadedKernel]:
    """Return the kernels of a built library."""
    library = native.load(path)
    library.ww_error.restype = ctypes.c_char_p
    checked = hasattr(library, "ww_findings")
    if checked:
        library.ww_findings.restype = ctypes.c_char_p
    loaded = {}
    for name, number in exports.items():
        function, signature = library[f"ww_run_{number}"], library[f"ww_signature_{number}"]
        function.argtypes = [ctypes.POINTER(ctypes.c_uint), ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
        signature.restype = ctypes.c_char_p
        loaded[name] = LoadedKernel(name, function, tuple(signature().decode().split()), library.ww_error, library if checked else None)
    return loaded
