"""The CUDA driver without a GPU that tests of machine code run on (targets/cubin/fake_cuda.c), and saxpy on it, with marks that say what it does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from sass_cubins import cubin, task_path

from warpwright import domains
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

HERE = Path(__file__).parents[1] / "targets" / "cubin"


def compiled(library: Path, *options: str) -> Path:
    """Compile the driver without a GPU."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", *options, "-o", str(library), str(HERE / "fake_cuda.c")], check=True, timeout=250)
    return library


def evaluated(driver: Path, folder: Path) -> CubinEvaluator:
    path = task_path("saxpy_90", folder)
    task = domains.describe(path, {"harness": str(HERE / "saxpy_harness.py")})
    return CubinEvaluator(task, "cubin:0", Measuring(), str(driver), path)


def marked(mark: bytes) -> bytes:
    """Return saxpy's cubin with a mark in the padding behind its code."""
    read = cubin("saxpy_90")
    code = read.code("saxpy")
    end = code.offset + code.size
    return read.data[: end - 16] + mark + read.data[end - 16 + len(mark) :]
