"""What a record's numbers depend on besides the program."""

from __future__ import annotations

import platform
from importlib import metadata

from warpwright import __version__
from warpwright.timing import facts


def versions(device: str) -> dict[str, str]:
    """Return what a record's numbers depend on besides the program: an archived record answers only where all of it is the same."""
    packages = {"warpwright": __version__, "python": platform.python_version(), "torch": metadata.version("torch")}
    return {**packages, "machine": facts.machine_name(device)}
