"""Triton kernels of generated programs, as text: each is written into the file, and none is imported by the package (but the table of `liger`)."""

from __future__ import annotations

from pathlib import Path

_BEFORE = {
    "direct_convolution": ("activations", "tf32"), "fused_product": ("activations", "product_end"),
    "gated_product": ("activations",), "implicit_convolution": ("activations", "convolution_end"),
    "pointwise_convolution": ("activations", "convolution_end", "tf32"),
    "symmetric_product": ("activations", "product_end"),
}  # fmt: skip
"""What stands before a kernel, beside `sound`: those that end with what follows them may end with an activation, those in TF32 round operands."""
_LIBRARIES = ("liger",)
"""Calls of other libraries, which launch their kernels themselves."""


def text(name: str) -> str:
    """Return the part of the kernel's files that generated programs hold: what follows their docstrings and their remarks to mypy."""
    return "\n\n".join(_own(one) for one in (*(() if name in _LIBRARIES else ("sound",)), *_BEFORE.get(name, ()), name))


def _own(name: str) -> str:
    source = Path(__file__).with_name(f"{name}.py").read_text()
    return source.partition("# --- generated programs hold what follows\n")[2].strip("\n") + "\n"


class FromFile:
    """The graph's name for a generated function whose text is a file of this folder."""

    file = ""

    @property
    def shared_text(self) -> str:
        """The function's text and its kernels', which stand in a generated file once."""
        return text(self.file)

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""
