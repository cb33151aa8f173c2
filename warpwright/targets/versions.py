"""What a record's numbers depend on besides the program."""

from __future__ import annotations

import platform
from importlib import metadata

from warpwright import __version__
from warpwright.timing import facts

BASELINES = "2"
"""Which baselines count. 2: those that were refused for their results' strides alone, built anew; until then a program could be FASTER with a quicker
one beside it that did not count."""


def versions(device: str) -> dict[str, str]:
    """Return what a record's numbers depend on besides the program: an archived record answers only where all of it is the same."""
    packages = {"warpwright": __version__, "python": platform.python_version(), "torch": metadata.version("torch"), "baselines": BASELINES}
    return {**packages, "machine": facts.machine_name(device)}
