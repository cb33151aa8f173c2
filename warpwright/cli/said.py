"""What every verb says alike: exit codes, JSON on standard output, tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from warpwright.reports import report

DONE, NOT_PASSED, WRONG_USE, INTERRUPTED = 0, 1, 2, 3
"""Exit codes."""

Arguments = argparse.Namespace


def print_json(given: Arguments, value: Mapping[str, Any]) -> None:
    print(json.dumps(report.finite(value), allow_nan=False), file=given.stdout, flush=True)


def tell(given: Arguments, said: Sequence[report.Line]) -> None:
    """Print lines: JSON, one a line, or the table."""
    if given.json:
        for one in said:
            print_json(given, one)
    else:
        report.print_table(said, console())


def console() -> Console:
    """Return standard output for tables; wide where it is no terminal, so that a pipe gets whole rows."""
    return Console() if sys.stdout.isatty() else Console(width=200, soft_wrap=True)
