"""Other libraries of kernels that are used where they are installed: as baselines, and as candidates beside ours."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True)
class Library:
    """A package that an extra of ours names."""

    name: str
    """Of its baseline."""
    package: str
    """As a package index knows it."""
    module: str
    """What is imported."""
    extra: str = "libraries"

    @property
    def installed(self) -> bool:
        """Is it there? It is not imported to find that out."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str:
        """Which release is installed; "" where that is not said."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return ""


LIGER = Library("liger", "liger-kernel", "liger_kernel")
LIBRARIES = {library.name: library for library in (LIGER,)}
