"""The CUDA kernels of relational layers, run on the CPU by the transpiler."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from warpwright.domains.rgnn.emit.own.kernel import Launch, Own


def launch_of(module: ModuleType, name: str) -> Launch:
    """Return what launches a kernel of a module that has its text, threads and shared bytes; skip where it cannot be built."""
    kernel = getattr(built(module.KERNEL.text()), name)

    def run(blocks: int, *arguments: Any) -> None:
        kernel[blocks, module.THREADS, module.SHARED](*arguments)

    return run


def launches_of(kernels: Sequence[Own]) -> tuple[Launch, ...]:
    """Return what launches the kernels of one file; skip where it cannot be built."""
    program = built(kernels[0].text())

    def launch(kernel: Own) -> Launch:
        function = getattr(program, kernel.entry)
        return lambda blocks, *arguments: function[blocks, kernel.threads, kernel.shared](*arguments)

    return tuple(launch(kernel) for kernel in kernels)


def built(text: str) -> Any:
    """Return the kernels of a CUDA text; skip where it cannot be built."""
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    import warpwright.transpile

    return warpwright.transpile.loads(text)
