"""How a generated file builds and launches its CUDA kernels: NVIDIA's run-time compiler and the driver, by ctypes, with torch alone beside them.

It follows `templates/driver.py`, but never raises where something is missing: the file then warns and falls back to plain torch calls.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, type-arg"

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from warpwright.native import kept
from warpwright.native.kept import _folders, _ours

MARK = "# --- generated programs hold what follows\n"


def loader(source: str, shapes: Mapping[str, tuple[int, int, int]]) -> str:
    """Return Python text that binds CUDA_KERNELS to the kernels of `source`. `shapes`: pointers, blocks and threads of a block of each."""
    shape_texts = ", ".join(f'"{name}": {shape}' for name, shape in shapes.items())
    body = kept.text() + Path(__file__).read_text().split(MARK)[-1].strip("\n")
    return f"CUDA_SOURCE = r'''\n{source}'''\n\n\n{body}\n\n\nCUDA_KERNELS = _CudaKernels(CUDA_SOURCE, {{{shape_texts}}})\n\n\n"


# --- generated programs hold what follows
import ctypes as _c  # noqa: E402
import hashlib as _hashlib  # noqa: E402
import os as _os  # noqa: E402
import pathlib as _pathlib  # noqa: E402
import struct as _struct  # noqa: E402
import sys as _sys  # noqa: E402
import tempfile as _tempfile  # noqa: E402
import threading as _threads  # noqa: E402
import warnings as _warn  # noqa: E402

import torch  # noqa: E402


class _LaunchConfig(_c.Structure):
    """CUlaunchConfig: grid, block, bytes of dynamic shared memory, stream, attributes."""

    _fields_ = (
        *((name, _c.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("stream", _c.c_void_p), ("attributes", _c.c_void_p), ("count", _c.c_uint),
    )  # fmt: skip


def _plain_empty(sizes, strides, kind):
    return torch.empty_strided(sizes, strides, dtype=kind, device="cuda")


_empty_on_gpu = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cuda", _plain_empty)
"""A new tensor on the current GPU, by torch's own short way where it has one."""


