"""How much there is to find in recorded spaces: how many programs are near the best, what chance alone finds of it, what tells fast from slow.

    python -m benchmarks.policy.recording.spaces --tasks OUT/tasks.jsonl[.gz] [...] --name second [--least 20] > ROWS.jsonl

`chance of one in 16`: that 16 programs drawn without repetition, each as likely, hold one that takes at most a twentieth longer than the best.
`mean program`: the geometric mean of all, the original's time for the wrong ones, as a share of the best. A set is the techniques of a program,
without their places and parameters; `explained by sets`: what part of the variance of the logs of the times a sum of weights of techniques takes
away (least squares in each task); `within a set`: the slowest over the fastest of programs of one set, the median of the sets of several.
`rank correlation`: of the cost model's estimates with the times. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.policy.recording import records
from benchmarks.policy.trained.large import MOVED, drift

DRAWN = 16

NEAR = 0.95
"""Share of the best from which a program is near it."""


def rows_of(lines: Sequence[Mapping[str, Any]], name: str, least: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each task of `least` programs or more, and one of their medians."""
    found = []
    for line in lines:
        count = len(line["programs"]) - 1
        programs = right(line)
        if count < least or not programs or abs(drift(line)) > MOVED:
            continue
        times = [one.us for one in programs]
        best, eager = min(times), line["eager us"]
        near = sum(1 for us in times if us <= best / NEAR)
        logs = [math.log(best / min(us, eager)) for us in times] + [math.log(best / eager)] * (count - len(times))
        starts, faster = {recipe[1] for recipe in line["recipes"] if len(recipe) > 1}, [us for us in times if us < eager]
        found.append({
            "table": f"{name}-spaces", "task": line["task"], "actions at the start": len(starts), "programs": count,
            "faster than the original": len(faster), "mean program": round(math.exp(statistics.mean(logs)), 2), "within 5 % of the best": near,
            "chance of one in 16": round(chance(count, near), 2), **said_of_sets(programs, best),
        })  # fmt: skip
    yield from found
    numbers = [key for key in found[0] if key not in ("table", "task")] if found else []
    medians = {key: round(statistics.median(row[key] for row in found), 2) for key in numbers}
    yield {"table": "spaces", "recorded": name, "tasks": len(found), **medians}


@dataclass(frozen=True)
class Program:
    """A program that is right."""

    techniques: frozenset[str]
    us: float
    estimate: float


def right(line: Mapping[str, Any]) -> list[Program]:
    """Return a line's right programs but the original, by the first recipe that makes each."""
    programs: dict[int, Program] = {}
    for (number, *actions), estimate in zip(line["recipes"], line["estimated us"], strict=True):
        if actions and 0 < number < len(line["programs"]) and line["programs"][number][0] == "ok" and number not in programs:
            techniques = frozenset(line["actions"][action].split("(")[0] for action in actions)
            programs[number] = Program(techniques, line["programs"][number][1], estimate)
    return list(programs.values())


def said_of_sets(programs: Sequence[Program], best: float) -> dict[str, float]:
    """Return how far the sets of techniques tell fast programs from slow ones."""
    sets: dict[frozenset[str], list[float]] = {}
    for one in programs:
        sets.setdefault(one.techniques, []).append(one.us)
    ratios = [max(times) / min(times) for times in sets.values() if len(times) > 1]
    logs = np.log([one.us for one in programs])
    names = sorted({name for one in programs for name in one.techniques})
    has = np.array([[1.0, *(float(name in one.techniques) for name in names)] for one in programs])
    rest = logs - has @ np.linalg.lstsq(has, logs, rcond=None)[0]
    measured, estimated = (np.argsort(np.argsort(values)).astype(np.float64) for values in (logs, np.array([one.estimate for one in programs])))
    return {
        "sets": len(sets), "sets within 5 %": sum(1 for times in sets.values() if min(times) <= best / NEAR),
        "techniques of the best": len(min(programs, key=lambda one: one.us).techniques),
        "explained by sets": round(1 - float((rest**2).sum() / max(((logs - logs.mean()) ** 2).sum(), 1e-12)), 2),
        "within a set": round(statistics.median(ratios), 2) if ratios else 1.0,
        "rank correlation": round(float(np.corrcoef(measured, estimated)[0, 1]), 2),
    }  # fmt: skip


def chance(count: int, near: int) -> float:
    """Return how likely it is that DRAWN of `count` hold one of `near`."""
    return 1 - math.comb(count - near, min(DRAWN, count)) / math.comb(count, min(DRAWN, count))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=Path, nargs="+", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--least", type=int, default=20)
    options = parser.parse_args()
    for row in rows_of(records.lines_of(options.tasks), options.name, options.least):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
