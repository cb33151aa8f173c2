"""Machine code for Hopper without a GPU: of a PTX text, by the ptxas that Triton brings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


def ptxas() -> str:
    """Return the path of Triton's ptxas; without one the test is skipped."""
    triton = pytest.importorskip("triton")
    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    if not path.exists() or shutil.which(str(path)) is None:
        pytest.skip("needs the ptxas that Triton brings")
    return str(path)


def assembled(text: str, folder: Path) -> bytes:
    """Return the cubin for sm_90a that ptxas makes of a PTX text."""
    source, made = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(text)
    subprocess.run([ptxas(), "-arch=sm_90a", "-o", str(made), str(source)], check=True, timeout=60)
    return made.read_bytes()


def names_of(text: str, folder: Path) -> dict[str, Any]:
    """Return what a generated program's text defines; Triton reads its kernels from the file."""
    path = folder / "generated.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names
