"""The means of a drawn KernelBench run level by level, and over levels that count the same, however many tasks of each came to a verdict."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from warpwright.reports import summary

Row = Mapping[str, Any]


def view(rows: Sequence[Row], of: str | tuple[str, ...] | None = None, cut: str | None = None, brief: bool = False) -> str:
    """Return the table of levels, a line for all of them, and the tasks without a score; `of`: those of the rows called so, of several names the last
    that has a task. `cut`: rows called so are tasks that were begun and cut short, which count at 1.00x in a line of their own, as those without a
    score do there. `brief`: no more than levels and means."""
    lines = list({str(row["task"]): row for name in (of if isinstance(of, tuple) else (of,)) for row in rows if _is_of(row, name)}.values())
    levels: dict[str, list[Row]] = {}
    for line in sorted(lines, key=lambda line: str(line["task"])):
        levels.setdefault(line["task"].partition("_")[0].removeprefix("level"), []).append(line)
    columns = ("level", "tasks", "scored", "FASTER", "baseline kept", "against the best baseline", "against eager")
    cells = [_cells(level, own) for level, own in levels.items()]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *cells))
    scored = [[line for line in own if line["status"] != "unscored"] for own in levels.values()]
    means = [f"- {words}: {_over_levels([[summary.speedup(line, of) for line in own] for own in scored if own])}" for of, words in MEANS]
    means += _all_begun(lines, [row for row in rows if cut and row.get("table") == cut])
    if brief:
        return "\n\n".join([table, "\n".join(means)])
    unscored = [f"- {line['task']}: {' '.join(line['reason'].split())}" for line in lines if line["status"] == "unscored"]
    below = [said for own in scored for line in own for said in summary.below(line)]
    more = ["Unscored:", "\n".join(unscored)] if unscored else []
    return "\n\n".join([table, "\n".join(means), f"Below 0.98 of the best baseline: {', '.join(below) or 'none'}.", *more, summary.table(lines)])


def _is_of(row: Row, name: str | None) -> bool:
    return "task" in row and row.get("table") == name


MEANS = (("best", "levels counting the same, against the best baseline"), ("eager", "against eager"))


def _all_begun(lines: Sequence[Row], cut: Sequence[Row]) -> list[str]:
    """Return the line of all that was begun, where something was cut short."""
    levels: dict[str, list[float]] = {}
    for line in lines:
        levels.setdefault(line["task"].partition("_")[0], []).append(1.0 if line["status"] == "unscored" else summary.speedup(line, "best"))
    for row in cut:
        levels.setdefault(str(row.get("task") or row["begun"]).partition("_")[0], []).append(1.0)
    words = "the same of all that were begun, what was cut short or has no score at 1.00x"
    return [f"- {words}: {_over_levels(list(levels.values()))}"] if cut else []


def _cells(level: str, lines: Sequence[Row]) -> list[str]:
    scored = [line for line in lines if line["status"] != "unscored"]
    verdicts = Counter(str(line.get("verdict")) for line in scored)
    means = [summary.geometric_mean([summary.speedup(line, of) for line in scored]) for of, _ in MEANS]
    shown = [f"{mean.value:.2f}x [{mean.low:.2f}, {mean.high:.2f}]" if mean else "" for mean in means]
    return [level, str(len(lines)), str(len(scored)), str(verdicts["FASTER"]), str(len(scored) - verdicts["FASTER"]), *shown]


def _over_levels(levels: Sequence[Sequence[float]], seed: int = 0) -> str:
    """Return the geometric mean of the levels' geometric means, with the 95 % interval of drawing each level's tasks anew."""
    rng = random.Random(seed)
    logs = [[math.log(value) for value in own] for own in levels]

    def mean(drawn: Sequence[Sequence[float]]) -> float:
        return statistics.fmean(statistics.fmean(own) for own in drawn)

    anew = sorted(mean([rng.choices(own, k=len(own)) for own in logs]) for _ in range(summary.RESAMPLES))
    low, high = anew[int(0.025 * len(anew))], anew[int(0.975 * len(anew))]
    return f"{math.exp(mean(logs)):.2f}x [{math.exp(low):.2f}, {math.exp(high):.2f}] over {sum(map(len, levels))} tasks"