class _CudaKernels:
    """The kernels of a CUDA text. They are built at the first call, for the GPU that the call is on, and kept on disk."""

    def __init__(self, text, shapes):
        """`shapes`: how many pointers each kernel takes, how many blocks it has, and how many threads a block."""
        self.text, self.shapes, self.lock = text, shapes, _threads.Lock()
        self.devices = {}  # index of a GPU -> its launchers by name; None where they could not be built
        self.contexts = {}  # index of a GPU -> the context that they belong to

    def usable(self, tensor):
        """Are there kernels for the GPU that the tensor lies on?"""
        index = tensor.get_device()
        if index < 0:
            return False  # on a CPU
        if index not in self.devices:
            with self.lock:
                if index not in self.devices:
                    self.devices[index] = self.load(tensor.device)
        return self.devices[index] is not None

    def launch(self, name, tensor, *pointers):
        """Launch a kernel on the current stream of the tensor's GPU."""
        index = tensor.get_device()
        if index != torch._C._cuda_getDevice():
            with torch.cuda.device(index):
                return self.launch(name, tensor, *pointers)
        kernel, pack, room, places, config, at = self.devices[index][name]
        with self.lock:  # the driver copies the arguments before it returns
            pack(room, 0, *pointers)
            config.stream = torch._C._cuda_getCurrentRawStream(index)
            failed = self.driver.cuLaunchKernelEx(at, kernel, places, None)
            if failed == 201 and not self.driver.cuCtxSetCurrent(self.contexts[index]):  # a thread that has not used this GPU yet
                failed = self.driver.cuLaunchKernelEx(at, kernel, places, None)
        if failed:
            raise RuntimeError(f"launching {name} failed: {self.reason(failed)}")
        return None

    # --- for whoever launches several at once ---

    @staticmethod
    def current(tensor):
        """Return the index of the GPU that the tensor lies on, where that is the current one; else -1."""
        index = tensor.get_device()
        return index if index >= 0 and index == torch._C._cuda_getDevice() else -1

    @staticmethod
    def stream(index):
        """Return the current stream of a GPU."""
        return torch._C._cuda_getCurrentRawStream(index)

    fresh = staticmethod(_empty_on_gpu)

    def handles(self, index):
        """Return the driver's functions for a table of launches with their context, and of each kernel its handle, blocks and threads."""
        names = ("cuLaunchKernel", "cuMemsetD8Async", "cuCtxSetCurrent", "cuLaunchKernelEx")
        launch, clear, choose, launch_early = map(self.address, names)
        kernels = {name: (kernel, *self.shapes[name][1:]) for name, (kernel, *_) in self.devices[index].items()}
        return [launch, clear, choose, self.contexts[index].value, launch_early], kernels

    def address(self, name):
        """Return the address of one of the driver's functions; 0 where it lacks it."""
        return _c.cast(getattr(self.driver, name), _c.c_void_p).value if hasattr(self.driver, name) else 0

    def overlaps(self, index):
        """May a kernel that waits for the one before begin while that still runs? From compute capability 9.0 on, by drivers whose graphs know it."""
        return torch.cuda.get_device_capability(index) >= (9, 0) and hasattr(self.driver, "cuGraphAddDependencies_v2")

    def graphs(self):
        """Return the driver's functions with which a table of launches becomes a CUDA graph; nothing where it lacks one."""
        names = (
            "cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphAddMemsetNode", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2",
            "cuGraphExecMemsetNodeSetParams", "cuGraphLaunch", "cuStreamIsCapturing",
        )  # fmt: skip
        found = [self.address(name) for name in names]
        return [*found, self.address("cuGraphAddDependencies_v2")] if all(found) else []

    @staticmethod
    def aligned(*tensors):
        """Return the tensors, those whose address is no multiple of 16 bytes as copies."""
        return [_CudaKernels.laid(tensor, tensor.stride(), True) if tensor.data_ptr() % 16 else tensor for tensor in tensors]

    @staticmethod
    def laid(tensor, strides, copy=False):
        """Return the tensor with these strides, as a copy where it has others."""
        if tensor.stride() == strides and not copy:
            return tensor
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)

    def reason(self, code):
        """Return the driver's text for an error."""
        text = _c.c_char_p()
        self.driver.cuGetErrorString(code, _c.byref(text))
        return f"error {code}: {(text.value or b'unknown').decode()}"

    def load(self, device):
        """Build and load all kernels for one GPU."""
        try:
            self.driver = _c.CDLL("libcuda.so.1")
            self.driver.cuLaunchKernelEx.argtypes = [_c.c_void_p] * 4
            code = self.machine_code("{}{}".format(*torch.cuda.get_device_capability(device)))
        except (OSError, RuntimeError) as error:
            _warn.warn(f"the fused kernels run as plain torch calls, which is slower: {error}", RuntimeWarning, stacklevel=2)
            return None
        found = {}
        with torch.cuda.device(device):
            module, self.contexts[device.index] = _c.c_void_p(), self.context(device.index)
            failed = self.driver.cuModuleLoadData(_c.byref(module), code)
            for name, (count, grid, block) in self.shapes.items():
                kernel, room = _c.c_void_p(), (_c.c_uint64 * count)()
                failed = failed or self.driver.cuModuleGetFunction(_c.byref(kernel), module, name.encode())
                places = (_c.c_void_p * count)(*(_c.addressof(room) + 8 * i for i in range(count)))
                config = _LaunchConfig(grid, 1, 1, block, 1, 1)
                found[name] = kernel.value, _struct.Struct(f"{count}Q").pack_into, room, places, config, _c.addressof(config)
        if failed:
            _warn.warn(f"the fused kernels run as plain torch calls, which is slower: {self.reason(failed)}", RuntimeWarning, stacklevel=2)
            return None
        return found

    def context(self, index):
        """Return torch's context of a GPU, which becomes this thread's where it has none: torch sets it at a thread's first call."""
        context, place = _c.c_void_p(), _c.c_int()
        self.driver.cuCtxGetCurrent(_c.byref(context))
        if not context.value:
            self.driver.cuDeviceGet(_c.byref(place), index)
            self.driver.cuDevicePrimaryCtxRetain(_c.byref(context), place)
            self.driver.cuCtxSetCurrent(context)
        return context

    def machine_code(self, arch):
        """Return the kernels' machine code, from disk if an earlier run built it. RuntimeError without a compiler."""
        compiler = self.compiler()
        major, minor = _c.c_int(), _c.c_int()
        compiler.nvrtcVersion(_c.byref(major), _c.byref(minor))
        options = [f"--gpu-architecture=sm_{arch}", "--std=c++17", "-default-device", "--fmad=false"]
        key = _hashlib.sha256("\0".join([self.text, f"{major.value}.{minor.value}", *options]).encode()).hexdigest()[:24]
        for folder in _folders():
            code = folder / f"{key}.cubin"
            if code.exists() and _ours(code):
                return code.read_bytes()
        code = self.compiled(compiler, options)
        for folder in _folders():
            try:
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                with _tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                    file.write(code)
                _os.replace(file.name, folder / f"{key}.cubin")  # atomic: two builders of the same text are no race
                break
            except OSError:
                continue  # a folder that cannot be written
        return code

    def compiled(self, compiler, options):
        """Compile."""
        program, size = _c.c_void_p(), _c.c_size_t()
        compiler.nvrtcCreateProgram(_c.byref(program), self.text.encode(), b"kernels.cu", 0, None, None)
        try:
            failed = compiler.nvrtcCompileProgram(program, len(options), (_c.c_char_p * len(options))(*(o.encode() for o in options)))
            if failed:
                compiler.nvrtcGetProgramLogSize(program, _c.byref(size))
                log = _c.create_string_buffer(size.value + 1)
                compiler.nvrtcGetProgramLog(program, log)
                raise RuntimeError(f"NVRTC refused the fused kernels: {log.value.decode(errors='replace')[-2000:]}")
            compiler.nvrtcGetCUBINSize(program, _c.byref(size))
            code = _c.create_string_buffer(size.value)
            compiler.nvrtcGetCUBIN(program, code)
            return code.raw
        finally:
            compiler.nvrtcDestroyProgram(_c.byref(program))

    @staticmethod
    def compiler():
        """Return NVIDIA's run-time compiler, as torch's wheels bring it, or the system's."""
        names = [str(path) for folder in _sys.path if folder for path in sorted(_pathlib.Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))]
        for name in [*names, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]:
            try:
                for helper in sorted(_pathlib.Path(name).parent.glob("libnvrtc-builtins.so.*")) if "/" in name else ():
                    _c.CDLL(str(helper))  # libnvrtc opens it by name, outside the loader's path
                return _c.CDLL(name)
            except OSError:
                continue
        raise RuntimeError("there is no run-time compiler libnvrtc: pip install nvidia-cuda-nvrtc")
