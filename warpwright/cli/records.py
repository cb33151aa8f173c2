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


def report_verb(args: Arguments) -> int:
    """Make the report of what an archive holds."""
    with Archive(args.archive, readonly=True) as archive:
        records = archive.records(args.task)
        where = str(archive.path)
    if not records:
        whose = f" of a task {args.task!r}" if args.task else ""
        raise UsageError(f"expected records{whose} in {args.archive}, saw none", "run `warpwright optimize` or `bench` first")
    lines = report.lines(records)
    texts: dict[str, Callable[[], str]] = {"html": lambda: page.page(records, where), "md": lambda: report.markdown(lines)}
    form = "html" if args.html else "md" if args.markdown else None
    path = _report_path(args, form) if form else None
    if path is not None and form is not None:
        make_folder(path.parent)
        path.write_text(texts[form]())
    if args.json:
        print_json(args, {"report": str(path) if path else None, "tasks": lines})
    else:
        report.print_table(lines, console())
        if path is not None:
            print(f"report: {path}")
    return DONE


def archive_list(args: Arguments) -> int:
    """List records, the newest last."""
    with Archive(args.archive, readonly=True) as archive:
        records = archive.records(args.task, args.status)[-args.limit :]
    return _tell_records(args, records)


def archive_best(args: Arguments) -> int:
    """Name the best record of each task."""
    with Archive(args.archive, readonly=True) as archive:
        groups = report.by_task(archive.records(args.task))
    return _tell_records(args, [best for best in map(loop.best, groups) if best is not None])


def archive_lineage(args: Arguments) -> int:
    """Show a record and the records that it came from, the oldest first."""
    with Archive(args.archive, readonly=True) as archive:
        line = archive.lineage(args.key)
    if not line:
        raise UsageError(f"expected the key of a record in {args.archive}, saw {args.key!r}", "`warpwright archive list` prints the keys")
    return _tell_records(args, line)


def archive_export(args: Arguments) -> int:
    """Write records as JSON lines."""
    with Archive(args.archive, readonly=True) as archive:
        count = archive.export(args.file, args.task)
    if args.json:
        print_json(args, {"file": args.file, "records": count})
    else:
        print(f"wrote {count} records to {args.file}")
    return DONE if count else NOT_PASSED


def _report_path(args: Arguments, form: str) -> Path:
    return Path(args.out) if args.out else Path(args.archive).with_name(f"report.{form}")


def _tell_records(args: Arguments, records: Iterable[Record]) -> int:
    listed = list(records)
    if args.json:
        print_json(args, {"records": [to_json(record) for record in listed]})
        return DONE
    if not listed:
        asked = [f"of a task {args.task!r}" if args.task else "", f"of status {args.status}" if getattr(args, "status", None) else ""]
        args.console.print(" ".join([f"{args.archive} has no records", *filter(None, asked)]), markup=False, highlight=False)
    for record in listed:
        recipe = "; ".join(map(str, record.candidate.actions)) or record.candidate.proposer
        gain = f"{record.speedup:.2f}x" if record.speedup else ""
        print(f"{record.key}  {record.status:<9}{gain:>9}  {record.task.name}  {record.device}  {recipe}")
    return DONE


def register(verb: Verb, verbs: Any) -> None:
    """Add the verbs to the command line."""
    parser = verb("report", report_verb)
    parser.add_argument("--task", help="only this task (name or key)")
    parser.add_argument("--html", action="store_true", help="write one self-contained page")
    parser.add_argument("--markdown", action="store_true", help="write markdown")
    parser.add_argument("--out", help="file to write (report.html or report.md beside the archive)")

    group = verbs.add_parser("archive", help="Look into an archive.", description="Look into an archive.")
    inner = group.add_subparsers(dest="archive_verb", required=True, metavar="{list,best,lineage,export}")
    parser = verb("list", archive_list, under=inner)
    parser.add_argument("task", nargs="?", help="only this task (name or key)")
    parser.add_argument("--status", choices=STATUSES, help="only records of this status")
    parser.add_argument("--limit", type=positive, default=1000, help="at most this many, the newest (%(default)s)")
    parser = verb("best", archive_best, under=inner)
    parser.add_argument("task", nargs="?", help="only this task (name or key)")
    parser = verb("lineage", archive_lineage, under=inner)
    parser.add_argument("key", help="key of a record (its start is enough)")
    parser = verb("export", archive_export, under=inner)
    parser.add_argument("file", help="file to write, one record a line")
    parser.add_argument("--task", help="only this task (name or key)")
