"""Which techniques pay, together with which and in which order, by what bounds a program: from recorded times and from what the policies write.

    python -m benchmarks.policy.trained.insight --trained out/graphs --out OUT

Each program is one that the seed's policy was not trained on. What is written first is exact (exact.py), not drawn. `without`: the share of the best
recorded speed-up that the policy's first answer has when it may not write a technique, over what it has when it may (geometric means). What a
technique brings is measured of programs, not of policies: all recorded pairs of a recipe and the same recipe with one action more. Nothing is
measured here.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.trained.exact import probabilities
from benchmarks.policy.trained.habits import offered, winner
from warpwright.learn.policy import config, rows
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.learn.policy.train import split
from warpwright.policy.model import Policy
from warpwright.search.moves import Recipe

CONFIG = Path(__file__).parents[3] / "configs" / "graphs.toml"

BANDWIDTH = 0.5
"""Share of the bandwidth that the original needs for what every program moves, from which a program counts as bound by it."""

RARE = 2
"""Programs of a class that offer a technique, below which it is left out of the tables."""

Written = Mapping[str, Mapping[Recipe, float]]
"""Program -> recipe -> how probable it is as the first answer."""


def bound(task: RecordedTask) -> str:
    """Return what bounds the original of a task."""
    if (task.roof or 0.0) >= BANDWIDTH:
        return "bandwidth"
    if any(word.startswith("conv") for word in task.program):
        return "convolution"
    if {"matmul", "linear", "bmm"} & set(task.program):
        return "matrix product"
    return "chain of kernels"


CLASSES = ("matrix product", "convolution", "chain of kernels", "bandwidth")


def steps(tasks: Sequence[RecordedTask], name: str) -> tuple[list[float], list[float], int, int]:
    """Return the factors of one action `name` as the first of a recipe and as a later one, and of how many recipes with it how many were wrong."""
    first, later, wrong, count = list[float](), list[float](), 0, 0
    for task in tasks:
        for recipe, speedup in task.speedups.items():
            if not recipe or recipe[-1].technique != name or not task.speedups.get(recipe[:-1]):
                continue
            count += 1
            wrong += not speedup
            if speedup:
                (later if len(recipe) > 1 else first).append(speedup / task.speedups[recipe[:-1]])
    return first, later, wrong, count


def mass(written: Mapping[Recipe, float], which: Callable[[Recipe], bool]) -> float:
    """Return how probable it is that the first answer is one of some recipes."""
    return sum(share for recipe, share in written.items() if which(recipe))


def expected(task: RecordedTask, written: Mapping[Recipe, float], which: Callable[[Recipe], bool] = bool) -> float | None:
    """Return the mean logarithm of the first answer's share of the best, among the recipes that may be written; None where there is none.

    An answer that does not pass leaves the original.
    """
    whole = mass(written, which)
    if whole <= 0:
        return None
    return sum(share * math.log((task.speedups[recipe] or 1.0) / task.best) for recipe, share in written.items() if which(recipe)) / whole


def techniques(tasks: Sequence[RecordedTask], written: Written, all_tasks: Sequence[RecordedTask]) -> Iterator[dict[str, Any]]:
    """Yield a row for each class and technique. `tasks` were held out; what actions bring is of all recorded tasks of the class."""
    for kind in CLASSES:
        own, every = [task for task in tasks if bound(task) == kind], [task for task in all_tasks if bound(task) == kind]
        for name in sorted({name for task in own for name in offered(task)}):
            having = [task for task in own if name in offered(task)]
            if len(having) < RARE:
                continue
            first, later, wrong, count = steps(every, name)
            without = [_loss(task, written[task.name], name) for task in having]
            yield {
                "table": "techniques", "bound by": kind, "technique": name, "programs": len(having),
                "as first action": _factor(first), "added later": _factor(later), "wrong": f"{wrong} of {count}",
                "written": _share(mass(written[task.name], _with(name)) for task in having),
                "written first": _share(mass(written[task.name], _opening(name)) for task in having),
                "in the best recipe": _share(float(_has(winner(task), name)) for task in having),
                "without it": _factor([math.exp(one) for one in without if one is not None]),
            }  # fmt: skip


def _loss(task: RecordedTask, written: Mapping[Recipe, float], name: str) -> float | None:
    """Return the logarithm of what is left of the first answer's speed without a technique; None where nothing else can be written."""
    there, left = expected(task, written), expected(task, written, lambda recipe: not _has(recipe, name))
    return None if there is None or left is None else left - there


def _with(name: str) -> Callable[[Recipe], bool]:
    return lambda recipe: _has(recipe, name)


def _opening(name: str) -> Callable[[Recipe], bool]:
    return lambda recipe: recipe[0].technique == name


def _has(recipe: Recipe, name: str) -> bool:
    return any(action.technique == name for action in recipe)


