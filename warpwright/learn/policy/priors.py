"""How far the cost model is right of each technique, learned from recorded tasks: where a search's corrections begin (`search/costs.py`).

A task's weights are drawn from one normal distribution for each technique, whose mean and variance are what is learned, by expectation and
maximisation; a technique that few tasks have stays near a weight of 0 with the variance PRIOR, as if SHRINK more tasks had said so. The noise is a
mean over tasks: one task of a thousand recipes that the cost model is far off counts as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from warpwright.learn.policy.recorded import RecordedTask
from warpwright.search.costs import NOISE, NOTHING, PRIOR, Prior

ROUNDS = 40

SHRINK = 2.0

Line = tuple[frozenset[str], float]
"""A program's techniques, and the log of its speed-up over what the cost model says."""


def learned(tasks: Iterable[RecordedTask]) -> Prior:
    """Return what the tasks say of the techniques; NOTHING where none has two programs with estimates."""
    import torch

    groups = [lines for task in tasks if len(lines := _lines(task)) > 1]
    names = sorted({name for lines in groups for techniques, _ in lines for name in techniques})
    if not names:
        return NOTHING
    number = {name: index for index, name in enumerate(names)}
    parts = [_matrices(lines, number, torch) for lines in groups]
    mean, variance, noise = torch.zeros(len(names), dtype=torch.float64), torch.full((len(names),), PRIOR, dtype=torch.float64), NOISE
    for _ in range(ROUNDS):
        total, squares, count = torch.zeros_like(mean), torch.full_like(mean, SHRINK * PRIOR), torch.full_like(mean, SHRINK)
        found, rest = [], 0.0
        for has, said, own in parts:
            spread = torch.linalg.inv(torch.diag(1 / variance[own]) + has.T @ has / noise)
            weights = spread @ (mean[own] / variance[own] + has.T @ said / noise)
            found.append((own, weights, spread))
            total[own] += weights
            count[own] += 1
            rest += float(((said - has @ weights) ** 2).sum() + (has @ spread * has).sum()) / len(said)
        mean = total / count
        for own, weights, spread in found:
            squares[own] += (weights - mean[own]) ** 2 + spread.diagonal()
        variance, noise = squares / count, rest / len(parts)
    return Prior({name: (round(float(mean[i]), 4), round(float(variance[i]), 4)) for name, i in number.items()}, round(noise, 5))


def _lines(task: RecordedTask) -> list[Line]:
    """Return a line for each program that passed, once."""
    start = task.estimates.get((), 0.0)
    lines: dict[tuple[float, float], Line] = {}
    for recipe, speedup in task.speedups.items():
        seconds = task.estimates.get(recipe, 0.0)
        if recipe and speedup > 0 and start > 0 and seconds > 0:
            told = math.log(start / seconds)
            lines.setdefault((speedup, round(told, 3)), (frozenset(action.technique for action in recipe), math.log(speedup) - told))
    return list(lines.values())


def _matrices(lines: Sequence[Line], number: dict[str, int], torch: Any) -> tuple[Any, Any, Any]:
    """Return which techniques each line has, among the task's own, what is said, and the numbers of those techniques."""
    own = sorted({number[name] for techniques, _ in lines for name in techniques})
    has = torch.tensor([[float(i in {number[name] for name in techniques}) for i in own] for techniques, _ in lines], dtype=torch.float64)
    return has, torch.tensor([said for _, said in lines], dtype=torch.float64), torch.tensor(own)
