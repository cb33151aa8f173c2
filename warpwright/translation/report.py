"""The report of a run, as JSON and as markdown. Every scored item counts in every mean, a failure as the reference itself (1.0)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from warpwright.translation.judge.judge import Row

CONTROL_BAND = 0.03
"""Largest distance from 1 of the reference timed against itself (geometric mean). Beyond it the run says nothing about speed."""


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean; 1 for no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0


def summary(rows: Sequence[Row], compiler: Mapping[str, Row]) -> dict[str, Any]:
    """Return the figures of one source over all its scored items. `compiler`: item -> the deterministic compiler's row."""
    scored = [row for row in rows if row.status != "unscored"]
    right = [row for row in scored if row.status == "ok"]
    timed = [row for row in right if row.speedup > 0]
    speeds = sorted(row.speedup for row in timed)
    beside = [row for row in timed if row.item in compiler and row.speedup > compiler[row.item].counted]
    return {
        "items": len(rows), "scored": len(scored), "unscored": len(rows) - len(scored), "built": sum(row.built for row in rows),
        "ran": sum(row.ran for row in scored), "correct": len(right), "statuses": dict(Counter(row.status for row in rows)),
        "faster_than_reference": sum(row.verdict == "FASTER" for row in timed), "faster_than_compiler": len(beside) if compiler else None,
        "geomean_of_all": geomean([row.counted for row in scored]) if timed else None,
        "median_of_correct": speeds[len(speeds) // 2] if speeds else None,
    }  # fmt: skip


def as_json(suite: str, rows: Sequence[Row], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole report as plain values."""
    sources = list(dict.fromkeys(row.source for row in rows))
    compiler = {row.item: row for row in rows if row.source == "compiler"}
    figures = {source: summary([row for row in rows if row.source == source], {} if source == "compiler" else compiler) for source in sources}
    controls = [row.counted for row in rows if row.source == "control" and row.speedup > 0]
    control = geomean(controls)
    return {
        "suite": suite, "conditions": dict(conditions), "control": control if controls else None,
        "valid": bool(controls) and abs(control - 1) <= CONTROL_BAND, "sources": figures,
        "rows": [{**asdict(row), "interval": list(row.interval)} for row in rows],
    }  # fmt: skip


def markdown(report: Mapping[str, Any]) -> str:
    """Return the report as markdown."""
    control = report["control"]
    if control is None:
        word = "No item was timed against itself: nothing is said of speed."
    elif report["valid"]:
        word = f"Control, the reference against itself: {control:.3f} (has to be 1.00 +- {CONTROL_BAND:.2f})."
    else:
        word = f"**Void**: the reference against itself came to {control:.3f}, not 1.00 +- {CONTROL_BAND:.2f}; the speeds below say nothing."
    lines = [f"# {report['suite']}", "", word, "", *(f"- {name}: {value}" for name, value in report["conditions"].items()), ""]
    lines += [
        "| source | scored | built | correct | geomean of all (failures 1.0) | median of correct | faster than reference | faster than compiler |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name, one in report["sources"].items():
        cells = (one["scored"], one["built"], one["correct"], _times(one["geomean_of_all"]), _times(one["median_of_correct"]))
        more = (one["faster_than_reference"], "-" if one["faster_than_compiler"] is None else one["faster_than_compiler"])
        lines.append(f"| {name} | {' | '.join(map(str, (*cells, *more)))} |")
    lines += ["", "| item | family | source | status | speed-up (95 % interval) | reference us | reason |", "|---|---|---|---|---|---|---|"]
    lines += [_row(row) for row in report["rows"]]
    return "\n".join([*lines, ""])


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _row(row: Mapping[str, Any]) -> str:
    speed = f"{row['speedup']:.2f}x ({row['interval'][0]:.2f}-{row['interval'][1]:.2f})" if row["speedup"] else "-"
    reason = str(row["reason"]).replace("|", "/").replace("\n", " ")[:160]
    microseconds = f"{row['reference_seconds'] * 1e6:.1f}" if row["reference_seconds"] else "-"
    return f"| {row['item']} | {row['family']} | {row['source']} | {row['status']} | {speed} | {microseconds} | {reason} |"
