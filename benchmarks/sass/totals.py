"""What flags and schedules gain over the shipped cubin, kernel by kernel, and each kind of edit: from the rows of `benchmarks.sass.suite`.

    python -m benchmarks.sass.totals --run RUN --out OUT      RUN: of a folder that benchmarks.sass.flagged wrote; OUT/rows.jsonl is added to
    python -m benchmarks.sass.totals --run FIRST SECOND --out OUT      of a kernel in both, the second's row counts

A kernel's total is the greatest of three: the schedule's gain under the usual flags, the flags', and that of a schedule under those where one was
accepted; what is not proven counts as nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sass.rows import percent, span

Row = Mapping[str, Any]


def proven(final: Row | None) -> bool:
    """Is a final measurement beyond what the original shows against itself?"""
    return final is not None and not final["differ"] and final["interval"][0] > max(1.0, final["same_interval"][1])


def gained(said: Row | None) -> bool:
    """Is a cubin surely faster than the shipped one, with the same words?"""
    return said is not None and not said["differ"] and said["interval"][0] > 1.0


def totals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a row for each kernel, and one of geometric means."""
    kernels = {row["kernel"]: row for row in rows if row.get("row") == "kernel" and "error" not in row}
    made, means = [], []
    for name, row in kernels.items():
        if name.endswith("__flags"):
            continue
        other = kernels.get(f"{name}__flags", {})
        alone, flags, both = row.get("final") if proven(row.get("final")) else None, other.get("flags"), other.get("both")
        flags, both = (flags if gained(flags) else None), (both if gained(both) and proven(other.get("final")) else None)
        best = max((said for said in (alone, flags, both) if said), key=lambda said: said["speedup"], default=None)
        shown = {
            "schedule alone %": told(alone),
            "flags": flags["name"] if flags else "-O3",
            "flags alone %": told(flags),
            "schedule under them %": told(other["final"]) if both else "",
            "total %": told(best),
        }
        made.append({"table": "totals", "kernel": name, "us": f"{row['original_us']:.1f}", **shown})
        means.append([said["speedup"] if said else 1.0 for said in (alone, flags, best)])
    names = ("schedule alone %", "flags alone %", "total %")
    mean = {name: percent(statistics.geometric_mean(column)) for name, column in zip(names, zip(*means, strict=True), strict=True)}
    return [*made, {"table": "totals", "kernel": f"geometric mean of {len(means)}", **mean}]


def kinds(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a row for each kind of edit: how often it was a candidate's last, and the best step of a candidate over what it was made of."""
    every: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("row") == "edits":
            every.setdefault(row["kind"], []).append(row)
    made = []
    for kind, those in sorted(every.items()):
        top = sorted(those, key=lambda row: -row["best_gain"])[:3]
        steps = ", ".join(f"{percent(row['best_gain'])} {row['kernel'].replace('__flags', ' (flags)')}" for row in top if row["best_gain"] > 1.0)
        medians = statistics.median(row["median_gain"] for row in those if row["median_gain"])
        counted = {"tried": sum(row["tried"] for row in those), "failed": sum(row["failed"] for row in those)}
        made.append({"table": "kinds", "edit": kind, **counted, "median step %": percent(medians), "best steps %": steps})
    return made


def told(said: Row | None) -> str:
    """Return a gain with its 99 % interval."""
    return f"{percent(said['speedup'])} ({span(said['interval'])})" if said else "none"


def main() -> None:
    """Add the table to the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--without", default="", help="kernels, separated by commas")
    given = parser.parse_args()
    rows = [json.loads(line) for run in given.run for line in (run / "rows.jsonl").read_text().splitlines()]
    left = [row for row in rows if row.get("kernel") not in given.without.split(",")]
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "rows.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in (*totals(left), *kinds(rows)))


if __name__ == "__main__":
    main()
