"""Write the gallery: a report for each task of an archive, and the page that lists them. `python docs/gallery.py ARCHIVE FOLDER`."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from warpwright.archive import Archive
from warpwright.base import Record
from warpwright.loop import best
from warpwright.reports import page

_HEAD = """# Gallery

Reports of the examples in `examples/`, as `make demo` wrote them on the machine that built this
site: what was tried, what was rejected and why, the times beside every baseline, and the program.

| task | speed-up over the best baseline | verdict |
| --- | --- | --- |
"""


def write(archive_path: Path, folder: Path) -> list[str]:
    """Write FOLDER/TASK.html for each task and FOLDER/index.md; return the names of the tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    with Archive(archive_path, readonly=True) as archive:
        records = sorted(archive.records(), key=lambda record: record.task.name)
    rows, names = [], []
    for name, group in groupby(records, key=lambda record: record.task.name):
        of_task = list(group)
        (folder / f"{name}.html").write_text(page.page(of_task, str(archive_path), f"warpwright: {name}"))
        rows.append(f"| [{name}]({name}.html) | {_speedup(best(of_task))} |")
        names.append(name)
    (folder / "index.md").write_text(_HEAD + "\n".join(rows) + "\n")
    return names


def _speedup(record: Record | None) -> str:
    if record is None or record.measurement is None:
        return "| no program passed"
    low, high = record.measurement.interval
    return f"{record.measurement.speedup:.2f}x [{low:.2f}, {high:.2f}] | {record.measurement.verdict}"


if __name__ == "__main__":
    print("\n".join(write(Path(sys.argv[1]), Path(sys.argv[2]))))
