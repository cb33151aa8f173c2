"""What a proposer is told of a program: the first errors, the verdict with its worst element, or the times beside baselines and floor.

    feedback(record)                                           one program
    feedback(record, facts=space.facts(...), before=parent)    with what the compiler says of it, and what changed since the program it came from
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from warpwright.base import Record, Scalar
from warpwright.space import Facts

ERROR_LETTERS = 2500

FIRST_ERRORS = 5
"""Of a compiler: the later ones are mostly consequences."""

AROUND = 2
"""Lines after an error that belong to it."""

DIFF_LINES = 60

_ERROR = re.compile(r"\b(?:fatal )?error\b\s*[:#(]|\berror\b", re.I)


def feedback(record: Record, facts: Facts | None = None, before: str = "", after: str = "") -> str:
    """Return what became of a program, in a few lines that say what to do next.

    `before` and `after`: texts of the program that this one was made from, and of this one, in the task's own language.
    """
    changed = changes(before, after)
    if record.status != "ok":
        return "\n".join(filter(None, [errors_of(record), changed]))
    measured = record.measurement
    if measured is None:
        return "\n".join(filter(None, ["It is right; nothing was measured.", changed]))
    low, high = measured.interval
    outcome = f"It is right, and {measured.verdict}: {measured.speedup:.2f} times [{low:.2f}, {high:.2f}] as fast as {measured.best_baseline}."
    return "\n".join(filter(None, [outcome, profile(record, facts), changed]))


def errors_of(record: Record) -> str:
    """Return what a model is told of a failure: the first errors of a compiler, or the verdict with its case and its worst element."""
    verdict = record.verdict
    text = verdict.reason if verdict is not None and verdict.reason else record.detail
    if record.status == "not_built":
        text = first_errors("\n".join(filter(None, [text, record.build.log if record.build is not None and record.build.log != text else ""])))
    about = f"Case: {verdict.case}\n" if verdict is not None and verdict.case else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return f"Status: {record.status}\n{about}{_errors(record)}" + "\n".join(lines)[:ERROR_LETTERS]


def _errors(record: Record) -> str:
    """Return the largest error beside the original's own, where the verdict has both."""
    verdict = record.verdict
    if verdict is None or verdict.error is None or verdict.error_reference is None:
        return ""
    return f"Largest error against float64: {verdict.error.max:.3g}; the original's own on the same inputs: {verdict.error_reference.max:.3g}\n"


def first_errors(text: str) -> str:
    """Return a compiler's first real errors, each with the line before it and the lines that show the place; a text without any as it is.

    What a log repeats is said once: errors in a text that was compiled twice, or that a traceback and a log both have.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    marked: dict[str, int] = {}
    for at, line in enumerate(lines):
        if _ERROR.search(line) and not re.match(r"\s*\d+ errors?\b|\s*raise |\s*File \"", line):
            marked.setdefault(line.strip(), at)
    if not marked:
        return "\n".join(lines)
    kept: list[int] = []
    for at in list(marked.values())[:FIRST_ERRORS]:
        kept += [place for place in range(max(0, at - 1), min(len(lines), at + 1 + AROUND)) if place not in kept]
    chosen = [lines[place] for place in sorted(kept)]
    more = len(marked) - FIRST_ERRORS
    return "\n".join([*chosen, *([f"({more} more errors)"] if more > 0 else [])])


def profile(record: Record, facts: Facts | None = None) -> str:
    """Return what was measured of a program, in a few lines, and what the compiler says of it where that is known."""
    measured = record.measurement
    if measured is None:
        return "Nothing was measured."
    lines = [f"Time of a call: {measured.candidate.median * 1e6:.1f} us"]
    lines += [f"Time of {name}: {timing.median * 1e6:.1f} us" for name, timing in measured.baselines.items() if timing.median == timing.median]
    floor = measured.conditions.get("floor_seconds", 0.0)
    if isinstance(floor, float) and floor > 0:
        share = floor / measured.candidate.median
        lines.append(f"Least time in which the machine can move the task's bytes: {floor * 1e6:.1f} us, {share:.0%} of the time of a call")
    for name, regime in measured.regimes.items() if len(measured.regimes) > 1 else ():
        position = f"; {floor / regime.candidate:.0%} of it is the least time" if isinstance(floor, float) and floor > 0 < regime.candidate else ""
        lines.append(f"In the regime {name}: {regime.candidate * 1e6:.1f} us, {regime.speedup:.2f} times as fast as {regime.best_baseline}{position}")
    return "\n".join([*lines, *static(facts)])


def static(facts: Facts | None) -> list[str]:
    """Return what the compiler says, a line a kernel, and what it does not."""
    if facts is None:
        return []
    about = f" ({facts.about})" if facts.about else ""
    lines = [f"{part}{about}: {_listed(own)}" for part, own in facts.parts.items()]
    return [*lines, *(f"Not known: {what}" for what in facts.missing)]


def _listed(own: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{fact} {value}" for fact, value in own.items())


def changes(before: str, after: str, most: int = DIFF_LINES) -> str:
    """Return what changed since the program that this one was made from, as a diff; "" where one of the two is not known."""
    if not before or not after:
        return ""
    if before.strip() == after.strip():
        return "Nothing changed since the program that it was made from."
    pair = (before.strip().splitlines(), after.strip().splitlines())
    lines = list(difflib.unified_diff(*pair, "before", "after", "", "", 0, ""))[2:]
    shown = lines if len(lines) <= most else [*lines[:most], f"({len(lines) - most} more lines)"]
    return "\n".join(["What changed since the program that it was made from:", *shown])
