"""Triton kernels of generated programs, as text: `direct_convolution` is written into the file, and never imported by the package."""

from __future__ import annotations

from pathlib import Path


def text(name: str) -> str:
    """Return the part of a kernel file that generated programs hold: what follows its docstring and its remark to mypy."""
    source = Path(__file__).with_name(f"{name}.py").read_text()
    return source.partition("# --- generated programs hold what follows\n")[2].strip("\n") + "\n"
