"""Looks at the machine: each line is OK, WARN or FAIL, with what was seen and what to do about it."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from warpwright.errors import how_to_install

Level = Literal["OK", "WARN", "FAIL"]

TORCH_FROM, TORCH_BELOW = (2, 9), (2, 16)
"""As in pyproject.toml."""

SHARED_MEMORY_BYTES = 2 * 2**30
"""Inputs, state and outputs of one task lie there; KernelBench at full size needs more, examples/ a tenth."""

_OPENMP = """
#include <omp.h>
extern "C" int threads() { int n = 0;
#pragma omp parallel
{
#pragma omp single
n = omp_get_num_threads(); }
return n; }
"""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor."""

    name: str
    level: Level
    seen: str
    advice: str = ""


def gpu_present() -> bool:
    """Does this machine have an NVIDIA GPU with its driver loaded? Asks the file system only."""
    return Path("/dev/nvidiactl").exists() or Path("/proc/driver/nvidia/version").exists()


def examine(archive: str | Path) -> list[Finding]:
    """Return what every check found, in order. `archive` is the file that a run would write."""
    machine: list[Callable[[], Finding]] = [_python, _torch, _compiler, _openmp, _gpu, _triton, _libraries, _nvcc]
    fences: list[Callable[[], Finding]] = [_shared_memory, _isolation, _bubblewrap, _cores]
    return [*(check() for check in (*machine, *fences)), _writable(Path(archive))]


def _python() -> Finding:
    seen = f"CPython {platform.python_version()} at {sys.executable}"
    headers = Path(sysconfig.get_paths()["include"], "Python.h")
    if not headers.exists():
        return Finding("python", "WARN", f"{seen}, without {headers}", "install its headers (python3-dev): torch.compile needs them on a CPU")
    return Finding("python", "OK", seen)


def _torch() -> Finding:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Finding("torch", "FAIL", "not installed", "pip install 'torch>=2.9,<2.16'")
    numbers = tuple(int(piece) for piece in re.findall(r"\d+", version)[:2])
    if not TORCH_FROM <= numbers < TORCH_BELOW:
        return Finding("torch", "WARN", version, "tested with torch>=2.9,<2.16: install one of those")
    return Finding("torch", "OK", version)


def _compiler() -> Finding:
    from warpwright import native
    from warpwright.errors import UsageError

    try:
        path, _ = native.compiler()
    except UsageError as error:
        return Finding("compiler", "FAIL", "no C++ compiler on PATH", error.hint)
    version = _first_line([path, "--version"])
    return Finding("compiler", "OK", f"{path}: {version}; flags {' '.join(native.FLAGS[:2])}")


def _openmp() -> Finding:
    """Build and call a parallel region: a compiler without its OpenMP library or for another CPU shows here."""
    from warpwright import native
    from warpwright.errors import UsageError, WarpwrightError

    try:
        threads = ctypes.CDLL(str(native.build(_OPENMP))).threads()
    except UsageError as error:  # a cache that others may write to
        return Finding("openmp", "FAIL", error.message, error.hint)
    except (WarpwrightError, OSError, subprocess.TimeoutExpired) as error:
        return Finding("openmp", "FAIL", str(error)[:300], "install the compiler's OpenMP library (libgomp or libomp)")
    return Finding("openmp", "OK", f"{threads} threads; built libraries are kept in {native.cache_folder()}")


def _gpu() -> Finding:
    if not gpu_present():
        return Finding("gpu", "OK", "none: --target cpu is the default here")
    if shutil.which("nvidia-smi") is None:
        return Finding("gpu", "WARN", "a driver is loaded, but there is no nvidia-smi", "install the driver's tools: clocks are read with them")
    names = _first_line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    if not names or metadata.version("torch").endswith("+cpu"):
        return Finding("gpu", "WARN", names or "nvidia-smi fails", "install a torch with CUDA, and run nvidia-smi to see whether the driver answers")
    return Finding("gpu", "OK", names)


def _triton() -> Finding:
    if importlib.util.find_spec("triton") is not None:
        return Finding("triton", "OK", metadata.version("triton"))
    if gpu_present():
        return Finding("triton", "WARN", "not installed", f"{how_to_install('triton')}: torch.compile needs it on a GPU")
    return Finding("triton", "OK", "not installed, and not needed without a GPU")


