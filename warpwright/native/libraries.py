"""Build C++ or CUDA text into a shared library with the system's compiler, cached by content, and load it."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warpwright.base import digest
from warpwright.errors import UsageError
from warpwright.native import headers
from warpwright.native.errors import BuildError
from warpwright.native.kept import _ours, _ours_alone

FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC", "-fopenmp")
"""No -ffast-math: it breaks Inf and NaN."""


def cache_folder() -> Path:
    """Return the folder of built libraries (WARPWRIGHT_CACHE, else ~/.cache/warpwright), created when missing.

    What lies there is run. Raises UsageError where another user may put files into it, a sticky folder such as /tmp included.
    """
    folder = Path(os.environ.get("WARPWRIGHT_CACHE") or Path.home() / ".cache" / "warpwright")
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not _ours_alone(os.stat(folder)):
        raise _of_others("the cache", folder)
    return folder


def kept_file(name: str) -> Path:
    """Return where the cache keeps a file of this name. Raises UsageError where there is one that another user may have written."""
    path = cache_folder() / name
    if path.exists() and not _ours(path):
        raise _of_others("a file of the cache", path)
    return path


def _of_others(what: str, path: Path) -> UsageError:
    state = os.stat(path)
    seen = f"{path} of user {state.st_uid}, group {state.st_gid}, mode {stat.S_IMODE(state.st_mode):o}"
    remedy = "remove it" if path.is_file() else "set WARPWRIGHT_CACHE to a folder of your own (chmod go-w)"
    return UsageError(f"expected {what} to be written by nobody else, since what lies there is run; saw {seen}", remedy)


@functools.cache
def compiler() -> tuple[str, str]:
    """Return the C++ compiler's path and a digest that identifies it and this CPU (part of every cache key). Raises UsageError without one."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path:
            probe = subprocess.run([path, "-march=native", "-E", "-dM", "-x", "c++", os.devnull], capture_output=True, text=True, timeout=60)
            return path, digest(path, probe.stdout)
    raise UsageError("expected a C++ compiler on PATH (g++, clang++ or CXX), saw none", "install one, such as the package g++")


def build(text: str, defines: Sequence[str] = (), flags: Sequence[str] = FLAGS) -> Path:
    """Return the shared library compiled from C++ `text`, once for each text, flags, compiler and CPU. Raises BuildError."""
    path, identity = compiler()
    return _build(path, identity, "source.cpp", text, [*flags, *(f"-D{define}" for define in defines)])


def syntax_errors(text: str, name: str, flags: Sequence[str] = FLAGS) -> str:
    """Return what the compiler says of C++ `text`, called `name`, that it refuses; empty for one that it takes."""
    path, identity = compiler()
    with tempfile.TemporaryDirectory() as folder:
        try:
            cache = cache_folder()
        except OSError:  # a home that cannot be written to
            cache = Path(folder)
        process = headers.run_compiler((path, *flags), ("-fsyntax-only",), identity, Path(folder, name), text, cache)
    return process.stderr if process.returncode else ""


def build_cuda(text: str, arch: str, defines: Sequence[str] = ()) -> Path:
    """Return the shared library compiled from CUDA `text` by nvcc for `arch`, such as "90a". Raises BuildError."""
    path = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if path is None:
        raise UsageError("expected NVIDIA's compiler nvcc on PATH, saw none", "install the CUDA toolkit")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60).stdout
    target = f"-gencode=arch=compute_{arch},code=sm_{arch}"
    options = ["-O3", "-std=c++17", target, "-shared", "-Xcompiler", "-fPIC", *(f"-D{define}" for define in defines)]
    return _build(path, digest(path, version), "source.cu", text, options)


def _build(path: str, identity: str, name: str, text: str, options: Sequence[str]) -> Path:
    cache = cache_folder()
    library = kept_file(f"{digest(identity, text, *options)}.so")
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        built = Path(folder, "built.so")
        process = headers.run_compiler((path, *options), ("-o", str(built)), identity, Path(folder, name), text, cache)
        if process.returncode:
            raise BuildError(f"{path} refused generated {name}:\n{(process.stderr or process.stdout)[-2000:]}", "report this with the text above")
        os.replace(built, library)  # atomic: two builders of the same text are no race
    return library


@functools.cache
def load(library: Path) -> ctypes.CDLL:
    """Return the loaded library; each is loaded once."""
    return ctypes.CDLL(str(library))
