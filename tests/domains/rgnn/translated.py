"""The CUDA kernels of relational layers, run on the CPU by the transpiler."""

from __future__ import annotations

import shutil
from types import ModuleType
from typing import Any

import pytest

from warpwright.domains.rgnn.emit.own import Launch


def launch_of(module: ModuleType, name: str) -> Launch:
    """Return what launches a kernel of a module that has its text, threads and shared bytes; skip where it cannot be built."""
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    import warpwright.transpile

    kernel = getattr(warpwright.transpile.loads(module.KERNEL.text()), name)

    def run(blocks: int, *arguments: Any) -> None:
        kernel[blocks, module.THREADS, module.SHARED](*arguments)

    return run