def _libraries() -> Finding:
    """Which other libraries of kernels are baselines and candidates on a GPU."""
    from warpwright.domains.graph.libraries import LIBRARIES

    there = [f"{library.package} {library.version}" for library in LIBRARIES.values() if library.installed]
    absent = [library.package for library in LIBRARIES.values() if not library.found]
    lacking = [f"{library.package} needs {library.lacks}" for library in LIBRARIES.values() if library.found and library.lacks]
    said = [f"{', '.join(there)}: baselines and candidates on a GPU"] if there else []
    said += lacking
    said += [f"not installed: {', '.join(absent)} ({how_to_install('libraries')})"] if absent else []
    return Finding("libraries", "OK", "; ".join(said))


def _nvcc() -> Finding:
    path = shutil.which("nvcc") or next(iter(sorted(map(str, Path("/usr/local").glob("cuda*/bin/nvcc")))), None)
    if path is not None:
        release = [line for line in _lines([path, "--version"]) if "release" in line]
        return Finding("nvcc", "OK", f"{path}: {''.join(release).strip()}")
    if gpu_present():
        return Finding("nvcc", "WARN", "not found", "install the CUDA toolkit: foreign programs with inline CUDA cannot be built without it")
    return Finding("nvcc", "OK", "not found, and not needed without a GPU")


def _shared_memory() -> Finding:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return Finding("shared memory", "WARN", "no /dev/shm", f"tensors pass between processes through files in {tempfile.gettempdir()}, slower")
    usage = shutil.disk_usage(folder)
    seen = f"{usage.free / 2**30:.1f} GiB free of {usage.total / 2**30:.1f} in {folder}"
    if usage.free < SHARED_MEMORY_BYTES:
        return Finding("shared memory", "WARN", seen, "large tasks will not fit: mount a larger one (docker run --shm-size=8g), or use --scale")
    return Finding("shared memory", "OK", seen)


def _isolation() -> Finding:
    """Which of the fences around a candidate this machine permits; docs/trust.md says what each holds back."""
    if platform.system() != "Linux":
        return Finding("isolation", "WARN", "none but the kill: limits and filter are for Linux", _ELSEWHERE)
    from warpwright.workers import isolation

    torch = importlib.util.find_spec("torch")
    paths = [sys.executable, os.__file__, isolation.__file__, *([torch.origin] if torch is not None and torch.origin else [])]
    missing = []
    if not Path("/proc/sys/kernel/seccomp/actions_avail").exists():
        missing.append("no seccomp: a candidate may start processes and open sockets")
    if os.getuid() != 0:
        missing.append("not root: candidates run as your own user")
    elif not isolation.readable_by_all(paths):
        missing.append(f"candidates can read every file, because {sys.prefix} or torch lies where other users cannot read")
    if missing:
        return Finding("isolation", "WARN", "; ".join(missing), _ELSEWHERE)
    return Finding("isolation", "OK", "own user, resource limits, system call filter")


def _bubblewrap() -> Finding:
    """Whether candidates run without a network, below a root that they cannot write to."""
    from warpwright.workers import bubblewrap

    problem = bubblewrap.missing()
    if problem:
        return Finding("bubblewrap", "WARN", problem, "install bubblewrap, and allow user namespaces: candidates see files and network without it")
    return Finding("bubblewrap", "OK", "candidates on a CPU run in it")


_ELSEWHERE = "audit programs that you do not trust in a container or a virtual machine"


def _cores() -> Finding:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0]
    seen = f"{available} available, load {busy:.1f}"
    if available < 2:
        return Finding("cores", "WARN", seen, "the timer and the program share one core: expect UNSURE verdicts")
    if busy > 0.5 * available:
        return Finding("cores", "WARN", seen, "other work is running: intervals will be wide, stop it for measurements you publish")
    return Finding("cores", "OK", seen)


def _writable(archive: Path) -> Finding:
    folder = archive.absolute().parent
    existing = next(parent for parent in [folder, *folder.parents] if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"x")
    except OSError as error:
        return Finding("archive", "FAIL", f"{archive}: {error}", "name a place that can be written: --archive PATH")
    return Finding("archive", "OK", f"{archive} ({'exists' if archive.exists() else 'will be created'})")


def _first_line(command: list[str]) -> str:
    return next(iter(_lines(command)), "")


def _lines(command: list[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
