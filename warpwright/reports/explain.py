"""Why a program is faster, from facts alone: times, roofline, what the compiler says before and after, and what each step is worth.

    explained = explain(record, records, facts=domains.facts)
    text(explained), document(explained)

Everything is read from records, and from texts that are compiled again; nothing is run. What an old record does not hold is said to be missing.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.base import BASELINE, Candidate, Measurement, Record, Scalar, Source, Task, is_baseline
from warpwright.reports import report
from warpwright.space import Facts
from warpwright.timing.counters import Counters

ORIGINAL = "eager"

DIFF_LINES = 80

FactsOf = Callable[[Task, Candidate, str], Facts]
CountersOf = Callable[[Record, Source], Counters]


@dataclass(frozen=True)
class Timed:
    """A program in one way of calling. Times in seconds a call."""

    regime: str
    program: str
    seconds: float
    over: float | None
    """Time of the program over that of the record explained."""


@dataclass(frozen=True)
class Changed:
    """One fact before and after; None where it is not known, or the part is not there."""

    part: str
    fact: str
    before: Scalar | None
    after: Scalar | None


@dataclass(frozen=True)
class Explanation:
    """What is known of why a record's program is as fast as it is."""

    record: Record
    headline: str
    times: tuple[Timed, ...]
    roofline: tuple[str, ...]
    changes: tuple[Changed, ...]
    about: str
    """How the changes were found."""
    steps: tuple[report.Ablated, ...]
    difference: tuple[str, ...]
    """Lines of a diff from the original to the program."""
    missing: tuple[str, ...]
    """What could not be said, and why."""


def explain(
    record: Record, records: Iterable[Record], facts: FactsOf | None = None, counters: CountersOf | None = None, original: Source | None = None
) -> Explanation:
    """Explain a record by itself and the other `records` of its task and device.

    `original`: the program before, where no record of the baseline holds it. `facts` and `counters` ask for what records do not hold.
    """
    same = [other for other in records if other.task.key == record.task.key and other.device == record.device]
    before = original_of(record, same) or original
    missing: list[str] = []
    changes, about = _changes(record, before, facts, missing)
    if counters is not None:
        changes += _counted(record, before, counters, missing)
    return Explanation(
        record, _headline(record), tuple(_times(record, missing)), tuple(_roofline(record, missing)), tuple(changes), about,
        tuple(_steps(record, same, missing)), tuple(_difference(record, before, missing)), tuple(dict.fromkeys(missing)),
    )  # fmt: skip


def original_of(record: Record, records: Iterable[Record]) -> Source | None:
    """Return the original's program, from the record of the baseline that is the original itself; None where none is kept."""
    same = (other for other in records if other.task.key == record.task.key and other.candidate.proposer == BASELINE + ORIGINAL)
    return next((other.candidate.source for other in same), None)


# --- the parts ------------------------------------------------------------------------------------------------------------------------


def _headline(record: Record) -> str:
    name, measured = record.candidate.proposer.removeprefix(BASELINE), record.measurement
    who = f"the baseline {name}" if is_baseline(record) else f"a program by {name}"
    if record.status != "ok":
        verdict = record.verdict
        where = f" (case {verdict.case})" if verdict is not None and verdict.case else ""
        return f"{record.task.name} on {record.device}: {who} did not pass: {record.status}{where}: {record.detail or 'no reason was kept'}"
    if measured is None:
        return f"{record.task.name} on {record.device}: {who} passed; it was not timed"
    low, high = measured.interval
    gain = f"{measured.speedup:.2f}x [{low:.2f}, {high:.2f}] of {measured.best_baseline}"
    return f"{record.task.name} on {record.device}: {who}, {measured.verdict}: {gain}"


