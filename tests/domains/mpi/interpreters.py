"""Interpreters with mpi4py and one MPI library each, and how to run programs with them.

The two libraries cannot be installed together: `make mpi` makes an environment of each.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.base import digest

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
KERNELS = ROOT / "warpwright/domains/mpi/native/kernels.cu"
NAMES = {"Open MPI": "openmpi", "MPICH": "mpich"}


def times(*us: float) -> str:
    """Return a table as measured, the same for all bytes and blocks: the library's time and ours, between two processes and of one with itself."""
    return " ".join(map(str, us * (15 * 11)))


GAINS = {"WARPWRIGHT_MPI_TIMES": times(1e6, 1, 1, 1)}
"""Packing messages gains a second, whatever trials say: they take place, and all messages from 512 bytes on are packed."""


@functools.cache
def pythons() -> Mapping[str, str]:
    """Return interpreters by the family of their MPI library. WARPWRIGHT_MPI_PYTHONS names others than `make mpi` makes."""
    given = os.environ.get("WARPWRIGHT_MPI_PYTHONS", "")
    candidates = [*filter(None, given.split(os.pathsep)), *(str(ROOT / f".venv-{name}/bin/python") for name in NAMES.values()), sys.executable]
    found: dict[str, str] = {}
    for python in filter(os.path.exists, candidates):
        code = "from mpi4py import MPI; print(MPI.Get_library_version())"
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, "WARPWRIGHT_MPI": "off"})
        for title, name in NAMES.items():
            if answer.returncode == 0 and answer.stdout.startswith(title):
                found.setdefault(name, python)
    return found


def fake_driver(kernels: Path, level: str = "-O1") -> str:
    """Return the driver of fake_cuda.cpp over these kernels, compiled with a trap where an address is not aligned for its word."""
    flags = (
        level, "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1",
        "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error",
    )  # fmt: skip
    text = (HERE / "fake_cuda.cpp").read_text() + f"// {digest(kernels.read_text())}"  # built again when the kernels change
    return str(native.build(text, (f'KERNELS="{kernels}"',), flags))


def environment(fake: str | None = None, **more: str) -> dict[str, str]:
    """Return the environment of a child that runs MPI, maybe as root, with this checkout."""
    root = {f"{name}_ALLOW_RUN_AS_ROOT{suffix}": "1" for name in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}
    result = {**os.environ, **root, "WARPWRIGHT_MPI_WAIT": "flag", "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), **more}
    return result if fake is None else {**result, "FAKE_CUDA": fake}


def launcher(python: str, processes: int) -> list[str]:
    """Return the start of a command line on several processes of the library beside an interpreter."""
    mpiexec = str(Path(python).parent / "mpiexec")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60, env=environment()).stdout
    more = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in version else []
    return [mpiexec, *more, "-n", str(processes)]


def last_line(process: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the JSON that a child printed last."""
    assert process.stdout.strip(), process.stderr[-2000:]
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result
