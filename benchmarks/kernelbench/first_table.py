"""The tables of `benchmarks.kernelbench.first`: of each task the faster of its programs that are right, and the geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.reports import summary

Row = Mapping[str, Any]

MODULES = Path(__file__).parents[1] / "kernels"
BASELINES = ("eager", "compile", "cuda_graph")
EARLIER = "earlier best"
"""What a run through the verifier says the best baseline would take, where a run of first programs timed none but eager."""
MOST_ERROR, MOST_DIFFERENCE = 2.0, 1e-6


def is_right(row: Row) -> bool:
    """Does the program err at most twice as much as the original, or differ from it by no more than float32 sums do?"""
    for seen in row["errors"].values():
        text = str(seen)
        if text.startswith("difference "):
            if float(text.removeprefix("difference ")) > MOST_DIFFERENCE:
                return False
        elif not isinstance(seen, int | float) or seen > MOST_ERROR:
            return False
    return True


def best(rows: Sequence[Row]) -> list[Row]:
    """Return of each task the fastest program that is right, or its first one."""
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    return [min([row for row in own if is_right(row)] or own[:1], key=lambda row: float(row["ours ms"])) for own in tasks.values()]


def view(rows: Sequence[Row], of: str, table: str = "first") -> str:
    """Return the means and the table of the rows called `table`, of a set's tasks: KernelBench's, or those of folders of benchmarks/kernels."""
    names = {path.stem for folder in of.split(",") for path in (MODULES / folder).glob("*.py")} if of != "kernelbench" else None
    mine = [row for row in rows if "task" in row and (row["task"].startswith("level") if names is None else row["task"] in names)]
    chosen = sorted(best([row for row in mine if row.get("table") == table]), key=lambda row: str(row["task"]))
    right = [row for row in chosen if is_right(row)]
    ended = [row for row in mine if row.get("table") in ("failed", "left out")] if table == "first" else []
    lost = sorted({f"{row['task']}: {row.get('reason', 'no time')[:160]}" for row in ended})
    slow = [str(row["task"]) for row in right if float(row["of best"]) < 0.98]
    best_mean, eager_mean = _mean(right, "of best"), _mean(right, "of eager")
    kept = math.exp(statistics.fmean(max(0.0, math.log(float(row["of best"]))) for row in right)) if right else math.nan
    gained = sum(float(row["of best"]) >= 1.02 for row in right)
    lines = [
        f"- {len(right)} tasks: {best_mean:.2f}x of this run's best baseline, {eager_mean:.2f}x of eager (geometric means)",
        f"- {gained} of {len(right)} gain 2 % or more; {kept:.2f}x where the baseline is kept in place of a program that loses to it",
        f"- first programs below 0.98 of the best baseline, which a search would not return: {', '.join(slow) or 'none'}",
        f"- not right, not counted: {', '.join(str(row['task']) for row in chosen if not is_right(row)) or 'none'}",
        *(f"- failed: {text}" for text in lost),
    ]
    published = names is None
    columns = ["task", *(f"{name} ms" for name in BASELINES), "ours ms", "of best", "errors of eager's", "recipe"]
    columns += ["published best baseline ms", "published ours ms"] if published else []
    cells = [[*(_cell(row, name) for name in columns)] for row in chosen]
    shown = [columns, ["---"] * len(columns), *cells]
    return "\n".join([*lines, "", *(f"| {' | '.join(line)} |" for line in shown)])


def whole(rows: Sequence[Row], run: str = "") -> str:
    """Return the means level by level over all tasks that were begun: what has no right program that gains stands at its best baseline. `run`: of the
    rows whose tables begin with that."""
    table, failed, nothing, left_out = (run + name for name in ("first", "failed", "nothing", "left out"))
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("table") in (table, failed, nothing) or (row.get("table") == left_out and row.get("begun")):
            tasks.setdefault(str(row["task"]), []).append(row)
    levels: dict[str, dict[str, tuple[float, float]]] = {}
    lost: dict[str, list[str]] = {"failed": [], "wrong": [], "slow": [], "cut": []}
    for task, own in sorted(tasks.items()):
        made = [row for row in own if row.get("table") == table and "of best" in row]
        right = [row for row in made if is_right(row)]
        if any(row.get("table") == failed for row in own):
            lost["failed"].append(task)
        if len(right) < len(made):
            lost["wrong"].append(task)
        if right and max(float(row["of best"]) for row in right) < 0.98:
            lost["slow"].append(task)
        if any(row.get("table") == left_out for row in own):
            lost["cut"].append(task)
        levels.setdefault(task.partition("_")[0], {})[task] = _gain(right, own)
    shown = [["level", "tasks begun", "gain 2 % or more", "of the best baseline", "of eager"], ["---"] * 5]
    for level, seen in sorted(levels.items()):
        gained = sum(best >= 1.02 for best, _ in seen.values())
        means = filter(None, [summary.geometric_mean([one[at] for one in seen.values()]) for at in (0, 1)])
        shown.append([level, str(len(seen)), str(gained), *(f"{mean.value:.2f}x [{mean.low:.2f}, {mean.high:.2f}]" for mean in means)])
    lines = [f"- {LOST[kind]}: {', '.join(names) or 'none'}" for kind, names in lost.items()]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in shown), "", *lines])


LOST = {
    "failed": "a program could not be made, or failed", "wrong": "a program is not right", "slow": "right, and all below 0.98 of the best baseline",
    "cut": "cut short, counted at 1.00x",
}  # fmt: skip


def _gain(right: Sequence[Row], own: Sequence[Row]) -> tuple[float, float]:
    """Return what is gained over the best baseline and over eager if a program that loses is left for that baseline."""
    timed = next((row for row in own if "eager ms" in row), None)
    if timed is None:
        return 1.0, 1.0
    eager, best = float(timed["eager ms"]), min(float(timed[f"{name} ms"]) for name in (*BASELINES, EARLIER) if f"{name} ms" in timed)
    ours = min([best, *(float(row["ours ms"]) for row in right)])
    return best / ours, eager / ours


def _mean(rows: Sequence[Row], name: str) -> float:
    return math.exp(statistics.fmean(math.log(float(row[name])) for row in rows)) if rows else math.nan


def _cell(row: Row, name: str) -> str:
    if name == "errors of eager's":
        return ", ".join(str(seen) for seen in row["errors"].values())
    seen = row.get(name)
    return "" if seen is None else f"{seen:.4g}" if isinstance(seen, float) else str(seen)
