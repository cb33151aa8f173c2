"""Records -> what people and programs read: the JSON line, the terminal table, markdown. The HTML page is in page.py.

Everything here is computed from records alone, so a report can be made again from the archive at any time.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpwright.base import BASELINE, IN_STRIDES, Action, Measurement, Record, Regime, Timing, from_json, is_baseline, to_json
from warpwright.loop import best as recommended
from warpwright.reports import summary

MARKS = {"FASTER": "bold green", "SLOWER": "red", "SAME": "dim", "UNSURE": "yellow"}

Line = dict[str, Any]

REASON_LENGTH, MOST_REASONS = 300, 20
_NUMBER = re.compile(r"[0-9.e+-]*[0-9]")


# --- one task -> one JSON object ---------------------------------------------------------------------------------------------------


def line(task_name: str, records: Sequence[Record], artifact: str | None = None, reason: str = "", chosen: Record | None = None) -> Line:
    """Return the JSON object of docs/cli.md for one task: what `chosen` (else the record to recommend) says, or why there is none."""
    record = chosen or recommended(records)
    speaking = record or _deciding(records)
    measured = record.measurement if record is not None else None
    verdict = speaking.verdict if speaking is not None else None
    timed = measured is not None and measured.unit == "s"
    line_of_task: Line = {
        "task": task_name,
        "status": speaking.status if speaking is not None else "unscored",
        "check": verdict.check if verdict else "",
        "case": verdict.case if verdict else "",
        "reason": _said(reason, speaking, record is not None),
        "verdict": measured.verdict if measured else None,
        "speedup": speedups(record),
        "baselines": {name: milliseconds(timing) for name, timing in measured.baselines.items()} if measured and timed else {},
        "not_counted": not_counted(measured) if measured and timed else {},
        "in_strides": [name for name in str(measured.conditions.get(IN_STRIDES, "")).split(",") if name] if measured else [],
        "error": verdict.error.max if verdict and verdict.error else None,
        "error_original": verdict.error_reference.max if verdict and verdict.error_reference else None,
        "recipe": [str(action) for action in speaking.candidate.actions] if speaking is not None else [],
        "artifact": artifact,
        "ours_ms": milliseconds(measured.candidate) if measured and timed else None,
        "regime": measured.conditions.get("regime", "single") if measured else None,
        "regimes": {name: in_regime(regime) for name, regime in measured.regimes.items()} if measured else {},
        "shapes": {name: in_regime(shape) for name, shape in measured.shapes.items()} if measured else {},
        "device": speaking.device if speaking is not None else None,
        "record": speaking.key if speaking is not None else None,
        "candidates": dict(Counter(record.status for record in records if not is_baseline(record))),
        "rejected": rejected(records),
        "left_out": [],
        "sandbox": (speaking.sandbox or None) if speaking is not None else None,
    }
    if record is not None and measured and is_baseline(record):  # the baseline is kept: it stands at exactly 1, whatever its own two timings said
        line_of_task |= {"recipe": [record.candidate.proposer], "verdict": "SAME", "reason": reason or _unproven(records)}
        line_of_task["speedup"] = {**speedups(record), "best": 1.0, "interval": [1.0, 1.0]}
    return finite(line_of_task)


def _said(reason: str, speaking: Record | None, passed: bool) -> str:
    """Return the reason; where nothing passed, after what the deciding record says."""
    if speaking is None:
        return reason or "no program was measured"
    if passed or not reason:
        return reason or speaking.detail
    return "; ".join(filter(None, [speaking.detail, reason]))


def not_counted(measured: Measurement) -> dict[str, dict[str, Any]]:
    """Return the baselines that were timed and no speed-up is over, for they were refused: `ms` and `why`, by name."""
    timed = {name: timing for name, timing in measured.baselines.items() if timing.samples and timing.note}
    return {name: {"ms": milliseconds(timing), "why": timing.note[:REASON_LENGTH]} for name, timing in timed.items()}


def rejected(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return why programs did not pass, each reason once: `status`, `check`, `reason` (its first line), how many, and the first one's recipe."""
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record in records:
        if is_baseline(record) or record.status == "ok":
            continue
        check = record.verdict.check if record.verdict else ""
        reason = record.headline[:REASON_LENGTH]
        one = groups.setdefault((record.status, check, _NUMBER.sub("#", reason)), {
            "status": record.status, "check": check, "reason": reason, "count": 0, "recipe": [str(action) for action in record.candidate.actions],
        })  # fmt: skip
        one["count"] += 1
    return sorted(groups.values(), key=lambda one: -int(one["count"]))[:MOST_REASONS]


