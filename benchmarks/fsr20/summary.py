"""The rows of the suite's result from those of its runs: `python -m benchmarks.fsr20.summary RUN... --out benchmarks/results/fsr20_h200`.

A RUN is a file of rows, or a folder with rows.jsonl: of a probe, of the verifier (`audit`) or of a timer (`plain20`, benchmarks.fsr20.timed); of a
kernel that several have, the latest counts. A probe's winner is the fastest program that errs at most twice as much as the text as given. `--first
ROWS` is the run before there were templates, as a table of its own; `--kept ROWS` is an earlier summary, whose words on the same recipes stand where
no RUN has any. What stands in the repository comes from what else stands in it:

    python -m benchmarks.fsr20.summary benchmarks/fsr20/second.jsonl benchmarks/fsr20/third.jsonl \\
        --first benchmarks/fsr20/first.jsonl --kept benchmarks/results/fsr20_h200/rows.jsonl --out benchmarks/results/fsr20_h200
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cuda import plain20
from benchmarks.cuda.outside import short

Row = Mapping[str, Any]


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Return what a run printed."""
    file = run / "rows.jsonl" if run.is_dir() else run
    return [json.loads(line) for line in file.read_text().splitlines()]


def probes(runs: Sequence[Sequence[Row]]) -> dict[str, list[Row]]:
    """Return the programs of each kernel as the latest run that has it timed them."""
    found: dict[str, list[Row]] = {}
    for run in runs:
        for name in dict.fromkeys(row["task"] for row in run if row["table"] == "probe"):
            timed = [row for row in run if row["table"] == "probe" and row["task"] == name and "us" in row]
            if timed and timed[0]["recipe"] == []:
                found[name] = timed
    return found


