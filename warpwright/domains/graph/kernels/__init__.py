"""Triton kernels of generated programs, as text: each is written into the file, and none is imported by the package (but what `others/` holds)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_BEFORE = {
    "direct_convolution": ("activations", "extrema", "tf32"), "fused_product": ("activations", "extrema", "product_end"),
    "implicit_convolution": ("activations", "convolution_end"),
    "pointwise_convolution": ("activations", "convolution_end", "tf32"),
    "symmetric_product": ("activations", "extrema", "product_end"),
}  # fmt: skip
"""What stands before a kernel, beside `sound`: those that end with what follows them may end with an activation, those in TF32 round operands."""


def text(name: str) -> str:
    """Return the part of the kernel's files that generated programs hold: what follows their docstrings and their remarks to mypy."""
    return joined(Path(__file__).parent, ("sound", *_BEFORE.get(name, ()), name))


def joined(folder: Path, names: Iterable[str]) -> str:
    """Return the parts of a folder's files that generated programs hold, one after the other."""
    return "\n\n".join(_own((folder / f"{name}.py").read_text()) for name in names)


def _own(source: str) -> str:
    return source.partition("# --- generated programs hold what follows\n")[2].strip("\n") + "\n"


class FromFile:
    """The graph's name for a generated function whose text is a file of this folder."""

    file = ""

    @property
    def zeros(self) -> int:
        """How many tensors of zeros torch makes for the kernel, by a call each."""
        return 0

    @property
    def shared_text(self) -> str:
        """The function's text and its kernels', which stand in a generated file once."""
        return text(self.file)

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""
