"""Other libraries of kernels that are used where they are installed: as baselines, and as candidates beside ours."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from warpwright.domains.graph.kernels import joined


@dataclass(frozen=True)
class Library:
    """A package that an extra of ours names."""

    name: str
    """Of its baseline, and of the file in `kernels/others/` that says what it takes."""
    package: str
    """As a package index knows it."""
    module: str
    """What is imported."""
    technique: str
    """Whose candidates call it."""
    takes: str
    """The calls that it has kernels for, in words."""
    compiler: str = ""
    """A program that it needs to compile its kernels, unless `compiled` is there."""
    compiled: str = ""
    """A module that brings its kernels compiled."""
    extra: str = "libraries"

    @property
    def text(self) -> str:
        """The part of its file, and of `calls.py`, that generated programs hold. The files themselves import torch, which the command line does
        without."""
        return joined(Path(__file__).parent / "kernels" / "others", ("calls", self.name))

    @property
    def found(self) -> bool:
        """Is the package there? It is not imported to find that out."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def lacks(self) -> str:
        """What it needs beside its package to make kernels, and is not there; "" if nothing."""
        if not self.compiler or shutil.which(self.compiler) is not None or importlib.util.find_spec(self.compiled) is not None:
            return ""
        return f"{self.compiler} or {self.compiled}"

    @property
    def installed(self) -> bool:
        """Can its kernels be had?"""
        return self.found and not self.lacks

    @property
    def version(self) -> str:
        """Which release is installed; "" where that is not said."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return ""


LIBRARIES = {
    library.name: library
    for library in (
        Library("liger", "liger-kernel", "liger_kernel", "liger_kernels", "softmax, layer, RMS and group norm, gated activations, two losses"),
        Library("cudnn", "nvidia-cudnn-frontend", "cudnn", "cudnn_graphs", "16-bit attention, 16-bit and TF32 products, convolutions, two norms"),
        Library("quack", "quack-kernels", "quack", "quack_kernels", "softmax, layer and RMS norm, cross entropy, topk of short rows"),
        Library(
            "flashinfer", "flashinfer-python", "flashinfer", "flashinfer_kernels", "16-bit attention of one sequence, RMS norm, gated halves",
            "nvcc", "flashinfer_jit_cache",
        ),
    )
}  # fmt: skip
"""By name of the baseline, in the order in which a search tries them."""
