"""Rows of a benchmark, written and shown as they come: a run that is cut off leaves what it had, and what fails is a row with a note."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Write = Callable[[Row], None]
Show = Callable[[Row], str]


@contextmanager
def rows_file(out: Path, show: Show = json.dumps, append: bool = False) -> Iterator[Write]:
    """Make the folder `out`; give what adds a row to its rows.jsonl at once and prints what `show` returns, if that is not empty."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "rows.jsonl").open("a" if append else "w") as file:

        def write(row: Row) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()
            if text := show(row):
                print(text, flush=True)

        yield write


def timed_from(started: float, show: Show = json.dumps) -> Show:
    """Return what shows a row behind the seconds since `started`, a time of `time.time`."""
    return lambda row: f"{time.time() - started:5.1f} s {show(row)}"


def note_of(problem: Exception) -> str:
    """Print where it came from, and return what a row says of it."""
    traceback.print_exc()
    return f"{type(problem).__name__}: {str(problem)[:300]}"


def noted(write: Write, row: Row, found: Callable[[], Row]) -> None:
    """Write a row with what is found; where that fails, with a note of how: one row must not end the others."""
    try:
        row |= found()
    except Exception as problem:
        row["note"] = note_of(problem)
    write(row)
