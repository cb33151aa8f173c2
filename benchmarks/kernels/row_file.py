"""Rows of a benchmark, written as they come: a run that is cut off leaves what it had, and a case that fails is a row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Case = tuple[Row, Callable[[], Iterable[Row]]]
"""What a row says of a case that failed, and what yields the case's rows."""


def write(file: Any, row: Row) -> None:
    """Write a row and show it."""
    file.write(json.dumps(row) + "\n")
    file.flush()
    print(row, flush=True)


def guarded(case: Case) -> Iterator[Row]:
    """Yield the rows of a case; what fails is a row."""
    about, rows = case
    try:
        yield from rows()
    except Exception as error:  # one case must not end the others
        yield {"table": "failed", **about, "reason": f"{type(error).__name__}: {error}"[:500]}


def run(cases: Iterable[Case], out: Path, seconds: float) -> None:
    """Append the rows of the cases to rows.jsonl in `out`, which is made; no case is begun after so many seconds."""
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    with (out / "rows.jsonl").open("a") as file:
        for case in cases:
            if time.monotonic() > end:
                break
            for row in guarded(case):
                write(file, row)
