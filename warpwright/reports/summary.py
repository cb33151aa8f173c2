"""Turns the outcome lines of many tasks into one table and a few honest numbers.

A line is the JSON object of docs/cli.md: task, status, reason, verdict, speedup, baselines, ours_ms, recipe ...
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.timing.regimes import LEAST

Line = Mapping[str, Any]

RESAMPLES = 4000
"""Bootstrap resamples: the interval's ends then move by less than 1 % of their distance between seeds."""


@dataclass(frozen=True)
class Mean:
    """Geometric mean of speed-ups, with the 95 % interval that resampling the tasks gives."""

    value: float
    low: float
    high: float
    tasks: int

    def __str__(self) -> str:
        return f"{self.value:.2f}x [{self.low:.2f}, {self.high:.2f}] over {self.tasks} tasks"


@dataclass(frozen=True)
class Summary:
    """What a run over many tasks came to."""

    statuses: Mapping[str, int]
    verdicts: Mapping[str, int]
    best: Mean | None
    """Against each task's best baseline. A task without a passing program counts as 1: its user keeps the baseline."""
    eager: Mean | None
    """Against eager."""
    below: tuple[str, ...]
    """Tasks whose program, or kept baseline, is below LEAST of the best baseline in a regime, which is named where it is not the declared one."""
    large: Mapping[float, int]
    """Factor over eager -> number of tasks that reach it."""


def summarise(lines: Sequence[Line]) -> Summary:
    """Return the counts and means of `lines`. Unscored tasks are counted by status and enter no mean."""
    scored = [line for line in lines if line["status"] != "unscored"]
    best = [speedup(line, "best") for line in scored]
    eager = [speedup(line, "eager") for line in scored]
    return Summary(
        statuses=dict(Counter(line["status"] for line in lines)),
        verdicts=dict(Counter(line["verdict"] for line in lines if line.get("verdict"))),
        best=geometric_mean(best),
        eager=geometric_mean(eager),
        below=tuple(said for line in scored for said in below(line)),
        large={factor: sum(value >= factor for value in eager) for factor in (1.1, 1.5, 2.0, 5.0, 10.0)},
    )


def speedup(line: Line, against: str) -> float:
    """Return a line's speed-up against "best" or "eager"; 1.0 for a task whose original is kept."""
    value = (line.get("speedup") or {}).get(against)
    return float(value) if value and line["status"] == "ok" else 1.0


def below(line: Line) -> list[str]:
    """Return what is said of a line whose program is below LEAST of its best baseline, once, or for each regime that is not the declared one."""
    if speedup(line, "best") < LEAST:
        return [f"{line['task']} ({speedup(line, 'best'):.2f}x)"]
    regimes = line.get("regimes") or {} if line["status"] == "ok" else {}
    return [f"{line['task']} ({name}, {one['speedup']:.2f}x)" for name, one in sorted(regimes.items()) if one["speedup"] < LEAST]


def refused_though_quicker(line: Line) -> list[str]:
    """Say of each baseline that took less time than the program of a line, and was refused, that no speed-up is over it, and why."""
    ours, refused = line.get("ours_ms"), line.get("not_counted") or {}
    quicker = {name: one for name, one in refused.items() if ours and one["ms"] and one["ms"] < ours}
    return [f"{name} took {one['ms']:.3g} ms, less than {ours:.3g}, and does not count: {one['why']}" for name, one in quicker.items()]