def _deciding(records: Sequence[Record]) -> Record | None:
    """Return the record that says why nothing passed: an unscored one, else a program's, else whatever there is."""
    unscored = [record for record in records if record.status == "unscored"]
    programs = [record for record in records if not is_baseline(record)]
    return next(iter([*unscored, *programs, *records]), None)


def _unproven(records: Sequence[Record]) -> str:
    """Say so when a program seemed faster than the kept baseline, and could not be proven to be; or when none passed."""
    if records and not any(record.status == "ok" for record in records if not is_baseline(record)) and (why := rejected(records)):
        number = sum(one["count"] for one in why)
        return f"no other program passed, of {number}; {why[0]['count']} {why[0]['status']}: {why[0]['reason']}"
    passed = [record for record in records if record.status == "ok" and not is_baseline(record)]
    fallen = [record.detail for record in passed if record.detail.startswith("this call takes")]
    if fallen:
        return f"{len(fallen)} of the programs left their calls to the original: {fallen[0]}"
    unsure = [record for record in records if record.measurement is not None and record.measurement.verdict == "UNSURE" and record.status == "ok"]
    nearest = max((record for record in unsure if not is_baseline(record)), key=lambda record: record.speedup, default=None)
    if nearest is None or nearest.measurement is None or nearest.speedup <= 1.0:
        return ""
    low, high = nearest.measurement.interval
    note = nearest.measurement.conditions.get("note", "a longer --budget or a quieter machine may decide it")
    return f"not proven faster: {nearest.key} at {nearest.speedup:.2f}x [{low:.2f}, {high:.2f}]; {note}"


def speedups(record: Record | None) -> dict[str, Any]:
    """Return speed-ups over the best baseline and over eager, with the 95 % interval of each."""
    measured = record.measurement if record is not None else None
    if measured is None:
        return {"best": None, "eager": None, "interval": None, "eager_interval": None}
    eager, ours = measured.baselines.get("eager"), measured.candidate
    known = eager is not None and eager.samples and ours.median
    interval = summary.ratio_interval(eager.samples, ours.samples) if known and eager is not None else None
    paired = measured.conditions.get("speedup_over_eager")  # the median over pairs of neighbours in time, where the timer gave it
    return {
        "best": measured.speedup,
        "eager": paired or (eager.median / ours.median if known and eager is not None else None),
        "interval": list(measured.interval),
        "eager_interval": list(interval) if interval else None,
    }


def in_regime(regime: Regime) -> dict[str, Any]:
    """Return what a record says of one way of calling."""
    return {
        "ours_ms": regime.candidate * 1e3,
        "baselines": {name: seconds * 1e3 for name, seconds in regime.baselines.items()},
        "best_baseline": regime.best_baseline,
        "speedup": regime.speedup,
        "interval": list(regime.interval),
        "verdict": regime.verdict,
        "note": regime.note,
    }


def milliseconds(timing: Timing) -> float | None:
    """Return the median in ms; None where there are no samples."""
    return timing.median * 1e3 if timing.samples else None


def finite(value: Any) -> Any:
    """Return `value` with numbers that JSON cannot say (Inf, NaN) as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def document(line: Line, records: Sequence[Record]) -> str:
    """Return report.json: the line, and every record that it rests on."""
    return json.dumps(finite({**line, "records": [to_json(record) for record in records]}), indent=1) + "\n"


def read_record(data: Mapping[str, Any]) -> Record:
    """Return a record that `document` or `archive export` wrote; numbers that JSON cannot say come back as NaN."""
    record: Record = from_json(Record, _not_numbers(data))
    return record


def _not_numbers(data: Any) -> Any:
    """Put NaN where `finite` put None, in the places that hold numbers."""
    if isinstance(data, Mapping):
        holes = {"max", "rms", "centred", "median", "low", "high", "speedup"}
        return {name: math.nan if value is None and name in holes else _not_numbers(value) for name, value in data.items()}
    return [_not_numbers(value) for value in data] if isinstance(data, list) else data


# --- what the records of one task say together -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ablated:
    """What one action of a recipe is worth, read from the records."""

    action: Action
    gain: float | None
    """Speed-up with it over speed-up without it; None when it was not measured."""
    note: str


def ablation(record: Record, records: Iterable[Record]) -> list[Ablated]:
    """Return the worth of each action of the record's recipe: the record without it (and without what depended on it) is looked up."""
    recipe = record.candidate.actions
    here = [other for other in records if other.device == record.device]
    measured = {other.candidate.actions: other for other in here if not is_baseline(other)}
    if len(recipe) == 1:  # without its one step it is the original, which is timed as a baseline and not once more
        for other in here:
            if other.candidate.proposer == f"{BASELINE}eager":
                measured.setdefault((), other)
    measured.setdefault(recipe, record)
    return [_ablated(record, index, measured) for index in range(len(recipe))]