def kernel_row(name: str, timed: Sequence[Row], runs: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Return a kernel's line."""
    given = timed[0]
    winner = plain20.winners_of([dict(row) for row in timed])[name]
    best = next(row for row in timed if row["recipe"] == winner)
    own = [row for run in runs for row in run if row.get("task") == name and plain20.as_listed(row.get("recipe", ())) == plain20.as_listed(winner)]
    said, judged = ([row for row in own if row["table"] == kind] for kind in ("audit", "plain20"))
    sides = {row["side"]: row for row in own if row["table"] == "timed" and "verdict" in row}
    us = float(best["us"])
    line: dict[str, Any] = {"table": "kernels", "kernel": name, "naive us": round(given["us"], 1), "ours us": round(us, 1)}
    line["speed-up"] = round(given["us"] / us, 2)
    if "roofline_us" in given:
        line |= {"roofline us": given["roofline_us"], "of the roofline": f"{100 * given['roofline_us'] / us:.0f} %"}
    if "reference_us" in given:
        line["torch us"] = round(given["reference_us"], 1)
    if "vendor" in given:
        called, time = vendor(given)
        line |= {"vendor": called, "vendor us": round(time, 1), "vendor / ours": round(time / us, 2)}
    line["verifier"] = next((row["status"] for row in said[::-1] if row["status"] != "not begun"), "ok" if judged else "-")
    if sides:
        line |= {f"over {side}": in_words(sides[side]) if side in sides else "" for side in ("naive", "torch", "vendor")}
    else:
        line["timer"] = timer(judged[-1]) if judged else "-"
    line["recipe"] = ", ".join(plain20.as_listed(winner)) or "as given"
    return line


def with_kept(line: dict[str, Any], kept: Sequence[Row]) -> dict[str, Any]:
    """Return a kernel's line with what an earlier summary has of the same recipe, where its own runs say nothing."""
    earlier = next((row for row in kept if row["table"] == "kernels" and (row["kernel"], row["recipe"]) == (line["kernel"], line["recipe"])), None)
    if earlier is None:
        return line
    said = {key: value for key, value in line.items() if value != "-" or key not in ("verifier", "timer")}
    ordered = {key: said.get(key, value) for key, value in earlier.items()}
    return ordered | {key: value for key, value in said.items() if key not in ordered}


def in_words(row: Row) -> str:
    """Return the device timer's verdict in a few words."""
    low, high = row["interval"]
    return f"{row['verdict']} {row['speedup']:.2f} [{low:.2f}, {high:.2f}]"


def vendor(given: Row) -> tuple[str, float]:
    """Return the fastest of the vendor's calls beside a kernel, torch's and CUB's own, and its time; "" and NaN where each failed."""
    timed = [(float(given[f"{kind}_us"]), str(given[kind])) for kind in ("vendor", "cub") if f"{kind}_us" in given]
    time, called = min(timed, default=(math.nan, ""))
    return called, time


def timer(row: Row) -> str:
    """Return the timer's verdict in a few words."""
    speedup = row.get("speedup") or {}
    if row.get("status") != "ok" or "best" not in speedup:
        return str(row.get("verdict") or row.get("status"))
    interval = speedup.get("interval") or (math.nan, math.nan)
    return f"{row.get('verdict')} {speedup['best']:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def headline(kernels: Sequence[Row]) -> dict[str, Any]:
    """Return the counts that were asked for, from the probe's times."""
    gains = [float(row["speed-up"]) for row in kernels]
    line: dict[str, Any] = {"table": "headline", "kernels": len(kernels), "verified": sum(row["verifier"] == "ok" for row in kernels)}
    if any("vendor / ours" in row for row in kernels):
        shares = [float(str(row.get("of the roofline", "0 %")).split()[0]) for row in kernels]
        beside = [float(row.get("vendor / ours", 0.0)) for row in kernels]
        near = sum(share >= 85 or ratio > 1 for share, ratio in zip(shares, beside, strict=True))
        line["85 % of the roofline, or faster than the vendor"] = near
        line["slower than 0.95 of the vendor"] = sum(ratio < 0.95 for ratio in beside)
    mean = round(math.exp(sum(map(math.log, gains)) / len(gains)), 2)
    return line | {"geometric mean over naive": mean, "best over naive": max(gains)}


def timed_headline(runs: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Return the same counts of the device timer: beside the library's own call, where there is one, and else beside torch's."""
    sides = {(row["task"], row["side"]): row for run in runs for row in run if row["table"] == "timed" and "verdict" in row}
    naive = [row for (_, side), row in sides.items() if side == "naive"]
    best = [sides.get((name, "vendor"), row) for (name, side), row in sides.items() if side == "torch"]
    gains = [float(row["speedup"]) for row in naive]
    made: dict[str, Any] = {"table": "timer", "kernels": len(naive), "FASTER than naive": sum(row["verdict"] == "FASTER" for row in naive)}
    made |= {"geometric mean": round(math.exp(sum(map(math.log, gains)) / len(gains)), 2), "best": max(gains)}
    for verdict in ("FASTER", "SAME", "SLOWER", "UNSURE"):
        made[f"{verdict} beside the vendor's call"] = sum(row["verdict"] == verdict for row in best)
    return made | {"least beside it": min(float(row["interval"][0]) for row in best)}


def budget_row(row: Row) -> dict[str, Any]:
    """Return a line of what the budget permits (benchmarks.fsr20.budget); errors are the largest of the case that decided."""
    errors = {kind: f"{row[kind]['max']:.2e}" if row.get(kind) else "" for kind in ("error", "error of the original")}
    said = {"program": row["program"], "verifier": row["status"], "case": row["case"]}
    return {"table": "budget", **said, **errors, "reason": short(str(row["reason"]))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--first", type=Path)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    runs = [rows_of(run) for run in options.runs]
    kept = rows_of(options.kept) if options.kept else []
    kernels = [with_kept(kernel_row(name, timed, runs), kept) for name, timed in sorted(probes(runs).items())]
    made: list[dict[str, Any]] = [headline(kernels), *kernels] if kernels else []
    counted = [timed_headline(runs)] if any(row["table"] == "timed" for run in runs for row in run) else []
    permitted = [budget_row(row) for run in runs for row in run if row["table"] == "budget"]
    made += [*(counted or [row for row in kept if row["table"] == "timer"]), *(permitted or [row for row in kept if row["table"] == "budget"])]
    if options.first:
        first = [rows_of(options.first)]
        made += [{**kernel_row(name, timed, first), "table": "first"} for name, timed in sorted(probes(first).items())]
    (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    print(json.dumps(made[:1]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
