"""The folder that a run's results are written to: optimized.py, report.html, report.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright import loop
from warpwright.base import Record, Task
from warpwright.errors import UsageError
from warpwright.reports import artefact, page, report

OUT = Path("warpwright-out")

MOST_FOLDERS = 1000
"""Of one name, for results of different files."""


@dataclass(frozen=True)
class Result:
    """What `optimize` gave: the line, and whether it was cut short."""

    line: report.Line
    best: Record | None
    folder: Path
    interrupted: bool
    records: tuple[Record, ...] = ()
    recalled: bool = False
    """Answered from the archive: nothing was measured."""
    polish: tuple[str, ...] = ()
    """What `--polish` came to, kernel by kernel, in words."""


def folder_of(task: Task) -> Path:
    """Return the folder for a task's results: its name's, unless that one holds the results of another file."""
    for number in range(1, MOST_FOLDERS):
        folder = OUT / (task.name if number == 1 else f"{task.name}-{number}")
        if _is_free(folder / "report.json", task.path):
            return folder
    raise UsageError(f"expected a free folder such as {folder}, saw {MOST_FOLDERS} taken ones", "name one with --out, or remove some")


def _is_free(written: Path, path: str) -> bool:
    """Is there no result, or one of the task file at `path`?"""
    try:
        records = json.loads(written.read_text())["records"]
    except (OSError, ValueError, KeyError, TypeError):
        return True
    return not records or records[0]["task"]["path"] == path


def write(
    task: Task, records: Sequence[Record], folder: Path, archive: Path, reason: str, left_out: Sequence[str], recalled: bool = False
) -> Result:
    """Write the folder's files from what is known, and return the result."""
    distinct = list({record.key: record for record in records}.values())
    best = loop.best(distinct)
    written = folder / "optimized.py"
    if best is not None and best.candidate.source.language == "sass":
        from warpwright.targets.cubin import shipping

        written = shipping.ship(best, folder)
    elif best is not None:
        written.write_text(artefact.text(best))
    line = {**report.line(task.name, distinct, str(written) if best is not None else None, reason), "left_out": list(left_out)}
    if not distinct and left_out:
        line["status"] = "timeout"
    (folder / "report.json").write_text(report.document(line, distinct))
    if distinct:
        (folder / "report.html").write_text(page.page(distinct, str(archive), f"warpwright: {task.name}"))
    return Result(line, best, folder, False, tuple(distinct), recalled)
