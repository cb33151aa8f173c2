"""How much there is to find in recorded spaces: how many of a task's programs are near its best, and what chance alone finds of it.

    python -m benchmarks.policy.spaces --tasks OUT/tasks.jsonl[.gz] [...] --name second [--least 20] > ROWS.jsonl

`chance of one`: that 16 programs drawn without repetition, each as likely, hold one that takes at most a twentieth longer than the best.
Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy import records
from benchmarks.policy.large import MOVED, drift

DRAWN = 16


def rows_of(lines: Sequence[Mapping[str, Any]], name: str, least: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each task of `least` programs or more, and one of them all."""
    found = []
    for line in lines:
        right = [us for told, us in line["programs"][1:] if told == "ok"]
        count = len(line["programs"]) - 1
        if count < least or not right or abs(drift(line)) > MOVED:
            continue
        near = sum(1 for us in right if us <= min(right) / 0.95)
        found.append({
            "table": f"{name}-spaces", "task": line["task"], "programs": count, "not right": count - len(right), "within 5 % of the best": near,
            "faster than the original": sum(1 for us in right if us < line["eager us"]), "chance of one in 16": round(chance(count, near), 2),
            "actions at the start": len({tuple(recipe[1:2]) for recipe in line["recipes"] if len(recipe) > 1}),
        })  # fmt: skip
    yield from found
    numbers = [key for key in found[0] if key not in ("table", "task")] if found else []
    medians = {key: round(statistics.median(row[key] for row in found), 2) for key in numbers}
    yield {"table": f"{name}-spaces", "task": f"median of {len(found)}", **medians}


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
