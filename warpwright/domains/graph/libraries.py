"""Other libraries of kernels that are used where they are installed: as baselines, and as candidates beside ours."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A package that an extra of ours names."""

    name: str
    """Of its baseline."""
    module: str
    """What is imported."""
    extra: str = "libraries"

    @property
    def installed(self) -> bool:
        """Is it there? It is not imported to find that out."""
        return importlib.util.find_spec(self.module) is not None


LIGER = Library("liger", "liger_kernel")
LIBRARIES = {library.name: library for library in (LIGER,)}
