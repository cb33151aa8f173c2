"""The rows of the suite: what became of the candidates, the tables of a result, a line for whoever waits."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from warpwright.base import Record
from warpwright.loop import Outcome

COUNTS = (30, 100, 300, 1000, 3000, 10_000)
"""Measurements after which a search's best so far is told."""


def table_rows(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kernel's rows of the result's tables."""
    return [{"table": "schedules", **_search(row), **_schedule(row)}, curve_row(row), flags_row(row)]


def flags_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the flags of a kernel gain, the schedule besides, and both."""
    return {"table": "flags", "kernel": row["kernel"], "search": row["search"], **_flags(row)}


def curve_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a search had reached after so many measurements."""
    reached = dict(row["curve"])
    return {"table": "searches", **_search(row), **{f"best of {count}": percent(reached[count]) for count in COUNTS if count in reached}}


def _search(row: Mapping[str, Any]) -> dict[str, Any]:
    rate = f"{row['proposals'] / row['search_s']:.0f}"
    began = {"began at %": percent(row["began_at"])} if row.get("began_at", 1.0) != 1.0 else {}
    return {"kernel": row["kernel"], "search": row["search"], "candidates": row["proposals"], "a second": rate, **began}


def _schedule(row: Mapping[str, Any]) -> dict[str, Any]:
    failed = sum(count for status, count in row["statuses"].items() if status != "ok")
    final = row.get("final")
    if final is None or not row.get("actions"):
        return {"failed": failed, "original us": f"{row['original_us']:.1f}", "gain %": "none found", "launches compared": 0, "other words": 0}
    return {
        "failed": failed,
        "original us": f"{final['original_us']:.1f}",
        "gain %": percent(final["speedup"]),
        "99 % interval": span(final["interval"]),
        "cold caches %": f"{percent(final['cold'][0])} ({span(final['cold'][1:])})",
        "original against itself": span(final["same_interval"]),
        "launches compared": final["launches"],
        "other words": final["differ"],
    }


def _flags(row: Mapping[str, Any]) -> dict[str, Any]:
    flags, both = row.get("flags"), row.get("both")
    return {
        "flags": flags["name"] if flags else "-O3",
        "gain of the flags %": f"{percent(flags['speedup'])} ({span(flags['interval'])})" if flags else "none",
        "gain of the schedule %": percent(row["final"]["speedup"]) if "final" in row else "none found",
        "both %": f"{percent(both['speedup'])} ({span(both['interval'])})" if both else "",
    }


def percent(speedup: float) -> str:
    """Return a speed-up as a gain."""
    return f"{100 * (speedup - 1):+.2f}"


def span(interval: Sequence[float]) -> str:
    """Return an interval of speed-ups as gains."""
    return f"{percent(interval[0])} to {percent(interval[1])}"


def counts(outcome: Outcome) -> dict[str, Any]:
    """Return how many candidates came to what."""
    statuses: dict[str, int] = defaultdict(int)
    for record in outcome.records:
        statuses[record.status] += 1
    found = outcome.best.speedup if outcome.best else 0.0
    reached = [count for count in COUNTS if count <= outcome.proposals]
    curve = [(count, round(best_of(outcome.records[: count + 1]), 5)) for count in reached]
    counted = {"curve": curve, "proposals": outcome.proposals, "statuses": dict(statuses), "best": found}
    return counted | {"search_s": outcome.seconds, "stopped": outcome.stopped}


def best_of(records: Sequence[Record]) -> float:
    """Return the greatest speed-up so far of what is proven faster; 1.0 where nothing is."""
    faster = (record.speedup for record in records if record.measurement is not None and record.measurement.verdict == "FASTER")
    return max(faster, default=1.0)


def edit_rows(name: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Return for each kind of last edit how often it was tried, how often it failed, and what it gained over the recipe before it."""
    speedups = {record.candidate.actions: record.speedup for record in outcome.records}
    kinds: dict[str, list[Record]] = defaultdict(list)
    for record in outcome.records:
        if record.candidate.actions:
            kinds[record.candidate.actions[-1].technique].append(record)
    return [{"row": "edits", "kernel": name, "kind": kind, **summary(records, speedups)} for kind, records in sorted(kinds.items())]


def summary(records: Sequence[Record], speedups: Mapping[Any, float]) -> dict[str, Any]:
    """Return the gains of some records over the recipes that they extend."""
    gains = [record.speedup / before for record in records if record.speedup and (before := speedups.get(record.candidate.actions[:-1], 0.0))]
    wrong = sum(record.status != "ok" for record in records)
    best, median = (max(gains), statistics.median(gains)) if gains else (0.0, 0.0)
    return {"tried": len(records), "failed": wrong, "best_gain": best, "median_gain": median}


def failed_rows(name: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Return the candidates that were not ok: on the GPU each shows a rule that the model misses."""
    rows = []
    for record in outcome.records:
        if record.status != "ok":
            actions = [str(action) for action in record.candidate.actions]
            row = {"row": "failed", "kernel": name, "status": record.status, "detail": record.detail[:200]}
            rows.append({**row, "actions": actions, "schedule": record.candidate.source.text})
    return rows


def line(row: Mapping[str, Any]) -> str:
    """Return a kernel's row in one line."""
    if "error" in row:
        return f"{row['kernel']:18} {row['error'][:300]}"
    flags = row.get("flags") or {"name": "-O3", "speedup": 1.0}
    if "proposals" not in row:
        return f"{row['kernel']:18} flags {flags['name']} {flags['speedup']:.4f}, not searched"
    head = f"{row['kernel']:18} {row['instructions']:5} instructions, {row['proposals']:5} proposals, {row['statuses']}"
    head += f", flags {flags['name']} {flags['speedup']:.4f}"
    if "final" not in row:
        return f"{head}, best {row['best']:.4f}"
    final = row["final"]
    low, high = final["interval"]
    gain = f"{final['speedup']:.4f} [{low:.4f}, {high:.4f}], A/A {final['same']:.4f}"
    return f"{head}, {gain}, {final['launches'] + row.get('more_launches', 0)} launches, {final['differ'] + row.get('more_differ', 0)} differ"
