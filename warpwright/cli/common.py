"""What the verbs share: exit codes, JSON on standard output, tables, and how a module adds its verbs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from warpwright.reports import report

DONE, NOT_PASSED, WRONG_USE, INTERRUPTED = 0, 1, 2, 3
"""Exit codes."""

Arguments = argparse.Namespace

Verb = Callable[..., argparse.ArgumentParser]
"""verb(name, function, *parents, under=...): adds a verb whose help is the function's docstring."""


def positive(text: str) -> int:
    """Return the whole number above 0 that an option was given."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, saw {text!r}")
    return int(text)


def print_json(args: Arguments, value: Mapping[str, Any]) -> None:
    """Print one JSON object on a line of standard output, at once; numbers that JSON cannot say become null."""
    print(json.dumps(report.finite(value), allow_nan=False), file=args.stdout, flush=True)


def tell(args: Arguments, lines: Sequence[report.Line]) -> None:
    """Print lines: JSON, one a line, or the table."""
    if args.json:
        for one in lines:
            print_json(args, one)
    else:
        report.print_table(lines, console())


def console() -> Console:
    """Return standard output for tables; wide where it is no terminal, so that a pipe gets whole rows."""
    return Console() if sys.stdout.isatty() else Console(width=200, soft_wrap=True)
