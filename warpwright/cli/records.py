"""The verbs that read an archive: report, archive list, best, lineage and export."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from warpwright import loop
from warpwright.archive import Archive
from warpwright.base import STATUSES, Record, to_json
from warpwright.cli.common import DONE, NOT_PASSED, Arguments, Verb, console, positive, print_json
from warpwright.errors import UsageError
from warpwright.files import make_folder
from warpwright.reports import page, report


def report_verb(given: Arguments) -> int:
    """Make the report of what an archive holds."""
    with Archive(given.archive, readonly=True) as archive:
        records = archive.records(given.task)
        where = str(archive.path)
    if not records:
        whose = f" of a task {given.task!r}" if given.task else ""
        raise UsageError(f"expected records{whose} in {given.archive}, saw none", "run `warpwright optimize` or `bench` first")
    said = report.lines(records)
    texts: dict[str, Callable[[], str]] = {"html": lambda: page.page(records, where), "md": lambda: report.markdown(said)}
    form = "html" if given.html else "md" if given.markdown else None
    path = _report_path(given, form) if form else None
    if path is not None and form is not None:
        make_folder(path.parent)
        path.write_text(texts[form]())
    if given.json:
        print_json(given, {"report": str(path) if path else None, "tasks": said})
    else:
        report.print_table(said, console())
        if path is not None:
            print(f"report: {path}")
    return DONE


def archive_list(given: Arguments) -> int:
    """List records, the newest last."""
    with Archive(given.archive, readonly=True) as archive:
        records = archive.records(given.task, given.status)[-given.limit :]
    return _tell_records(given, records)


def archive_best(given: Arguments) -> int:
    """Name the best record of each task."""
    with Archive(given.archive, readonly=True) as archive:
        groups = report.by_task(archive.records(given.task))
    return _tell_records(given, [best for best in map(loop.best, groups) if best is not None])


def archive_lineage(given: Arguments) -> int:
    """Show a record and the records that it came from, the oldest first."""
    with Archive(given.archive, readonly=True) as archive:
        line = archive.lineage(given.key)
    if not line:
        raise UsageError(f"expected the key of a record in {given.archive}, saw {given.key!r}", "`warpwright archive list` prints the keys")
    return _tell_records(given, line)


def archive_export(given: Arguments) -> int:
    """Write records as JSON lines."""
    with Archive(given.archive, readonly=True) as archive:
        count = archive.export(given.file, given.task)
    if given.json:
        print_json(given, {"file": given.file, "records": count})
    else:
        print(f"wrote {count} records to {given.file}")
    return DONE if count else NOT_PASSED


def _report_path(given: Arguments, form: str) -> Path:
    return Path(given.out) if given.out else Path(given.archive).with_name(f"report.{form}")


def _tell_records(given: Arguments, records: Iterable[Record]) -> int:
    found = list(records)
    if given.json:
        print_json(given, {"records": [to_json(record) for record in found]})
        return DONE
    for record in found:
        recipe = "; ".join(map(str, record.candidate.actions)) or record.candidate.proposer
        gain = f"{record.speedup:.2f}x" if record.speedup else ""
        print(f"{record.key}  {record.status:<9}{gain:>9}  {record.task.name}  {record.device}  {recipe}")
    return DONE


def register(verb: Verb, verbs: Any) -> None:
    """Add the verbs to the command line."""
    made = verb("report", report_verb)
    made.add_argument("--task", help="only this task (name or key)")
    made.add_argument("--html", action="store_true", help="write one self-contained page")
    made.add_argument("--markdown", action="store_true", help="write markdown")
    made.add_argument("--out", help="file to write (report.html or report.md beside the archive)")

    group = verbs.add_parser("archive", help="Look into an archive.", description="Look into an archive.")
    inner = group.add_subparsers(dest="archive_verb", required=True, metavar="{list,best,lineage,export}")
    made = verb("list", archive_list, under=inner)
    made.add_argument("task", nargs="?", help="only this task (name or key)")
    made.add_argument("--status", choices=STATUSES, help="only records of this status")
    made.add_argument("--limit", type=positive, default=1000, help="at most this many, the newest (%(default)s)")
    made = verb("best", archive_best, under=inner)
    made.add_argument("task", nargs="?", help="only this task (name or key)")
    made = verb("lineage", archive_lineage, under=inner)
    made.add_argument("key", help="key of a record (its start is enough)")
    made = verb("export", archive_export, under=inner)
    made.add_argument("file", help="file to write, one record a line")
    made.add_argument("--task", help="only this task (name or key)")
