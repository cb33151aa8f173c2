"""Compile CUDA C++ by NVRTC and launch it through the CUDA driver: no nvcc, no headers, no torch extension at run time.

The machine code is cached by content in warpwright's cache folder. Launches go to the current device and to the stream they are given.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import struct
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpwright.base import digest
from warpwright.errors import UsageError, WarpwrightError
from warpwright.native import BuildError, cache_folder
from warpwright.native.kept import _ours

# --- generated programs hold what follows


class DriverError(WarpwrightError):
    """A call of the CUDA driver failed."""


@functools.cache
def nvrtc() -> ctypes.CDLL:
    """Return NVIDIA's run-time compiler: from its registry package, else from the system."""
    names = [str(path) for folder in sys.path if folder for path in sorted(Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))]
    names += [name for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", ctypes.util.find_library("nvrtc")) if name]
    for name in names:
        for helper in Path(name).parent.glob("libnvrtc-builtins.so.*") if "/" in name else ():
            ctypes.CDLL(str(helper))  # libnvrtc opens it by name, outside the loader's path
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise UsageError("expected NVIDIA's run-time compiler libnvrtc, saw none", "pip install nvidia-cuda-nvrtc")


@functools.cache
def nvrtc_version() -> tuple[int, int]:
    """Return (major, minor)."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def machine_code(text: str, arch: str, defines: Sequence[str] = ()) -> bytes:
    """Return the cubin of CUDA `text` for `arch`, such as "90a"; compiled once for each text, options and compiler. Needs no GPU."""
    options = [f"--gpu-architecture=sm_{arch}", "--std=c++17", "-default-device", *(f"-D{define}" for define in defines)]
    kept = cache_folder() / f"{digest(str(nvrtc_version()), text, *options)}.cubin"
    if kept.exists() and _ours(kept):
        return kept.read_bytes()
    code = by_nvrtc(text, options)
    with tempfile.NamedTemporaryFile(dir=cache_folder(), delete=False) as file:
        file.write(code)
    os.replace(file.name, kept)  # atomic: two builders of the same text are no race
    return code


def by_nvrtc(
    text: str, options: Sequence[str], wanted: str = "CUBIN", what: str = "a template", remedy: str = "report this with the text above"
) -> bytes:
    """Return what NVRTC makes of CUDA `text`, CUBIN or PTX. Raises BuildError, with its last words, where it refuses `what` this is."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"source.cu", 0, None, None)
    given = [option.encode() for option in options]
    try:
        failed = library.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        library.nvrtcGetProgramLog(program, log)
        if failed:
            raise BuildError(f"NVRTC refused {what}:\n{log.value.decode(errors='replace')[-2000:]}", remedy)
        getattr(library, f"nvrtcGet{wanted}Size")(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        getattr(library, f"nvrtcGet{wanted}")(program, code)
        return code.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def driver() -> ctypes.CDLL:
    """Return the CUDA driver."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise UsageError(f"expected the CUDA driver libcuda.so.1, saw {error}", "run this on a machine with an NVIDIA GPU") from None


def check(code: int, what: str) -> None:
    """Raise DriverError where a call of the driver failed."""
    if code:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(code, ctypes.byref(text))
        raise DriverError(f"{what} failed with error {code}: {(text.value or b'unknown').decode()}", "look at the arguments of the launch")


def on_its_device(function: Any) -> Any:
    """Return `function` of a tensor and more, called with the tensor's GPU as the current one: kernels are launched there, by its stream."""
    import torch

    @functools.wraps(function)
    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not x.is_cuda or x.get_device() == torch.cuda.current_device():
            return function(x, *args, **kwargs)
        with torch.cuda.device(x.device):
            return function(x, *args, **kwargs)

    return called


NO_CONTEXT = 201
"""What the driver says to a thread that has not used a GPU yet, such as autograd's at its first launch."""


def own_context() -> ctypes.c_void_p:
    """Return this thread's context; where it has none it gets the one that torch has on its current device."""
    found, device = ctypes.c_void_p(), ctypes.c_int()
    check(driver().cuCtxGetCurrent(ctypes.byref(found)), "asking for the thread's context")
    if not found:
        import torch

        check(driver().cuDeviceGet(ctypes.byref(device), torch.cuda.current_device()), "asking for the device")
        check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(found), device), "asking for the device's context")
        check(driver().cuCtxSetCurrent(found), "giving the thread a context")
    return found


