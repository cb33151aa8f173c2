"""Load a translated program and launch its kernels on numpy arrays and torch tensors of the CPU."""

from __future__ import annotations

import ctypes
import functools
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpwright import native
from warpwright.domains.transpile.errors import BadArgument, BadValue, LaunchFailed
from warpwright.domains.transpile.launch.declared import define_missing
from warpwright.domains.transpile.launch.findings import Finding, findings, notes
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
        return findings(self._reported())

    def notes(self) -> list[Finding]:
        """Return what the sanitizer says of the last launch that is no bug: same-value writes."""
        return notes(self._reported())

    def _reported(self) -> str:
        if self.library is None:
            raise UsageError(f"expected a program that was compiled with sanitize=True, saw one without, for {self.name}")
        return str(self.library.ww_findings().decode())

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

    @functools.cached_property
    def spare(self) -> list[_Frame]:
        """Frames of calls that have ended: what a call makes anew costs more than a small kernel."""
        return []

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel; arrays are changed in place."""
        kernel = self.kernel
        try:
            frame = self.spare.pop()  # a frame of its own for each thread that calls
        except IndexError:
            frame = _Frame(kernel.codes)
        self._fill(frame, arguments)
        if kernel.library is not None:
            _watch(kernel.library, arguments)
        if kernel.function(ctypes.addressof(self.given_shape), self.shared, frame.address):
            raise LaunchFailed(f"{kernel.name} failed: {kernel.error().decode()}")
        self.spare.append(frame)

    def prepared(self, *arguments: Any) -> Callable[[], None]:
        """Return a call without arguments that runs the kernel on these, which are looked at once, here, and kept; one thread at a time may call it.

        Arrays must stay where they are: an array that is resized, or a tensor whose storage is, is not seen.
        """
        kernel, frame = self.kernel, _Frame(self.kernel.codes)
        self._fill(frame, arguments)
        function, shape, shared, address = kernel.function, ctypes.addressof(self.given_shape), self.shared, frame.address

        def launch(kept: tuple[Any, ...] = (self, frame, *arguments)) -> None:
            if kernel.library is not None:
                _watch(kernel.library, arguments)
            if function(shape, shared, address):
                raise LaunchFailed(f"{kernel.name} failed: {kernel.error().decode()}")

        return launch

    def _fill(self, frame: _Frame, arguments: Sequence[Any]) -> None:
        """Put the arguments into the places of a call. Raises BadArgument and BadValue."""
        kernel = self.kernel
        if len(arguments) != len(kernel.codes):
            raise BadArgument(f"expected {len(kernel.codes)} arguments of {kernel.name}, saw {len(arguments)}")
        for index, (place, code, value) in enumerate(zip(frame.places, kernel.codes, arguments, strict=True)):
            place.value = _pointer(value, code[1:], kernel.name, index) if code[0] == "p" else _scalar(value, code, kernel.name, index)


class _Frame:
    """Places for the arguments of one call, and the addresses of these places, as the library takes them."""

    __slots__ = ("address", "places", "pointers")

    def __init__(self, codes: Sequence[str]) -> None:
        self.places = [_place(code) for code in codes]
        self.pointers = (ctypes.c_void_p * max(len(codes), 1))(*map(ctypes.addressof, self.places))
        self.address = ctypes.addressof(self.pointers)


def _place(code: str) -> Any:
    """Return a ctypes object that holds what the kernel's parameter wants."""
    if code[0] == "p":
        return ctypes.c_void_p()
    return _SCALARS[code]() if code in _SCALARS else (ctypes.c_char * int(code[1:]))()


def _watch(library: Any, arguments: Sequence[Any]) -> None:
    """Tell the sanitizer which arrays there are."""
    library.ww_forget()
    for value in arguments:
        size = 0 if isinstance(value, np.generic) else getattr(value, "nbytes", 0)
        if size:
            address = value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data
            library.ww_watch(ctypes.c_void_p(address), ctypes.c_size_t(size))


def _three(shape: Shape) -> tuple[int, int, int]:
    numbers = [int(shape)] if isinstance(shape, int | np.integer) else [int(n) for n in shape]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise BadValue(f"expected one to three numbers above 0 for grid and block, saw {shape!r}")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def _scalar(value: Any, code: str, kernel: str, index: int) -> Any:
    """Return the argument, a number or a struct, as the place for it takes it."""
    if code in _SCALARS:
        return _number(value, code, kernel, index)
    size = int(code[1:])
    raw = bytes(value) if isinstance(value, bytes | bytearray) else np.asarray(value).tobytes()
    if len(raw) != size:
        raise BadValue(f"expected {size} bytes for argument {index} of {kernel}, a struct, saw {len(raw)}", "give bytes or a numpy record")
    return raw


