"""Load the shim before the MPI library's own functions are bound, so that the program's calls reach it.

The shim is found first because a library opened RTLD_GLOBAL precedes an extension's own dependencies. Once mpi4py.MPI is imported its calls are
bound for good, so activating too late is an error.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from warpwright.domains.mpi import core, model
from warpwright.errors import UsageError

SONAMES = {"openmpi": b"libmpi.so.40", "mpich": b"libmpi.so.12", "mpiabi": b"libmpi_abi.so.1"}
SHIM = "WARPWRIGHT_MPI_SHIM"
"""Environment variable: the shim that `warpwright mpi run` preloaded, or one of `warpwright mpi build-shim` to load."""


@dataclass(frozen=True)
class Family:
    """An MPI binary interface: who made the library, and which of core.OPTIONAL it has."""

    name: str
    functions: tuple[str, ...] = ()

    @property
    def defines(self) -> tuple[str, ...]:
        """What the shim is compiled with."""
        return (f"WARPWRIGHT_{self.name.upper()}", *(core.OPTIONAL[function] for function in self.functions))


def family_of(library: Path) -> Family:
    """Return the family of an MPI library file; raise UsageError for one that no shim is for."""
    content = library.read_bytes()
    names = [name for name, soname in SONAMES.items() if soname + b"\0" in content]
    if len(names) != 1 or b"MPI_Pack\0" not in content:
        raise UsageError(f"expected a library of {' or '.join(SONAMES)}, saw {library}", "for another family: warpwright mpi build-shim --mpicc PATH")
    return Family(names[0], tuple(function for function in core.OPTIONAL if f"MPI_{function}\0".encode() in content))


def build(family: Family) -> Path:
    """Return the shim of a family, compiled at first use (some seconds)."""
    return core.build("shim.cpp", family.defines)


@functools.cache
def activate() -> ctypes.CDLL | None:
    """Return the loaded shim, or None where there is nothing to do: no mpi4py, or WARPWRIGHT_MPI=off.

    Raises UsageError after mpi4py.MPI was imported without it.
    """
    preloaded = os.environ.get(SHIM)
    if preloaded and preloaded in Path("/proc/self/maps").read_text():
        return _bound(ctypes.CDLL(preloaded))
    if os.environ.get("WARPWRIGHT_MPI") == "off" or importlib.util.find_spec("mpi4py") is None:
        return None
    if "mpi4py.MPI" in sys.modules:
        raise UsageError("expected `import warpwright.mpi` before mpi4py.MPI, whose calls are bound already", "import warpwright.mpi first")
    core.find_nvrtc()
    if preloaded:
        return _bound(ctypes.CDLL(preloaded, mode=ctypes.RTLD_GLOBAL))
    library = library_of_mpi4py()
    family = family_of(library)
    os.environ.update(model.environment(library))
    return _bound(ctypes.CDLL(str(build(family)), mode=ctypes.RTLD_GLOBAL))


def library_of_mpi4py() -> Path:
    """Return the MPI library that mpi4py will load; it is loaded then."""
    import mpi4py

    folder = Path(mpi4py.__file__).parent
    try:
        from mpi4py import _mpiabi  # of the wheels: it decides between libraries at import, and has loaded the one when it answers

        _mpiabi._get_mpiabi()
    except ImportError:
        for extension in folder.glob("MPI.*.so"):  # built for one library: the loader finds it
            for soname in SONAMES.values():
                if soname + b"\0" in extension.read_bytes():
                    ctypes.CDLL(soname.decode())
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.rpartition(" ")[2]
        if Path(path).name.startswith(("libmpi.so", "libmpi_abi.so")):
            return Path(path)
    raise UsageError("expected mpi4py to load an MPI library, saw none", "install openmpi or mpich beside mpi4py")


def _bound(shim: ctypes.CDLL) -> ctypes.CDLL:
    core.adopt(shim)
    shim.warpwright_counts.restype = None
    shim.warpwright_of_datatype.restype = ctypes.c_void_p
    return shim