def _ablated(record: Record, index: int, measured: Mapping[tuple[Action, ...], Record]) -> Ablated:
    recipe = record.candidate.actions
    shorter = [actions for actions in measured if _lacks(actions, recipe, index)]
    if not shorter:
        return Ablated(recipe[index], None, "not measured without it")
    without = measured[max(shorter, key=len)]
    also = len(recipe) - 1 - len(without.candidate.actions)
    note = f"without it {also} more that need it go too" if also else ""
    if without.status != "ok" or not without.speedup:
        return Ablated(recipe[index], None, f"without it: {without.status}: {without.detail[:120]}")
    return Ablated(recipe[index], record.speedup / without.speedup, note)


def _lacks(actions: Sequence[Action], recipe: Sequence[Action], index: int) -> bool:
    """Is `actions` the recipe without the action at `index`, and perhaps without later ones?"""
    rest = iter(recipe[index + 1 :])
    return tuple(actions[:index]) == tuple(recipe[:index]) and all(any(later == action for later in rest) for action in actions[index:])


def by_task(records: Iterable[Record]) -> list[list[Record]]:
    """Return the records grouped by task and device, in order of appearance."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.task.key, record.device), []).append(record)
    return list(groups.values())


def lines(records: Iterable[Record]) -> list[Line]:
    """Return one line a task and device."""
    return [line(group[0].task.name, group) for group in by_task(records)]


# --- terminal and markdown ---------------------------------------------------------------------------------------------------------


def table(lines: Sequence[Line]) -> Table:
    """Return the lines as a terminal table, a row a task."""
    names = list(dict.fromkeys(name for one in lines for name in one["baselines"]))
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("task", overflow="fold")
    for head in (*(f"{name} ms" for name in names), "ours ms"):
        shown.add_column(head, justify="right")
    ways = summary.ways_of(lines)
    for head in (*ways, "vs best", "vs eager"):
        shown.add_column(head, justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    for one in lines:
        shown.add_row(*_cells(one, names, ways))
    return shown


def _cells(one: Line, names: Sequence[str], ways: Sequence[str]) -> list[Text]:
    times = [one["baselines"].get(name) for name in names]
    gain, eager, interval = one["speedup"]["best"], one["speedup"]["eager"], one["speedup"]["interval"]
    best = f"{gain:.2f}x [{interval[0]:.2f}, {interval[1]:.2f}]" if gain and interval else ""
    verdict = one["verdict"] or one["status"]
    return [
        Text(one["task"]),
        *(Text(f"{time:.3g}" if time else "-") for time in times),
        Text(f"{one['ours_ms']:.3g}" if one["ours_ms"] else "-"),
        *(_way(one.get("regimes", {}).get(name)) for name in ways),
        Text(best),
        Text(f"{eager:.2f}x" if eager else ""),
        Text(verdict, style=MARKS.get(verdict, "red")),
    ]


def _way(regime: Mapping[str, Any] | None) -> Text:
    """Return a regime's speed-up over the best baseline in it, in the colour of its own verdict."""
    return Text(f"{regime['speedup']:.2f}x", style=MARKS.get(regime["verdict"], "")) if regime else Text("-")


def print_table(lines: Sequence[Line], console: Console) -> None:
    """Print the table, what there is to say of single tasks, and the summary of several."""
    console.print(table(lines))
    for one in lines:
        if one["reason"]:
            console.print(Text(f"{one['task']}: {one['status']}: {one['reason']}"))
        for said in summary.refused_though_quicker(one):
            console.print(Text(f"{one['task']}: {said}"))
        for name, shape in (one.get("shapes") or {}).items():
            low, high = shape["interval"]
            gain = f"{shape['speedup']:.2f}x [{low:.2f}, {high:.2f}] of {shape['best_baseline']}"
            console.print(Text(f"{one['task']}: {name}: {shape['ours_ms']:.3g} ms, {gain}, {shape['verdict']}"))
        for what in one.get("left_out", ()):
            console.print(Text(f"{one['task']}: no time for {what}"))
    if len(lines) > 1:
        console.print(Text("\n" + summary.paragraphs(summary.summarise(lines)).rstrip()))


def markdown(lines: Sequence[Line]) -> str:
    """Return the summary and the table as markdown."""
    return f"{summary.paragraphs(summary.summarise(lines))}\n{summary.table(lines)}"
