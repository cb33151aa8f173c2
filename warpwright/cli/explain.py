"""The verb `explain`: why a record's program is faster, from what is known of it."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from warpwright import api, domains, loop, run
from warpwright.archive import Archive
from warpwright.base import Record, Source
from warpwright.cli.common import DONE, Arguments, Verb, print_json
from warpwright.errors import UsageError, WarpwrightError
from warpwright.reports import explain as explaining
from warpwright.tasks import taskfile
from warpwright.timing import counters


def explain(args: Arguments) -> int:
    """Say why a record's program is faster: times, roofline, facts before and after, the worth of each step."""
    record, records = _record_and_its_task(args.record, args.archive)
    if args.measure:
        records = [*records, *_measured(args, record, records)]
    count = (lambda _, source: counters.count(source)) if args.counters else None
    explanation = explaining.explain(record, records, domains.facts, count, _text_before(record, records))
    if args.json:
        print_json(args, explaining.document(explanation))
    else:
        print(explaining.text(explanation, args.all), end="", file=args.stdout)
    return DONE


def _record_and_its_task(name: str, archive_path: str) -> tuple[Record, list[Record]]:
    """Return the record that is named, by its key, a report.json or its task (the best one of it), and the others of its task."""
    if name.endswith(".json"):
        return api.record_of(name, archive_path), api.records_in(Path(name))
    with Archive(archive_path, readonly=True) as archive:
        record = archive.get(name)
        if record is None:
            record = loop.best(archive.records(name))
        if record is None:
            raise UsageError(
                f"expected the key of a record, or a task, in {archive_path}, saw {name!r}", "`warpwright archive list` prints both"
            )
        return record, archive.records(record.task, device=record.device)


def _text_before(record: Record, records: list[Record]) -> Source | None:
    """Return the original's program from its own file, where no record holds it and the file is still the one that was recorded."""
    if explaining.original_of(record, records) is not None:
        return None
    try:
        if taskfile.changed(record.task):
            return None
        return Source("python", ((f"{record.task.name}.py", taskfile.source_text(record.task)),), "Model")
    except (WarpwrightError, OSError):
        return None


def _measured(args: Arguments, record: Record, records: list[Record]) -> list[Record]:
    """Measure what each step is worth, by taking it out; what the archive knows already is not measured again."""
    if record.status != "ok" or not record.candidate.actions:
        raise UsageError(f"expected a program that passed, made by steps, saw {record.status} by {record.candidate.proposer}", "leave --measure out")
    api.check_source(record.task)
    settings = api.settings_of(record)
    space = run.open_space(record.task, record.device)
    if space.limited:
        raise UsageError(f"the program cannot be read any more: {space.limited}", "leave --measure out")
    with run.open_evaluator(settings, record.task) as evaluator, Archive(args.archive) as archive:
        args.console.print(Text(f"measuring {len(record.candidate.actions)} steps of {record.key}"))
        steps = loop.ablate(record, space, evaluator, archive, known=records)
    return [step.without for step in steps]


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    parser = verb("explain", explain)
    parser.add_argument("record", metavar="RECORD", help="key of a record (its start is enough), a task's name for its best, or a report.json")
    parser.add_argument("--measure", action="store_true", help="measure the worth of steps that the archive does not know")
    parser.add_argument("--counters", action="store_true", help="ask NVIDIA's profiler too, where the driver permits it")
    parser.add_argument("--all", action="store_true", help="also facts that are the same before and after")

