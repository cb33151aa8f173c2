"""Cubins of benchmarks/sass/kernels in tests/fixtures/sass, for six architectures, each with its listing: the tests need neither nvcc nor nvdisasm.
copied, drained and turned are of sources beside them, whose asynchronous copies and transpositions share scoreboards.

To make them anew: nvcc 13.0 -std=c++17 -O3 -cubin -arch=sm_N (rmsnorm_cuda12: ptxas 12.9), and the text of nvdisasm 13.2 -c -hex -plr beside each.
saxpy_zstd.fatbin and saxpy_lz4.fatbin: nvcc 13.0 -fatbin -Xfatbin -compress-all, --compress-mode default and speed.
"""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

import pytest

from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.code.kernel import Kernel, read_kernel
from warpwright.domains.sass.domain import checker_of
from warpwright.domains.sass.model.checker import Checker
from warpwright.native import nvidia

FOLDER = Path(__file__).parents[1] / "fixtures" / "sass"
CUBINS = tuple(sorted(path.stem for path in FOLDER.glob("*.cubin")))
NOT_LEARNT = ("copied_90", "drained_90", "turned_90")
"""They are not among the sixty cubins that the package's distances were learnt from."""
LISTED = tuple(sorted(path.name.removesuffix(".plr.gz") for path in FOLDER.glob("*.plr.gz")))


def cubin(name: str) -> Cubin:
    """Return a cubin, its listing in the cache of listings."""
    data = (FOLDER / f"{name}.cubin").read_bytes()
    if name in LISTED:
        disassembly.keep(data, gzip.decompress((FOLDER / f"{name}.plr.gz").read_bytes()).decode())
    return Cubin(data)


@functools.cache
def kernel(name: str) -> Kernel:
    """Return the kernel of a cubin."""
    read = cubin(name)
    return read_kernel(read, read.kernels[0])


@functools.cache
def checker(name: str) -> Checker:
    """Return a kernel's rules."""
    return checker_of(kernel(name))


def with_readable_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Triton build by the likeliest ptxas here: Triton 3.8's own builds a flavour that its nvdisasm cannot list."""
    if tools := nvidia.tools("ptxas"):
        monkeypatch.setenv("TRITON_PTXAS_PATH", str(tools[0]))


def task_path(name: str, folder: Path) -> Path:
    """Copy a cubin into a folder; return its path."""
    path = folder / f"{name}.cubin"
    path.write_bytes(cubin(name).data)
    return path
