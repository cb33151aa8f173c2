"""Programs that check themselves: each kernel's answer beside one that the host works out in its own way from CUDA's definitions.

They were written to find what goes wrong silently, and first run as they are. `programs/*.cu`, with `check.h`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from executables import executable

from warpwright.domains import transpile

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

PROGRAMS = Path(__file__).with_name("programs")
OFTEN = ("own_parameters", "escaped", "classes", "turns", "halves", "lengths")
"""Those that found faults; the others are run with the slow tests."""


def said(name: str, tier: str | None, *flags: str) -> str:
    """Return what a program of the folder says, which ends with 1 where a check fails."""
    text = (PROGRAMS / f"{name}.cu").read_text()
    program = executable(transpile.compile_text(text, f"{name}.cu", folders=[PROGRAMS], tier=tier, host=True).source, *flags)
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False).stdout


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("name", OFTEN)
def test_every_kernel_is_right(name: str) -> None:
    out = said(name, None)
    assert "FAIL" not in out and ": 0 of " in out, out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("tier", [None, "fibers"])
@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.cu")))
def test_every_kernel_is_right_as_shipped(name: str, tier: str | None) -> None:
    out = said(name, tier, "-O3", "-march=native", "-fno-strict-aliasing")
    assert "FAIL" not in out and ": 0 of " in out, out
