"""`@warpwright.sass.tune`: a Triton kernel whose machine code is rescheduled at its first launch, and kept.

    @warpwright.sass.tune(seconds=30)
    @triton.jit
    def kernel(x, y, n, SIZE: tl.constexpr): ...

    kernel[grid](x, y, n, SIZE=256)          the first launch of each kind searches; all others load what it kept
    kernel.original[grid](x, y, n, SIZE=256)   Triton's own

A kind of launch is a cubin: its schedule lies in FOLDER/GPU_ptxas-VERSION/NAME_DIGEST.json with the digest of the cubin, so another shape, Triton,
ptxas or GPU never gets a schedule that was not made for it, and FOLDER/.../NAME_DIGEST.tuned.json says what was measured (also that nothing was
gained: it is not searched again). The search measures random arrays of the launch's sizes in a process of its own; the caller's are not touched. The
schedule gets to Triton through its inspection hook, for this kernel alone. Without a GPU, or with WARPWRIGHT_SASS=off, Triton's own code runs.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import subprocess
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpwright.base import digest, now
from warpwright.domains.sass import script, triton_kernels
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.code.kernel import read_kernel
from warpwright.errors import UsageError, WarpwrightError
from warpwright.files import write_whole
from warpwright.native import cache_folder
from warpwright.sass.polish import Polished, polish

SECONDS = 30.0
SWITCH = "WARPWRIGHT_SASS"

Polish = Callable[[Path, Path, str, float], Polished]
"""(cubin, harness, kernel, seconds) -> what came of it."""


def tune(kernel: Any = None, /, *, seconds: float = SECONDS, folder: str | Path | None = None, measure: Polish | None = None) -> Any:
    """Decorate a Triton kernel (under triton.autotune or not): its first launch of each kind searches its schedule for `seconds`.

    Args:
        kernel: the kernel, where the decorator is used without parentheses.
        seconds: of a search, at the first launch of each kind.
        folder: where schedules are kept; warpwright's cache otherwise.
        measure: searches in another way than on the GPU at hand.
    """
    if kernel is None:
        return functools.partial(tune, seconds=seconds, folder=folder, measure=measure)
    return Tuned(kernel, seconds, Path(folder) if folder is not None else cache_folder() / "sass", measure)


class Tuned:
    """A Triton kernel with schedules of its own."""

    def __init__(self, kernel: Any, seconds: float, folder: Path, measure: Polish | None) -> None:
        self.original, self.seconds, self.root, self.measure = kernel, seconds, folder, measure
        self.own, self.jit = own_copy(kernel, self._compiled)
        """The kernel as it is launched: what Triton compiles of it passes through the hook."""
        self.outcomes: dict[str, Polished] = {}
        """Kernel and digest of its cubin -> what came of it in this process."""
        self.settled: dict[int, Any] = {}
        """What Triton compiled, by identity, and is settled; kept, so that no other gets its identity."""
        self.places: dict[str, _Place] = {}
        self.lock = threading.RLock()
        self.__name__, self.__doc__ = getattr(kernel, "__name__", "kernel"), getattr(kernel, "__doc__", None)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Return what launches the kernel on a grid."""
        return functools.partial(self.run, grid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["original"], name)

    def run(self, grid: Any, *arguments: Any, **options: Any) -> Any:
        """Launch the kernel, with its schedule where there is one; search for one first where there was no launch of this kind before."""
        name = gpu()
        if not self._usable(name):
            return self.original[grid](*arguments, **options)
        compiled = self.own[grid](*arguments, **options)
        if id(compiled) not in self.settled:
            with self.lock:
                self._settle(self._place(name), compiled, grid, arguments, options)
                self.settled[id(compiled)] = compiled
        return compiled

    def _compiled(self, compile_: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Compile as Triton does, with the inspection hook set meanwhile."""
        with self.lock, self._place(gpu()).hooked():
            return compile_(*arguments, **options)

    def _usable(self, name: str) -> bool:
        if os.environ.get(SWITCH, "") == "off":
            return False
        if self.jit is None:
            warnings.warn(f"expected a kernel under triton.jit, saw {type(self.original).__name__}: it runs as it is", RuntimeWarning, stacklevel=4)
            return False
        if self.measure is None and name == "none":
            warnings.warn("expected an NVIDIA GPU to measure schedules on, saw none: Triton's own code runs as it is", RuntimeWarning, stacklevel=4)
            return False
        return True

    def _place(self, name: str) -> _Place:
        if name not in self.places:
            self.places[name] = _Place(self.root, name)
        return self.places[name]

    def _settle(self, place: _Place, compiled: Any, grid: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        image = bytes(compiled.asm[triton_kernels.STAGE])
        if place.knows(image):
            return
        name = f"{Cubin(image).kernels[0]}_{digest(image.hex())}"
        outcome = self._searched(place.of(image), compiled, grid, arguments, options)
        place.keep(image, outcome)
        self.outcomes[name] = outcome
        if outcome.kept:
            self.jit.device_caches.clear()  # what was compiled before holds Triton's own code

    def _searched(self, folder: Path, compiled: Any, grid: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Polished:
        name = Cubin(bytes(compiled.asm[triton_kernels.STAGE])).kernels[0]
        try:
            taken, sizes = launched(self.original, compiled, grid, arguments, options)
            harness = triton_kernels.write_harness(folder, compiled, sizes, taken)
        except WarpwrightError as error:
            return Polished(name, False, f"left as it is: {error}")
        cubin = harness.with_suffix(".cubin")
        cubin.write_bytes(bytes(compiled.asm[triton_kernels.STAGE]))
        return (self.measure or _on_this_gpu)(cubin, harness, name, self.seconds)


class _Place:
    """The schedules of one kind of GPU, a folder for each version of ptxas, and the hook that hands them to Triton."""

    def __init__(self, root: Path, gpu_name: str) -> None:
        self.root, self.gpu = root, re.sub(r"\W+", "_", gpu_name)
        self.state = self._state()

    def of(self, image: bytes) -> Path:
        """Return the folder of a cubin."""
        return self.root / f"{self.gpu}_ptxas-{ptxas_version(image)}"

    def _state(self) -> tuple[str, str]:
        folders = sorted(self.root.glob(f"{self.gpu}_ptxas-*")) if self.root.exists() else []
        told = digest(str(self.root.resolve()), self.gpu, *(triton_kernels.state(folder) for folder in folders))
        return told, repr(told)

    def inspect(self, *compilation: Any) -> tuple[str, str] | None:
        """What Triton calls: see triton_kernels.hook. The key is read once, not at every launch."""
        if not compilation:
            return self.state
        stages = compilation[1]
        if triton_kernels.STAGE in stages:
            compiled = stages[triton_kernels.STAGE]
            stages[triton_kernels.STAGE] = lambda source, metadata: self.edited(compiled(source, metadata))
        return None

    def edited(self, image: bytes) -> bytes:
        """Return a cubin with its schedule, where there is one."""
        folder = self.of(image)
        folder.mkdir(parents=True, exist_ok=True)
        return triton_kernels.edited(image, folder)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Have Triton ask this place while it compiles one kernel; then as it was."""
        from triton import knobs

        hook, folder = knobs.runtime.add_stages_inspection_hook, knobs.cache.dir
        knobs.runtime.add_stages_inspection_hook = self.inspect
        knobs.cache.dir = str(self.root.resolve() / "triton" / self.state[0])
        try:
            yield
        finally:
            knobs.runtime.add_stages_inspection_hook = hook
            knobs.cache.dir = folder

    def knows(self, image: bytes) -> bool:
        """Was a cubin searched before, or is it what such a search gave?"""
        folder, own = self.of(image), digest(image.hex())
        if any(folder.glob(f"*_{own}.tuned.json")):
            return True
        return any(json.loads(path.read_text())["loads"] == own for path in folder.glob("*.tuned.json"))

    def keep(self, image: bytes, outcome: Polished) -> None:
        """Write what came of a search; from then on Triton loads the schedule, if one is kept."""
        folder, name, own = self.of(image), Cubin(image).kernels[0], digest(image.hex())
        folder.mkdir(parents=True, exist_ok=True)
        loads = own
        if outcome.kept:
            write_whole(folder / f"{name}_{own}.json", outcome.schedule)
            loads = digest(script.read(outcome.schedule, read_kernel(Cubin(image), name)).cubin.data.hex())
        told = {"loads": loads, "gpu": self.gpu, "ptxas": ptxas_version(image), "when": now(), **asdict(outcome)}
        write_whole(folder / f"{name}_{own}.tuned.json", json.dumps(told, indent=1) + "\n")
        self.state = self._state()


def _on_this_gpu(cubin: Path, harness: Path, kernel: str, seconds: float) -> Polished:
    import torch

    return polish(cubin, harness, kernel, seconds, device=f"cubin:{torch.cuda.current_device()}")


def gpu() -> str:
    """Return the name of the current GPU, "none" without one."""
    import torch

    return _gpu_name(torch.cuda.current_device()) if torch.cuda.is_initialized() or torch.cuda.is_available() else "none"


@functools.cache
def _gpu_name(index: int) -> str:
    import torch

    return torch.cuda.get_device_name(index)


def ptxas_version(image: bytes) -> str:
    """Return the version of the ptxas that made a cubin: cubins of CUDA 13 say it, of others it is that of Triton's own ptxas; else "unknown"."""
    versions = re.findall(rb"release \d+\.\d+, V(\d+\.\d+\.\d+)", image)
    return versions[0].decode() if versions else _ptxas_of_triton(Cubin(image).arch)


@functools.cache
def _ptxas_of_triton(arch: int) -> str:
    try:
        from triton.backends.nvidia.compiler import get_ptxas_version

        said = get_ptxas_version(arch)
    except (ImportError, TypeError, OSError, subprocess.CalledProcessError):  # no Triton, one of another shape, or no ptxas
        return "unknown"
    version = re.search(r"V(\d+\.\d+\.\d+)", said)
    return version[1] if version else "unknown"


def launched(kernel: Any, compiled: Any, grid: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Return the arguments of a launch that are no constants of the compilation, in order, and the sizes of its grid."""
    names = list(compiled.src.signature)
    given = dict(zip(names, arguments, strict=False)) | {name: value for name, value in options.items() if name in names}
    constants = {names[path[0]]: value for path, value in compiled.src.constants.items() if len(path) == 1}
    bound = constants | given
    missing = [name for name in names if name not in bound]
    if missing:
        raise UsageError(f"expected the argument {missing[0]} in the launch, saw {', '.join(given)}", "pass it")
    taken = [bound[name] for name, kind in compiled.src.signature.items() if kind != "constexpr"]
    sizes = grid(bound) if callable(grid) else grid
    return taken, tuple(map(int, sizes))


def own_copy(kernel: Any, compile_: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a copy of a kernel, and of the JIT function under its decorators (None where there is none, as in Triton's interpreter), with caches
    of its own: `compile_` is called with Triton's own `compile` and its arguments.

    So a launch costs what it costs without us: Triton asks its hook for a key at every launch where one is set, which took 50 us on an H200.
    """
    copied = copy.copy(kernel)
    if hasattr(kernel, "device_caches"):

        def binder() -> Any:
            made = type(kernel).create_binder(copied)
            copied.compile = functools.partial(compile_, copied.compile)
            return made

        copied.create_binder = binder
        copied.device_caches = defaultdict(binder)
        return copied, copied
    if not hasattr(kernel, "fn"):
        return kernel, None
    copied.fn, jit = own_copy(kernel.fn, compile_)
    return copied, jit