def geometric_mean(values: Sequence[float], seed: int = 0) -> Mean | None:
    """Return the geometric mean with its bootstrap interval, None for no values."""
    if not values:
        return None
    logs = [math.log(value) for value in values]
    rng = random.Random(seed)
    means = sorted(sum(rng.choices(logs, k=len(logs))) / len(logs) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    return Mean(math.exp(sum(logs) / len(logs)), math.exp(low), math.exp(high), len(logs))


def ratio_interval(numerator: Sequence[float], denominator: Sequence[float], seed: int = 0) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of median(numerator) / median(denominator).

    Samples of equal number come from the same rounds and are resampled in pairs, so that what slows a round cancels.
    """
    if not numerator or not denominator:
        return None
    rng = random.Random(seed)
    paired = len(numerator) == len(denominator)
    ratios = []
    for _ in range(400):
        picks = [rng.randrange(len(numerator)) for _ in numerator]
        others = picks if paired else [rng.randrange(len(denominator)) for _ in denominator]
        ratios.append(_median([numerator[i] for i in picks]) / _median([denominator[i] for i in others]))
    ratios.sort()
    return ratios[10], ratios[389]


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])


# --- markdown ----------------------------------------------------------------------------------------------------------------------


def table(lines: Sequence[Line]) -> str:
    """Return the lines as one markdown table, a row a task, in the order given."""
    baselines = _baseline_names(lines)
    ways = ways_of(lines)
    head = ["task", "status", *(f"{name} ms" for name in baselines), "ours ms", "vs best", "vs eager", *ways, "verdict", "recipe or reason"]
    rows = [_row(line, baselines, ways) for line in lines]
    return "\n".join(["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]) + "\n"


def ways_of(lines: Sequence[Line]) -> list[str]:
    """Return the regimes to show, where a line has more than one: that of its verdict says the same as the verdict otherwise."""
    return sorted({name for line in lines if len(line.get("regimes") or {}) > 1 for name in line["regimes"]})


def _way(regime: Mapping[str, Any] | None) -> str:
    return f"{regime['speedup']:.2f}x {regime['verdict']}" if regime else ""


def _baseline_names(lines: Sequence[Line]) -> list[str]:
    """Return the names of all baselines, eager first, the others in the order in which they appear."""
    names = dict.fromkeys(name for line in lines for name in line.get("baselines") or {})
    return sorted(names, key=lambda name: name != "eager")


def _row(line: Line, baselines: Iterable[str], ways: Iterable[str]) -> list[str]:
    times = line.get("baselines") or {}
    speedups = line.get("speedup") or {}
    recipe = "; ".join(line.get("recipe") or []) or ("as written" if line["status"] == "ok" else "")
    last_cell = recipe if line["status"] == "ok" else (line.get("reason") or "")
    return [
        line["task"],
        line["status"],
        *(_milliseconds(times.get(name)) for name in baselines),
        _milliseconds(line.get("ours_ms")),
        _times(speedups.get("best"), speedups.get("interval")),
        _times(speedups.get("eager"), speedups.get("eager_interval")),
        *(_way((line.get("regimes") or {}).get(name)) for name in ways),
        line.get("verdict") or "",
        _cell(last_cell),
    ]


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _times(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}x" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _cell(text: str, width: int = 160) -> str:
    """Return text that fits one cell: no line breaks, no bars, at most `width` letters."""
    flat = " ".join(text.replace("|", "\\|").split())
    return flat if len(flat) <= width else flat[: width - 3] + "..."


def paragraphs(summary: Summary) -> str:
    """Return a summary as markdown lines."""
    items = [f"- {name}: {text}" for name, text in (("against the best baseline", summary.best), ("against eager", summary.eager)) if text]
    items.append("- statuses: " + _counts(summary.statuses))
    if summary.verdicts:
        items.append("- verdicts against the best baseline: " + _counts(summary.verdicts))
    items.append("- over eager: " + ", ".join(f"{count} tasks at {factor:g}x or more" for factor, count in summary.large.items()))
    items.append("- below 0.98 of the best baseline: " + (", ".join(summary.below) or "none"))
    return "\n".join(items) + "\n"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def document(title: str, facts: Mapping[str, Any], lines: Sequence[Line]) -> str:
    """Return the results page: where and when it was measured, the summary, the unscored tasks with their reasons, the table."""
    where = "".join(f"- {name}: {value}\n" for name, value in facts.items())
    unscored = "".join(f"- {line['task']}: {_cell(line.get('reason') or '')}\n" for line in lines if line["status"] == "unscored")
    failed = "".join(
        f"- {line['task']} ({line['status']}): {_cell(line.get('reason') or '', 300)}\n" for line in lines if line["status"] not in ("ok", "unscored")
    )
    parts = [f"# {title}\n", where, "## Summary\n", paragraphs(summarise(lines))]
    parts += ["## Unscored tasks\n", unscored] if unscored else []
    parts += ["## Tasks without a passing program\n", failed] if failed else []
    refused = "".join(f"- {line['task']}: {_cell(said, 300)}\n" for line in lines for said in refused_though_quicker(line))
    parts += ["## Baselines that were quicker and do not count\n", refused] if refused else []
    return "\n".join([*parts, "## Tasks\n", table(lines)])