def orders(tasks: Sequence[RecordedTask], written: Written) -> Iterator[dict[str, Any]]:
    """Yield a row for each class and pair of techniques, in the order in which they are written more: how often, and what that order is worth."""
    for kind in CLASSES:
        own = [task for task in tasks if bound(task) == kind]
        names = sorted({name for task in own for name in offered(task)})
        told: list[tuple[float, dict[str, Any]]] = []
        for one, other in ((a, b) for a in names for b in names if a != b):
            having = [task for task in own if any(_has(recipe, one) and _has(recipe, other) for recipe in task.speedups)]
            if len(having) < RARE:
                continue
            so, reverse = (
                _mean([mass(written[task.name], lambda recipe, a=a, b=b: _follows(recipe, a, b)) for task in having])  # type: ignore[misc]
                for a, b in ((one, other), (other, one))
            )
            if so >= LEAST_WRITTEN and so > reverse:
                both, turned = zip(*(_together(task, one, other) for task in having), strict=True)
                told.append((so, {
                    "table": "orders", "bound by": kind, "first": one, "then": other, "programs": len(having), "written so": f"{so:.2f}",
                    "the other way round": f"{reverse:.2f}", "both over the better alone": _factor([one for one in both if one]),
                    "this order over the other": _factor([one for one in turned if one]),
                }))  # fmt: skip
        yield from (row for _, row in sorted(told, key=lambda pair: -pair[0]))


LEAST_WRITTEN = 0.02
"""Probability of a pair as part of the first answer, below which it is left out."""


def _follows(recipe: Recipe, one: str, other: str) -> bool:
    names = [action.technique for action in recipe]
    return one in names and other in names[names.index(one) + 1 :]


def _together(task: RecordedTask, one: str, other: str) -> tuple[float, float]:
    """Return the best recipe with both over the best with one of them alone, and the best in this order over that in the other; 0 where none is."""

    def best(which: Callable[[Recipe], bool]) -> float:
        return max((speedup for recipe, speedup in task.speedups.items() if which(recipe)), default=0.0)

    alone = best(lambda recipe: _has(recipe, one) != _has(recipe, other))
    so, reverse = best(lambda recipe: _follows(recipe, one, other)), best(lambda recipe: _follows(recipe, other, one))
    return max(so, reverse) / alone if alone else 0.0, so / reverse if reverse else 0.0


def openings(tasks: Sequence[RecordedTask], written: Written, most: int = 4) -> Iterator[dict[str, Any]]:
    """Yield, for each class, the sequences of techniques that are written most, and what they are worth when their best parameters are taken."""
    for kind in CLASSES:
        own = [task for task in tasks if bound(task) == kind]
        found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
        for task in own:
            for names in {tuple(action.technique for action in recipe) for recipe in task.speedups if recipe}:
                alike = [recipe for recipe in task.speedups if tuple(action.technique for action in recipe) == names]
                share = sum(written[task.name].get(recipe, 0.0) for recipe in alike)
                found.setdefault(names, []).append((share, max(task.speedups[recipe] for recipe in alike) / task.best))
        for names, those in sorted(found.items(), key=lambda pair: -sum(share for share, _ in pair[1]))[:most]:
            passed = [value for _, value in those if value]
            yield {
                "table": "openings", "bound by": kind, "programs": f"{len(those)} of {len(own)}", "recipe": ", ".join(names),
                "written": _share(share for share, _ in those), "share of the best": _factor(passed).rstrip("x"),
            }  # fmt: skip


def classes(tasks: Sequence[RecordedTask], written: Written) -> Iterator[dict[str, Any]]:
    """Yield a row for each class."""
    for kind in CLASSES:
        own = [task for task in tasks if bound(task) == kind]
        if own:
            first = [one for task in own if (one := expected(task, written[task.name])) is not None]
            yield {
                "table": "classes", "bound by": kind, "programs": len(own), "best recorded": _factor([t.best for t in own]),
                "first answer's share of it": f"{math.exp(_mean(first)):.2f}",
                "actions in the best recipe": f"{_mean([len(winner(t)) for t in own]):.1f}",
            }  # fmt: skip


def _factor(values: Sequence[float]) -> str:
    return f"{math.exp(_mean([math.log(value) for value in values])):.2f}x" if values else "-"


def _share(values: Iterator[float]) -> str:
    return f"{_mean(list(values)):.2f}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    """Write OUT/insight.jsonl."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trained", type=Path, required=True, help="folder of `warpwright train --config configs/graphs.toml`")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    read = config.load(CONFIG)
    every = tasks_of(row for file in read.data.rows for row in rows.read(Path(read.folder) / file))
    held: dict[str, RecordedTask] = {}
    written: dict[str, dict[Recipe, float]] = {}
    for seed in read.seeds:
        policy = Policy.load(options.trained / f"seed_{seed}" / "contrastive")
        for task in split(every, read, seed)[1]:
            held[task.name], written[task.name] = task, probabilities(policy, task)
    tasks = list(held.values())
    found = [*classes(tasks, written), *openings(tasks, written), *techniques(tasks, written, every), *orders(tasks, written)]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "insight.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    for row in found:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
