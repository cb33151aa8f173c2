"""The verb `compare`: two records side by side."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from warpwright import api
from warpwright.base import Measurement, Record
from warpwright.cli.common import DONE, Arguments, Verb, console, print_json
from warpwright.reports import report

DIFFERING = ("regime", "rounds", "floor_seconds", "overhead_seconds", "left_out")
"""Conditions of a measurement that are shown where they differ."""


def compare(args: Arguments) -> int:
    """Set two records side by side: times, speed-ups, recipes, and what they were measured under."""
    first, second = (api.record_of(name, args.archive) for name in (args.first, args.second))
    compared = comparison(first, second)
    if args.json:
        print_json(args, compared)
        return DONE
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", first.key, second.key):
        shown.add_column(head, overflow="fold")
    for name, (one, other) in compared["rows"].items():
        shown.add_row(Text(name), Text(one), Text(other), style="" if one == other else "bold")
    out = console()
    out.print(shown)
    for record, steps in ((first, compared["only_first"]), (second, compared["only_second"])):
        for step in steps:
            out.print(Text(f"only in {record.key}: {step}"))
    out.print(Text(compared["note"]))
    return DONE


def comparison(first: Record, second: Record) -> dict[str, Any]:
    """Return what the two have in common, and what not."""
    rows = {name: (one, other) for name, one, other in zip(_NAMES, _cells(first), _cells(second), strict=True)}
    steps = [[str(action) for action in record.candidate.actions] for record in (first, second)]
    for name in DIFFERING:
        values = [str(record.measurement.conditions.get(name, "")) if record.measurement else "" for record in (first, second)]
        if values[0] != values[1]:
            rows[name] = (values[0], values[1])
    ratio, note = _ratio(first, second)
    return {
        "first": report.line(first.task.name, [first], chosen=first), "second": report.line(second.task.name, [second], chosen=second),
        "rows": rows, "only_first": [step for step in steps[0] if step not in steps[1]],
        "only_second": [step for step in steps[1] if step not in steps[0]], "ratio": ratio, "note": note,
    }  # fmt: skip


_NAMES = ("task", "status", "device", "when", "torch", "time of a call", "best baseline", "speed-up", "verdict", "steps")


def _cells(record: Record) -> tuple[str, ...]:
    measured = record.measurement
    steps = str(len(record.candidate.actions)) if record.candidate.actions else record.candidate.proposer
    about = (record.task.name, record.status, record.versions.get("machine", record.device), record.when, record.versions.get("torch", ""))
    if measured is None:
        return (*about, "", "", "", record.detail[:120], steps)
    low, high = measured.interval
    time = f"{measured.candidate.median * 1e3:.4g} ms [{measured.candidate.low * 1e3:.4g}, {measured.candidate.high * 1e3:.4g}]"
    return (*about, time, measured.best_baseline, f"{measured.speedup:.3f}x [{low:.3f}, {high:.3f}]", measured.verdict, steps)


def _ratio(first: Record, second: Record) -> tuple[float | None, str]:
    """Return how much faster the second is, through a baseline that both were timed beside, and what that is worth."""
    if first.measurement is None or second.measurement is None:
        return None, "one of the two was not measured"
    if first.task.key != second.task.key:
        return None, "they are programs of different tasks: their times have nothing to do with one another"
    if first.device != second.device or first.versions.get("machine") != second.versions.get("machine"):
        return None, "they were measured on different machines: compare their speed-ups, not their times"
    common = [name for name in first.measurement.baselines if _timed(first.measurement, name) and _timed(second.measurement, name)]
    if not common:
        return None, "they were timed beside different baselines"
    gains = [record.baselines[common[0]].median / record.candidate.median for record in (first.measurement, second.measurement)]
    apart = first.measurement.interval[1] < second.measurement.interval[0] or second.measurement.interval[1] < first.measurement.interval[0]
    ratio_text = f"the second is {gains[1] / gains[0]:.2f}x as fast as the first, through {common[0]}, beside which both were timed"
    return gains[1] / gains[0], f"{ratio_text}; {'their intervals part' if apart else 'their intervals overlap: that may be chance'}"


def _timed(measurement: Measurement, name: str) -> bool:
    return name in measurement.baselines and bool(measurement.baselines[name].samples)


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    parser = verb("compare", compare)
    parser.add_argument("first", metavar="A", help="key of a record (its start is enough), or a report.json")
    parser.add_argument("second", metavar="B", help="another one")
