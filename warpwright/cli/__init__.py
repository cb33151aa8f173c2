"""The command line: one verb, one function. docs/cli.md is its contract.

    common -> programs, records ..., and domains/ for the verbs of one domain -> command;  outline: what needs none of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpwright.cli.outline import main

if TYPE_CHECKING:
    from warpwright.cli.command import parser
    from warpwright.cli.common import DONE, INTERRUPTED, NOT_PASSED, WRONG_USE

__all__ = ["DONE", "INTERRUPTED", "NOT_PASSED", "WRONG_USE", "main", "parser"]


def __getattr__(name: str) -> Any:
    """Load what stands behind a name of `__all__` when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from warpwright.cli import command

    return getattr(command, name)
