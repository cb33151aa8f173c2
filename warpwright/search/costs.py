"""The cost model, corrected by what was measured while a search goes on: it ranks what was not tried yet.

    log(speed-up) = log(estimate of the original / estimate of the recipe) + sum of the weights of the recipe's techniques

The weights begin at 0 and are learned by recursive least squares, one record after another: where the cost model thinks too well of a technique on
this program, recipes with it come later. A recipe that did not pass teaches nothing: whether it errs too much often hangs on one other action.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from warpwright.search.moves import Moves, Recipe

PRIOR = 0.5
"""Variance of a weight before anything was measured: the cost model is thought right to a factor of about two, exp(0.7), for each technique."""

NOISE = 0.05
"""Variance of what remains: how techniques act on one another, and where they stand."""


class Costs:
    """What is expected of one space's recipes."""

    def __init__(self, moves: Moves, known: Mapping[Recipe, float] | None = None) -> None:
        """`known`: recipe -> speed-up, what is learned at once."""
        self.moves = moves
        self._weights: dict[str, float] = {}
        self._covariance: dict[str, dict[str, float]] = {}
        for recipe, speedup in (known or {}).items():
            self.learn(recipe, speedup)

    def factor(self, technique: str) -> float:
        """Return how many times as fast a program with a technique is as the cost model says."""
        return math.exp(self._weights.get(technique, 0.0))

    def gain(self, recipe: Recipe) -> float:
        """Return the log of the speed-up that is expected; -inf for a recipe without an estimate."""
        start, seconds = self.moves.estimate(()), self.moves.estimate(recipe)
        if start <= 0 or seconds <= 0:
            return -math.inf
        return math.log(start / seconds) + sum(self._weights.get(name, 0.0) for name in _techniques(recipe))

    def best(self, recipes: Sequence[Recipe]) -> Recipe:
        """Return the recipe of which most is expected; of equals, and where nothing is estimated, the first."""
        return max(recipes, key=self.gain)

    def learn(self, recipe: Recipe, speedup: float) -> None:
        """Take in what was measured of a recipe; 0 for one that did not pass."""
        expected, names = self.gain(recipe), _techniques(recipe)
        if speedup <= 0 or not names or math.isinf(expected):
            return
        for name in names:
            self._weights.setdefault(name, 0.0)
            self._covariance.setdefault(name, {name: PRIOR})
        shared = {one: sum(row.get(name, 0.0) for name in names) for one, row in self._covariance.items()}
        scale = NOISE + sum(shared[name] for name in names)
        error = math.log(speedup) - expected
        for one, row in self._covariance.items():
            self._weights[one] += shared[one] / scale * error
            for other in shared:
                row[other] = row.get(other, 0.0) - shared[one] * shared[other] / scale


def _techniques(recipe: Recipe) -> list[str]:
    return sorted({action.technique for action in recipe})