def _times(record: Record, missing: list[str]) -> Iterable[Timed]:
    measured = record.measurement
    if measured is None:
        missing.append("times: the program was not timed")
        return
    if not measured.regimes:
        missing.append("ways of calling: the record is from before there were two; its times are of one")
        ours = measured.candidate.median
        yield Timed("", "this program", ours, 1.0)
        for name, timing in measured.baselines.items():
            if timing.samples:
                yield Timed("", name, timing.median, _ratio(timing.median, ours))
        return
    for regime, one in measured.regimes.items():
        yield Timed(regime, "this program", one.candidate, 1.0)
        for name, seconds in one.baselines.items():
            yield Timed(regime, name, seconds, _ratio(seconds, one.candidate))
    for regime in ("single", "stream"):
        if regime not in measured.regimes:
            why = measured.conditions.get(f"{regime}_left_out") or "the record has no such times"
            missing.append(f"times in the regime {regime}: {why}")


def _ratio(other: float, ours: float) -> float | None:
    return other / ours if ours > 0 and math.isfinite(other) else None


def _roofline(record: Record, missing: list[str]) -> Iterable[str]:
    measured = record.measurement
    if measured is None:
        return
    known = {name: value for name, value in measured.conditions.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    moved, peak = known.get("work_bytes", 0.0) + known.get("parameter_bytes", 0.0), known.get("peak_bytes_per_second", 0.0)
    if not moved > 0 or not peak > 0:
        missing.append(f"roofline: {measured.conditions.get('floor_note', 'the record has no bytes of the task, or no peaks of the device')}")
        return
    for regime, seconds in _own_times(measured):
        share = moved / peak / seconds
        yield f"{regime}: moving {moved / 1e6:.3g} MB at the measured {peak / 1e9:.4g} GB/s takes {100 * share:.3g} % of a call"
        flops, rate = known.get("work_flops", 0.0), known.get("peak_flops_per_second", 0.0)
        if flops > 0 and rate > 0:
            taken = flops / rate / seconds
            yield f"{regime}: the original's {flops / 1e9:.3g} GFLOP of products at the measured {rate / 1e12:.3g} TFLOP/s take {100 * taken:.3g} %"


def _own_times(measured: Measurement) -> list[tuple[str, float]]:
    pairs = [(name, one.candidate) for name, one in measured.regimes.items()] or [("a call", measured.candidate.median)]
    return [(name, seconds) for name, seconds in pairs if seconds > 0]


def _changes(record: Record, before: Source | None, facts: FactsOf | None, missing: list[str]) -> tuple[list[Changed], str]:
    """Return what the compiler says of the original and of the program, fact by fact."""
    if facts is None:
        return [], ""
    machine = record.versions.get("machine", "")
    after = facts(record.task, record.candidate, machine)
    missing += [f"after: {what}" for what in after.missing]
    if before is None:
        missing.append("facts before: the archive has no record of the original, and its file has changed or is gone")
        earlier = Facts({})
    elif before == record.candidate.source:
        earlier = after
    else:
        earlier = facts(record.task, Candidate(before, record.candidate.target), machine)
        missing += [f"before: {what}" for what in earlier.missing if what not in after.missing]
    changes = []
    for part in dict.fromkeys((*earlier.parts, *after.parts)):
        one, other = earlier.parts.get(part, {}), after.parts.get(part, {})
        changes += [Changed(part, fact, one.get(fact), other.get(fact)) for fact in dict.fromkeys((*one, *other))]
    return changes, after.about or earlier.about


def _counted(record: Record, before: Source | None, counters: CountersOf, missing: list[str]) -> list[Changed]:
    """Return what the profiler counted of both programs, as far as it is permitted here."""
    after = counters(record, record.candidate.source)
    earlier = counters(record, before) if before is not None and not after.problem else Counters({}, "")
    missing += [f"counters: {one.problem}" for one in (after, earlier) if one.problem]
    names = dict.fromkeys((kernel, name) for one in (earlier, after) for kernel, own in one.kernels.items() for name in own)
    return [Changed(kernel, name, earlier.kernels.get(kernel, {}).get(name), after.kernels.get(kernel, {}).get(name)) for kernel, name in names]


def _steps(record: Record, records: Sequence[Record], missing: list[str]) -> list[report.Ablated]:
    if is_baseline(record):
        missing.append("steps: a baseline is no recipe")
        return []
    if not record.candidate.actions:
        missing.append("steps: the program was written whole, there is no step to take out")
        return []
    if record.status != "ok":
        return []
    ablations = report.ablation(record, records)
    if any(step.gain is None and step.note == "not measured without it" for step in ablations):
        missing.append("the worth of some steps was not measured (explain --measure does it)")
    return ablations


def _difference(record: Record, before: Source | None, missing: list[str]) -> list[str]:
    if before is None:
        missing.append("what changed in the text: there is no record of the original")
        return []
    return changed_lines(before, record.candidate.source)


def changed_lines(before: Source, after: Source, most: int = DIFF_LINES) -> list[str]:
    """Return a diff of two programs, of the CUDA texts alone where both hold one; `most` lines of it."""
    one, other = (kernels_of(source) for source in (before, after))
    pair = (one, other) if one and other else (before.text, after.text)
    lines = list(difflib.unified_diff(pair[0].splitlines(), pair[1].splitlines(), "before", "after", "", "", 1, ""))
    return lines if len(lines) <= most else [*lines[:most], f"({len(lines) - most} more lines)"]


def kernels_of(source: Source) -> str:
    """Return the CUDA text that a generated program holds; "" where it holds none."""
    _, mark, rest = source.text.partition("\nCUDA_SOURCE = r'''")
    return rest.partition("'''")[0] if mark else ""


# --- as text, and as JSON --------------------------------------------------------------------------------------------------------------


def text(explanation: Explanation, all_facts: bool = False) -> str:
    """Return the explanation in words. Facts that did not change are left out, unless all are asked for."""
    parts = [explanation.headline]
    record = explanation.record
    when, fence = record.when or "at a time that was not kept", record.sandbox or "not kept in this record"
    parts.append(f"record {record.key}, measured {when}; sandbox: {fence}")
    parts += _block("Times of a call", [_time_line(one) for one in explanation.times])
    parts += _block("Roofline", explanation.roofline)
    shown = [one for one in explanation.changes if all_facts or one.before != one.after]
    same = len(explanation.changes) - len(shown)
    parts += _block(f"Before and after{f' ({explanation.about})' if explanation.about else ''}", [_change_line(one) for one in shown])
    if same:
        parts.append(f"  {same} facts are the same before and after")
    parts += _block("What each step is worth", [f"{step.action}: {_worth(step)}" for step in explanation.steps if step.action.technique != "write"])
    parts += _block("What changed in the text", explanation.difference)
    parts += _block("Not known", explanation.missing)
    return "\n".join(parts) + "\n"


def _block(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []


def _time_line(one: Timed) -> str:
    over = f", {one.over:.2f}x this program's" if one.over is not None and one.program != "this program" else ""
    return f"{f'{one.regime}: ' if one.regime else ''}{one.program} {one.seconds * 1e6:.4g} us{over}"


def _change_line(one: Changed) -> str:
    before, after = ("none" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for value in (one.before, one.after))
    return f"{one.part}: {one.fact} {before} -> {after}"


def _worth(step: report.Ablated) -> str:
    worth = f"{step.gain:.2f}x" if step.gain is not None else ""
    return "; ".join(filter(None, [worth, step.note])) or "not measured"


def document(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as an object for JSON."""
    record = explanation.record
    return report.finite({  # type: ignore[no-any-return]
        "record": record.key, "task": record.task.name, "device": record.device, "status": record.status, "when": record.when,
        "sandbox": record.sandbox, "headline": explanation.headline, "recipe": [str(action) for action in record.candidate.actions],
        "times": [{"regime": one.regime, "program": one.program, "us": one.seconds * 1e6, "over": one.over} for one in explanation.times],
        "roofline": list(explanation.roofline), "about": explanation.about,
        "facts": [{"part": one.part, "fact": one.fact, "before": one.before, "after": one.after} for one in explanation.changes],
        "steps": [{"action": str(step.action), "gain": step.gain, "note": step.note} for step in explanation.steps],
        "difference": list(explanation.difference), "missing": list(explanation.missing),
    })  # fmt: skip

