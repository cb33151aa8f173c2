"""What a proposer is told of a program: the first errors, the verdict with its worst element, or the times beside baselines and floor."""

from __future__ import annotations

from warpwright.base import Record

ERROR_LETTERS = 2500


def feedback(record: Record) -> str:
    """Return what became of a program, in a few lines that say what to do next."""
    if record.status != "ok":
        return errors_of(record)
    measured = record.measurement
    if measured is None:
        return "It is right; nothing was measured."
    low, high = measured.interval
    said = f"It is right, and {measured.verdict}: {measured.speedup:.2f} times [{low:.2f}, {high:.2f}] as fast as {measured.best_baseline}."
    return f"{said}\n{profile(record)}"


def errors_of(record: Record) -> str:
    """Return what a model is told of a failure: the first errors of a compiler, or the verdict with its case and its worst element."""
    verdict = record.verdict
    text = verdict.reason if verdict is not None and verdict.reason else record.detail
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [at for at, line in enumerate(lines) if "error" in line.lower()]
    kept = lines[max(0, marked[0] - 1) : marked[0] + 25] if record.status == "not_built" and marked else lines
    about = f"Case: {verdict.case}\n" if verdict is not None and verdict.case else ""
    return f"Status: {record.status}\n{about}" + "\n".join(kept)[:ERROR_LETTERS]


def profile(record: Record) -> str:
    """Return what was measured of a program, in a few lines."""
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
        lines.append(f"In the regime {name}: {regime.candidate * 1e6:.1f} us, {regime.speedup:.2f} times as fast as {regime.best_baseline}")
    return "\n".join(lines)
