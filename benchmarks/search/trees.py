"""How well a learned cost model ranks programs that it never saw, beside the cost model alone and its corrections technique by technique.

    python -m benchmarks.search.trees --out OUT

Learned from the rows of 92 random programs on an H200 (configs/graphs*_h200.parquet); asked about these, a fifth held out at a time, and about
KernelBench's tasks, public models and large random programs that were recorded on an H200 (benchmarks/results/policy_large). Recipes are taken in the
order of what is expected, programs made twice once: `rank`, the mean correlation of ranks over programs that passed; `best of K`, the share of the
best recorded speed-up that the first K have, geometric means over tasks. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.recording import records
from warpwright.learn import trees
from warpwright.learn.policy import priors, rows
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.search.costs import at_its_word
from warpwright.search.moves import Recipe

ROOT = Path(__file__).parents[2]
TAUGHT = ("graphs_h200.parquet", "graphs_larger_h200.parquet")
ASKED = ("kernelbench", "kernelbench_second", "models", "large")
RATE = 4256
"""GB/s that copying moved there."""
FOLDS, LEAST = 5, 4
FIRST = (1, 2, 4, 8, 16)

Gain = Callable[[RecordedTask, Recipe], float]


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    taught = tasks_of([row for name in TAUGHT for row in rows.read(ROOT / "configs" / name)])
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "rows.jsonl").open("w") as file:
        for row in table(taught):
            file.write(json.dumps(row) + "\n")
            print(row, flush=True)


def table(taught: Sequence[RecordedTask]) -> Iterator[dict[str, Any]]:
    """Yield a row for each set of tasks and model."""
    held: dict[str, list[list[float]]] = {}
    for fold in range(FOLDS):
        rest = [task for number, task in enumerate(taught) if number % FOLDS != fold]
        for name, gain in gains(rest).items():
            held.setdefault(name, []).extend(scores(gain, [task for number, task in enumerate(taught) if number % FOLDS == fold]))
    yield from (shown("random programs, held out", name, found) for name, found in held.items())
    models = gains(taught)
    for asked in ASKED:
        file = ROOT / "benchmarks" / "results" / "policy_large" / f"{asked}.jsonl.gz"
        tasks = tasks_of([row for line in records.lines_of([file]) for row in records.rows_of(line, RATE)])
        yield from (shown(asked, name, scores(gain, tasks)) for name, gain in models.items())


def gains(taught: Sequence[RecordedTask]) -> dict[str, Gain]:
    """Return what each model expects of a task's recipe."""
    prior, learned = priors.learned(taught), trees.learned(taught)
    return {
        "cost model": lambda task, recipe: at_its_word(recipe, task.estimates[()], task.estimates[recipe]),
        "corrected by technique": lambda task, recipe: (
            at_its_word(recipe, task.estimates[()], task.estimates[recipe]) + sum(prior.mean(name) for name in {one.technique for one in recipe})
        ),
        "trees": lambda task, recipe: learned.gain(recipe, task.estimates[()], task.estimates[recipe]),
    }


def scores(gain: Gain, tasks: Sequence[RecordedTask]) -> list[list[float]]:
    """Return, for each task with enough programs, the correlation of ranks and the log shares."""
    found = []
    for task in tasks:
        recipes = [recipe for recipe in task.speedups if recipe and task.estimates.get(recipe, 0.0) > 0]
        passed = [recipe for recipe in recipes if task.speedups[recipe] > 0]
        if len(passed) < LEAST or task.estimates.get((), 0.0) <= 0:
            continue
        expected = {recipe: gain(task, recipe) for recipe in recipes}
        rank = correlation([expected[recipe] for recipe in passed], [task.speedups[recipe] for recipe in passed])
        line, seen = [1.0], {task.made(())}
        for recipe in sorted(recipes, key=lambda one: -expected[one]):
            if not task.made(recipe) or task.made(recipe) not in seen:
                seen.add(task.made(recipe))
                line.append(max(line[-1], task.speedups[recipe]))
        found.append([rank, *(math.log(line[min(count, len(line) - 1)] / task.best) for count in FIRST)])
    return found


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's correlation, equal numbers with their mean rank; 0 where one has no order."""
    ranks = [[sum(b < a for b in values) + (sum(b == a for b in values) - 1) / 2 for a in values] for values in (one, other)]
    return statistics.correlation(*ranks) if all(len(set(values)) > 1 for values in ranks) else 0.0


def shown(tasks: str, model: str, found: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the row of the means over tasks."""
    means = [statistics.mean(column) for column in zip(*found, strict=True)]
    shares = {f"best of {count}": round(math.exp(mean), 3) for count, mean in zip(FIRST, means[1:], strict=True)}
    return {"table": "trees", "tasks": tasks, "count": len(found), "model": model, "rank": round(means[0], 3), **shares}


if __name__ == "__main__":
    main()
