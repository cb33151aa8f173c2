"""Evolve's longer runs in earlier rows, beside which the searches of `verified` stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.policy.live import probed
from warpwright.base import Action

LONGER = 256
"""Evaluations of a longer run at most; what stands as the number of an earlier one's."""

FOUND, ALIKE = 9, 3
"""Of the programs of a longer run the fastest that are looked at, and those among them that have the same techniques: where one is refused, the
others of its techniques mostly are."""

def fastest(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return task -> the fastest programs of the longer runs in some rows, the fastest first, few of the same techniques."""
    right = [line for line in lines if line["row"] == "evaluation" and line["told"] == "ok" and line["of"] > probed.EVALUATIONS]
    best: dict[str, list[str]] = {}
    alike: Counter[tuple[str, frozenset[str]]] = Counter()
    for line in sorted(right, key=lambda line: -line["speedup"]):
        kind = line["task"], frozenset(action.technique for action in parsed(line["recipe"]))
        if alike[kind] < ALIKE and len(best.setdefault(line["task"], [])) < FOUND:
            alike[kind] += 1
            best[line["task"]].append(line["recipe"])
    return best


def parsed(recipe: str) -> tuple[Action, ...]:
    """Return the recipe that a line tells."""
    return tuple(map(Action.parse, recipe.split("; ")))


def shown_as(recipe: Any) -> str:
    """Return a recipe as the lines have it."""
    return "; ".join(map(str, recipe))