class Kernel:
    """A kernel of a loaded module: `kernel(grid, stream, *arguments)`."""

    def __init__(self, code: bytes, name: str, formats: Sequence[str], block: int, shared: int = 0, cooperative: bool = False) -> None:
        """Load `name` from machine code into the current context.

        `formats` has a code of the struct module for each parameter: P an address, i an int, q a long long, f a float, 128s a struct of 128 bytes.
        `shared` is dynamic shared memory in bytes. A `cooperative` launch has all blocks resident at once, or is refused.
        """
        self.name, self.shape, self.lock, self.cooperative = name, (block, 1, 1, shared), threading.Lock(), cooperative
        self.layout = struct.Struct("".join(formats))
        self.room = ctypes.create_string_buffer(self.layout.size + 64)
        self.start = -ctypes.addressof(self.room) % 64
        ends = [struct.calcsize("".join(formats[: count + 1])) for count in range(len(formats))]
        offsets = [end - struct.calcsize(code) for end, code in zip(ends, formats, strict=True)]
        self.places = (ctypes.c_void_p * len(formats))(*(ctypes.addressof(self.room) + self.start + offset for offset in offsets))
        self.module, self.function, self.context = ctypes.c_void_p(), ctypes.c_void_p(), own_context()
        check(driver().cuModuleLoadData(ctypes.byref(self.module), code), f"loading {name}")
        check(driver().cuModuleGetFunction(ctypes.byref(self.function), self.module, name.encode()), f"finding {name}")
        if shared > 48 * 1024:
            check(driver().cuFuncSetAttribute(self.function, 8, shared), f"asking for {shared} bytes of shared memory for {name}")

    def __call__(self, grid: int, stream: int, *arguments: Any) -> None:
        """Launch on `stream` (a cudaStream_t as an int)."""
        with self.lock:  # the driver copies the arguments before it returns
            self.layout.pack_into(self.room, self.start, *arguments)
            rest = () if self.cooperative else (None,)
            self.launched(_launcher(self.cooperative), grid, 1, 1, *self.shape, stream, self.places, *rest)

    def launched(self, launch: Any, *given: Any) -> None:
        """Launch by one of the driver's calls, which a thread without a context repeats in the kernel's."""
        code = launch(self.function, *given)
        if code == NO_CONTEXT and not driver().cuCtxSetCurrent(self.context):
            code = launch(self.function, *given)
        check(code, f"launching {self.name}")


@functools.cache
def _launcher(cooperative: bool = False) -> Any:
    launch = driver().cuLaunchCooperativeKernel if cooperative else driver().cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * (2 if cooperative else 3)]
    return launch


@functools.lru_cache(maxsize=4096)
def tensor_map(address: int, sizes: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...], item: int = 1) -> bytes:
    """Return the bulk copy engine's description of a tensor of `item` bytes an element, 1 or 2, and `sizes`, the contiguous axis first.

    `strides`: bytes from one element to the next along the other axes. It is copied in boxes of `box` elements, 128 bytes wide, with the 128-byte
    swizzle; what lies outside is zero.
    """
    room = bytearray(192)
    start = -ctypes.addressof((ctypes.c_char * 192).from_buffer(room)) % 64  # the driver wants 64-byte alignment
    held = (ctypes.c_char * 128).from_buffer(room, start)
    u64, u32, axes = ctypes.c_uint64, ctypes.c_uint32, len(sizes)
    code = driver().cuTensorMapEncodeTiled(
        ctypes.byref(held), item - 1, axes, ctypes.c_void_p(address), (u64 * axes)(*sizes), (u64 * (axes - 1))(*strides),
        (u32 * axes)(*box), (u32 * axes)(*[1] * axes), 0, 3, 3, 0,
    )  # fmt: skip
    check(code, f"describing a tensor of {sizes} elements of {item} bytes")
    return bytes(held)
