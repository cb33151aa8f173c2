"""Triton kernels of generated programs, as text: each is written into the file, and never imported by the package."""

from __future__ import annotations

from pathlib import Path

_ENDS = ("direct_convolution", "fused_product", "implicit_convolution")
"""Kernels that end with what follows them, which may be an activation."""


def text(name: str) -> str:
    """Return the part of a kernel file that generated programs hold: what follows its docstring and its remark to mypy."""
    source = Path(__file__).with_name(f"{name}.py").read_text()
    own = source.partition("# --- generated programs hold what follows\n")[2].strip("\n") + "\n"
    return f"{text('activations')}\n\n{own}" if name in _ENDS else own
