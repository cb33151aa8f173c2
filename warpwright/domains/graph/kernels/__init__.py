"""Triton kernels of generated programs, as text: `direct_convolution` is written into the file, and never imported by the package."""

from __future__ import annotations

from pathlib import Path


def text(name: str) -> str:
    """Return the source of a kernel file, without its docstring and its annotations' import."""
    source = Path(__file__).with_name(f"{name}.py").read_text()
    return source.partition("# --- generated programs hold what follows\n")[2].strip("\n") + "\n"
