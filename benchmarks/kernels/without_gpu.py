"""Programs called on meta tensors: each launch of a kernel is compiled for Hopper as its launcher would have it compiled, and none runs.

What a launch is found to be is a `Launch`: what a thread and a block of it need, and what an H200 would refuse of that, or the kernel of its
arguments. Triton's own binder gives the arguments their types and their specialisation (a meta tensor's address is 0, so it counts as aligned, as
what torch's allocator gives out), its own compiler and NVRTC make the machine code, and cuobjdump, which comes with Triton, says what it needs.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from warpwright.domains.graph.kernels.sound import lost_constants
from warpwright.domains.sass.code.cubin import Cubin

SHARED_BYTES = 227 << 10
"""Of a block on compute capability 9.0, at most; a kernel of ours that is no Triton kernel asks for none of it when it is launched."""
STATIC_BYTES = 48 << 10
REGISTERS = 64 << 10
"""Of a multiprocessor: a block whose threads need more together cannot be launched."""
THREADS, GRID, GRID_BESIDE = 1024, 2**31 - 1, 65535
CAPABILITY, WARP, MULTIPROCESSORS = 90, 32, 132
TARGET_TEXT = "90"
"""As torch names the capability of an H200 to `_CudaKernels.machine_code`."""


@dataclass(frozen=True)
class Launch:
    """A launch of a compiled kernel."""

    kernel: str
    language: str
    """cuda or triton."""
    blocks: tuple[int, ...]
    threads: int
    registers: int
    local_bytes: int
    """Of each thread's own memory: what is spilled, and arrays whose index is not known."""
    shared_bytes: int
    seconds: float
    """Of compiling; what was compiled before takes none."""
    problems: tuple[str, ...] = ()
    """Why it could not be launched, or would compute something else."""

    def row(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


@dataclass
class Record:
    """The launches of a program, in order; of those that are equal in all but time, the first."""

    launches: list[Launch] = field(default_factory=list)
    count: int = 0
    _seen: set[Any] = field(default_factory=set)

    def add(self, launch: Launch) -> None:
        """Take down a launch."""
        self.count += 1
        key = (launch.kernel, launch.blocks, launch.threads, launch.registers, launch.shared_bytes, launch.local_bytes, launch.problems)
        if key not in self._seen:
            self._seen.add(key)
            self.launches.append(launch)


# --- what a kernel needs ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Needs:
    """What machine code says of a kernel."""

    registers: int
    local_bytes: int
    shared_bytes: int
    parameters: int
    lost: int = 0
    """Constants that ptxas lost, of all kernels of its cubin."""


def needs_of(code: bytes) -> dict[str, Needs]:
    """Return what each kernel of a cubin needs."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        said = subprocess.run([_cuobjdump(), "--dump-resource-usage", file.name], capture_output=True, text=True, timeout=60, check=True).stdout
    cubin, found, gone = Cubin(code), {}, lost_constants(code)
    for name, stack, registers, shared, local in _said(said):
        found[name] = Needs(registers, stack + local, shared, len(cubin.parameters(name)), gone)
    return found


def _said(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield (kernel, stack, registers, shared, local) of what cuobjdump prints."""
    for name, line in re.findall(r"Function (\S+):\s*\n\s*(.*)", text):
        numbers = {key: int(number) for key, number in re.findall(r"(\w+):(\d+)", line)}
        yield name, numbers["STACK"], numbers["REG"], numbers["SHARED"], numbers["LOCAL"]


@cache
def _cuobjdump() -> str:
    import triton

    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump")


def problems_of(needs: Needs, blocks: tuple[int, ...], threads: int, shared: int, most_shared: int) -> list[str]:
    """Return why an H200 would refuse such a launch, or compute something else."""
    found = [f"{needs.lost} packed additions of its cubin have lost their constants"] if needs.lost else []
    if shared > most_shared:
        found.append(f"{shared} bytes of shared memory, of which a block may have {most_shared}")
    if needs.registers * threads > REGISTERS:
        found.append(f"{threads} threads of {needs.registers} registers, of which a multiprocessor has {REGISTERS}")
    if not 0 < threads <= THREADS:
        found.append(f"{threads} threads a block, which may have 1 to {THREADS}")
    for size, most in zip(blocks, (GRID, GRID_BESIDE, GRID_BESIDE), strict=False):
        if not 0 < size <= most:
            found.append(f"a grid of {blocks}, whose sides may be 1 to {GRID}, {GRID_BESIDE} and {GRID_BESIDE}")
            break
    return found


# --- kernels of ours in CUDA -----------------------------------------------------------------------------------------------------------


class CudaWithoutGpu:
    """Stands in for CUDA_KERNELS of a generated file: its text is compiled at the first launch, and each launch is looked at."""

    def __init__(self, real: Any, record: Record) -> None:
        self.real, self.record = real, record
        self.shapes: Mapping[str, tuple[int, int, int]] = real.shapes
        self.needs: dict[str, Needs] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def usable(self, tensor: Any) -> bool:
        """There are kernels for every tensor."""
        return True

    @staticmethod
    def current(tensor: Any) -> int:
        """No table of launches is gone through in C: its kernels are launched one by one."""
        return -1

    @staticmethod
    def aligned(*tensors: Any) -> list[Any]:
        """Return the tensors: none has an address."""
        return list(tensors)

    def launch(self, name: str, tensor: Any, *pointers: int) -> None:
        """Take down a launch. RuntimeError, with NVRTC's reasons, where the text does not compile."""
        began = time.monotonic()
        if self.needs is None:
            self.needs = needs_of(self.real.machine_code(TARGET_TEXT))
        seconds = time.monotonic() - began
        count, blocks, threads = self.shapes[name]
        needs = self.needs.get(name)
        if needs is None:
            self.record.add(Launch(name, "cuda", (blocks,), threads, 0, 0, 0, seconds, (f"no such kernel among {sorted(self.needs)}",)))
            return
        problems = problems_of(needs, (blocks,), threads, needs.shared_bytes, STATIC_BYTES)
        if not len(pointers) == count == needs.parameters:
            problems.append(f"{len(pointers)} pointers are given, {count} are packed, and the kernel takes {needs.parameters}")
        launch = Launch(name, "cuda", (blocks,), threads, needs.registers, needs.local_bytes, needs.shared_bytes, seconds, tuple(problems))
        self.record.add(launch)


def tables_of(names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (table, what is wrong) of a generated file's tables of launches: a step that gives a kernel more or fewer pointers than it takes."""
    shapes = getattr(names.get("CUDA_KERNELS"), "shapes", {})
    for table, plan in names.items():
        for kernel, size, pointers in getattr(plan, "steps", ()) if table.endswith("_table") else ():
            if kernel and (kernel not in shapes or shapes[kernel][0] != len(pointers)):
                yield table, f"{kernel} is given {len(pointers)} pointers and takes {shapes.get(kernel, ('none of this name',))[0]}"
            if not kernel and (len(pointers) != 1 or size <= 0):
                yield table, f"{size} bytes at {len(pointers)} pointers are set to zero"


# --- Triton's --------------------------------------------------------------------------------------------------------------------------


class Driver:
    """Stands in for Triton's driver of a GPU: there is one, it is Hopper, and nothing can be launched on it."""

    @staticmethod
    def get_current_target() -> Any:
        """Return what is compiled for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY, WARP)

    @staticmethod
    def get_current_device() -> int:
        """Return the first GPU."""
        return 0

    @staticmethod
    def get_current_stream(device: int) -> int:
        """Return the usual stream."""
        return 0


@contextmanager
def as_if_on_a_gpu() -> Iterator[None]:
    """Inside, every tensor says that it lies on a GPU, which is the current one and an H200: kernels are chosen by that.

    But for its capability, which those ask for that have a driver of their own (`templates/driver.py`): they take the way of any other GPU.
    """
    import torch

    chip = SimpleNamespace(multi_processor_count=MULTIPROCESSORS, major=9, minor=0, name="NVIDIA H200")
    told = {"current_device": lambda: -1, "get_device_properties": lambda *_: chip, "get_device_capability": lambda *_: (0, 0)}
    told |= {"is_current_stream_capturing": lambda: False}
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(torch.Tensor, "is_cuda", True))
        patches.enter_context(mock.patch.object(torch, "is_autocast_enabled", lambda *_: False))  # which knows no meta device
        for name, answer in told.items():
            patches.enter_context(mock.patch.object(torch.cuda, name, answer))
        yield


@contextmanager
def recorded(record: Record) -> Iterator[None]:
    """Inside, launches of Triton kernels are compiled for Hopper and taken down, and none runs. What Triton says against a launch is raised."""
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    run, again = JITFunction.run, CompiledKernel.__getitem__

    def compiled(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        began = time.monotonic()
        made = run(self, *args, grid=grid, warmup=True, **options)
        blocks = tuple(grid(dict(zip(self.arg_names, args, strict=False))) if callable(grid) else grid)
        record.add(_triton_launch(made, blocks, time.monotonic() - began))
        return made

    def kept(self: Any, grid: tuple[int, ...]) -> Callable[..., None]:
        def runner(*args: Any, stream: Any = None) -> None:
            if len(args) != len(self.src.fn.arg_names):
                raise TypeError(f"{self.name} is launched again with {len(args)} arguments and takes {len(self.src.fn.arg_names)}")
            record.add(_triton_launch(self, grid, 0.0))

        return runner

    before = driver._active
    JITFunction.run, CompiledKernel.__getitem__ = compiled, kept
    driver.set_active(Driver())
    try:
        with as_if_on_a_gpu():
            yield
    finally:
        JITFunction.run, CompiledKernel.__getitem__ = run, again
        driver.set_active(before)


_NEEDS: dict[str, Needs] = {}
"""By the hash of what was compiled."""


def _triton_launch(made: Any, blocks: tuple[int, ...], seconds: float) -> Launch:
    if made.hash not in _NEEDS:
        _NEEDS[made.hash] = next(iter(needs_of(made.asm["cubin"]).values()))
    needs, threads, shared = _NEEDS[made.hash], made.metadata.num_warps * WARP, made.metadata.shared
    problems = problems_of(needs, blocks, threads, shared, SHARED_BYTES)
    return Launch(made.name, "triton", tuple(map(int, blocks)), threads, needs.registers, needs.local_bytes, shared, seconds, tuple(problems))
