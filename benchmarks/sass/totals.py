"""What schedules, hints and flags gain over the shipped cubin, kernel by kernel, and each kind of edit: from the rows of `benchmarks.sass.suite`.

    python -m benchmarks.sass.totals --run RUN [RUN ...] --out OUT      OUT/rows.jsonl is added to; rows of benchmarks.sass.variants count for flags
    python -m benchmarks.sass.totals --run RUN [RUN ...] --out OUT --judged     what was judged warm and cold, rows of benchmarks.sass.replay too

A kernel may have been searched several times, also as NAME__as (with the compiler's registers) and as NAME__flags (under other flags, measured
against the shipped cubin too); each column has the best of the final measurements, what is not proven counts as nothing. "Schedule alone" is without
other hints to the caches: of a schedule that has some, what it gains without them.
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
    """Is a judgement beyond what the original shows against itself, and not slower on cold caches (where earlier runs measured that at once)?"""
    warm = final is not None and not final["differ"] and final["interval"][0] > max(1.0, final["same_interval"][1])
    return warm and final is not None and ("cold" not in final or final["cold"][2] >= 1.0)


def cold_of(row: Row) -> Row | None:
    """Return what a row says of cold caches: the judgement does, in earlier runs what was measured apart."""
    cold = row["final"].get("cold")
    return {"speedup": cold[0], "interval": cold[1:]} if cold else apart(row, "cold")


def gained(said: Row | None) -> bool:
    """Is a cubin surely faster than the shipped one, with the same words?"""
    return said is not None and not said["differ"] and said["interval"][0] > 1.0


def totals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a row for each kernel, and one of geometric means."""
    kernels: dict[str, list[Row]] = {}
    for row in rows:
        if "error" not in row and row.get("row") in ("kernel", "variants"):
            kernels.setdefault(row["kernel"].partition("__")[0], []).append(row)
    made, means = [], []
    for name, those in sorted(kernels.items()):
        own = [row for row in those if not row["kernel"].endswith("__flags") and row.get("row") == "kernel"]
        if not own:
            continue
        hinted = fastest([row["final"] | {"cold": cold_of(row)} for row in own if proven(row.get("final"))])
        alone = fastest([apart(row, "without hints") or row["final"] for row in own if proven(row.get("final"))])
        flags = fastest([said for row in those for said in flags_of(row)])
        under = [row for row in those if proven(row.get("final")) and gained(row.get("both"))]
        both = fastest([row["both"] for row in under])
        shown = {
            "schedule alone %": told(alone),
            "with hints %": told(hinted),
            "the same, cold %": told(hinted["cold"]) if hinted and hinted["cold"] else "",
            "flags": flags["name"] if flags else "-O3",
            "flags alone %": told(flags),
            "schedule under flags, both %": told(both) if both else "",
        }
        best = fastest([said for said in (hinted, flags, both) if said])
        us = next(row.get("final", row)["original_us"] for row in reversed(own) if "original_us" in row)
        made.append({"table": "totals", "kernel": name, "us": f"{us:.1f}", **shown, "total %": told(best)})
        means.append([said["speedup"] if said else 1.0 for said in (alone, hinted, flags, best)])
    names = ("schedule alone %", "with hints %", "flags alone %", "total %")
    mean = {name: percent(statistics.geometric_mean(column)) for name, column in zip(names, zip(*means, strict=True), strict=True)}
    return [*made, {"table": "totals", "kernel": f"geometric mean of {len(means)}", **mean}]


def judged(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what each kernel's best kept schedule is worth warm and cold, by today's judgement, and a row of means: what has none counts as 1."""
    kernels: dict[str, list[Row]] = {}
    for row in rows:
        if "final" in row and (row.get("row") == "kernel" or row.get("table") == "replayed"):
            kernels.setdefault(row["kernel"].partition("__")[0], []).append(row)
    made, means = [], []
    for name, those in sorted(kernels.items()):
        kept = [row for row in those if (row["kept"] if "kept" in row else row.get("actions")) and proven(row["final"])]
        best = max(kept, key=lambda row: row["final"]["speedup"], default=None)
        alone = None if best is None else apart(best, "without hints")
        warm, cold = (best["final"], cold_of(best)) if best is not None else (None, None)
        made.append(
            {
                "table": "judged", "kernel": name, "us": f"{those[0]['final']['original_us']:.1f}",
                "judgements": sum(map(judgements, those)), "kept": len(kept),
                "best kept": "none" if best is None else "searched again" if best.get("row") == "kernel" else "an earlier run's",
                "warm %": told(warm), "without hints %": told(alone) if alone else "", "cold %": told(cold),
                "original against itself": span(warm["same_interval"]) if warm else "",
            }
        )  # fmt: skip
        means.append((warm["speedup"] if warm else 1.0, cold["speedup"] if cold else 1.0))
    mean = [percent(statistics.geometric_mean(column)) for column in zip(*means, strict=True)]
    sure = sum(row["best kept"] != "none" for row in made)
    return [*made, {"table": "judged", "kernel": f"geometric mean of {len(means)}", "kept": sure, "warm %": mean[0], "cold %": mean[1]}]


def judgements(row: Row) -> int:
    """Return how many schedules were judged until one was kept, or none was left."""
    if row.get("row") == "kernel":
        return len(row.get("refused", ())) + bool(row.get("actions"))
    return 1 + row["refused because"].count("without hints")


def apart(row: Row, name: str) -> Row | None:
    """Return what the suite measured apart of an accepted schedule, with the original against itself beside it; None where it did not."""
    said = row.get("apart", {}).get(name)
    return said | {"same_interval": row["final"]["same_interval"]} if said else None


def flags_of(row: Row) -> list[Row]:
    """Return what a row says of flags that surely gain."""
    if row["row"] == "variants":
        return [{"name": row["fastest"], **row["epochs"][row["fastest"]]}] if "fastest" in row else []
    flags = row.get("flags")
    return [flags] if flags and gained(flags) else []


def fastest(said: Sequence[Row]) -> Row | None:
    """Return what gains most of what surely gains."""
    sure = [one for one in said if gained(one) and one["interval"][0] > one.get("same_interval", (1.0, 1.0))[1]]
    return max(sure, key=lambda one: one["speedup"], default=None)


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
    parser.add_argument("--judged", action="store_true", help="the table of what was judged warm and cold alone")
    given = parser.parse_args()
    rows = [json.loads(line) for run in given.run for line in (run / "rows.jsonl").read_text().splitlines()]
    left = [row for row in rows if row.get("kernel") not in given.without.split(",")]
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "rows.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in (judged(left) if given.judged else (*totals(left), *kinds(rows))))


if __name__ == "__main__":
    main()