def _number(value: Any, code: str, kernel: str, index: int) -> Any:
    """Return a number that the parameter can hold; raise BadArgument for another kind, BadValue for one out of range."""
    if code[0] == "f":
        if isinstance(value, float | int | np.number | np.bool_):
            return float(value)
    elif code == "b1":
        if isinstance(value, bool | int | np.bool_ | np.integer):
            return bool(value)
    else:
        try:
            whole = operator.index(value)
        except TypeError:
            whole = None
        if whole is not None:
            low, high = _ranges()[code]
            if low <= whole <= high:
                return whole
            raise BadValue(f"expected {low} to {high} for argument {index} of {kernel}, saw {whole}")
    what = "a number" if code[0] == "f" else "a truth value" if code == "b1" else "a whole number"
    raise BadArgument(f"expected {what} for argument {index} of {kernel}, saw {value!r:.60}")


@functools.cache
def _ranges() -> Mapping[str, tuple[int, int]]:
    """Return what each kind of whole number holds."""
    bits = {code: 8 * int(code[1:]) for code in _SCALARS if code[0] in "iu"}
    return {code: (-(1 << n - 1), (1 << n - 1) - 1) if code[0] == "i" else (0, (1 << n) - 1) for code, n in bits.items()}


def _pointer(value: Any, element: str, kernel: str, index: int) -> int:
    """Return the address of the argument's first element."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise BadValue(
                f"expected a contiguous array for argument {index} of {kernel}, saw strides {value.strides}", "pass np.ascontiguousarray(...)"
            )
        if not _fits(value.dtype, element):
            raise _other_element(value.dtype.kind, value.dtype.itemsize, element, kernel, index)
        return _address(value)
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not hasattr(value, "data_ptr"):
        if hasattr(value, "__dlpack__"):
            return _pointer(np.from_dlpack(value), element, kernel, index)
        raise BadArgument(f"expected an array, a tensor, an address or None for argument {index} of {kernel}, a pointer, saw {type(value).__name__}")
    if not value.is_cpu or not value.is_contiguous():
        raise BadValue(f"expected a contiguous tensor on the CPU for argument {index} of {kernel}, saw {value.device}, strides {value.stride()}")
    if not _fits(value.dtype, element):
        raise _other_element("f" if value.is_floating_point() else "i", value.element_size(), element, kernel, index)
    return int(value.data_ptr())


def _address(array: Any) -> int:
    """Return where an array begins: `array.ctypes.data` takes 1.1 us, this 0.4, but not of arrays that are empty or may not be written."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        return int(array.ctypes.data)


@functools.lru_cache
def _fits(kind: Any, element: str) -> bool:
    """Say whether elements of a dtype of numpy or torch are those of the pointer."""
    if element[0] in "svp" or element in ("u1", "i1") or getattr(kind, "kind", "") == "V":
        return True  # structs, void and bytes are the caller's business
    real = kind.kind == "f" if isinstance(kind, np.dtype) else kind.is_floating_point
    return int(element[1:]) == kind.itemsize and (element[0] == "f") == real


def _other_element(kind: str, size: int, element: str, kernel: str, index: int) -> BadArgument:
    return BadArgument(f"expected an array of {element} (kind and bytes) for argument {index} of {kernel}, saw {kind}{size}")


def load(source: str, exports: Mapping[str, int], flags: Sequence[str] = FLAGS) -> dict[str, LoadedKernel]:
    """Build the source (cached) and return its kernels by name."""
    return open_library(built(source, flags), exports)


def built(source: str, flags: Sequence[str] = FLAGS) -> Path:
    """Build the source (cached) and return its library."""
    return native.build(source, flags=[*flags, "-w", "-Wl,-z,lazy"])


@functools.cache
def _opened(path: Path) -> ctypes.CDLL:
    """Return a library whose functions are looked for when they are called: the host functions of one file of a project call those of others,
    which kernels do not need. A kernel that calls one fails. Raises BuildError."""
    system = ctypes.CDLL(None)
    system.dlopen.argtypes, system.dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    if handle := system.dlopen(os.fsencode(path), os.RTLD_NOW):
        return ctypes.CDLL(str(path), handle=handle)
    if handle := system.dlopen(os.fsencode(path), os.RTLD_LAZY):
        library = ctypes.CDLL(str(path), handle=handle)
        define_missing(path, library)
        return library
    try:
        return native.load(path)
    except OSError as error:
        raise native.BuildError(f"the built kernels cannot be loaded: {error}", "leave out what the file only declares") from error


def open_library(path: Path, exports: Mapping[str, int]) -> dict[str, LoadedKernel]:
    """Return the kernels of a built library."""
    library = _opened(path)
    library.ww_error.restype = ctypes.c_char_p
    checked = hasattr(library, "ww_findings")
    if checked:
        library.ww_findings.restype = ctypes.c_char_p
    loaded = {}
    for name, number in exports.items():
        function, signature = library[f"ww_run_{number}"], library[f"ww_signature_{number}"]
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        signature.restype = ctypes.c_char_p
        loaded[name] = LoadedKernel(name, function, tuple(signature().decode().split()), library.ww_error, library if checked else None)
    return loaded
