"""The cost model, corrected by what was measured while a search goes on: it ranks what was not tried yet.

    log(speed-up) = log(estimate of the original / estimate of the recipe) + sum of the weights of the recipe's techniques

The weights begin at 0, or at what other programs taught (`Prior`, learned by `learn/policy/priors.py`), and are learned by recursive least squares,
one record after another: where the cost model thinks too well of a technique on this program, recipes with it come later.

A recipe that did not pass teaches the weights nothing, but who is to blame: those of its techniques that stand in no recipe that passed share it, all
of them where there is none such. What is hoped of a recipe is weighed with its chance to pass,

    product over its techniques of (recipes with it that passed + TRUST) / (those + its part of the blame + TRUST)

so that a technique that the verifier refuses on this program does not take all evaluations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.search.moves import Moves, Recipe

PRIOR = 0.5
"""Variance of a weight before anything was measured: the cost model is thought right to a factor of about two, exp(0.7), for each technique."""

NOISE = 0.05
"""Variance of what remains: how techniques act on one another, and where they stand."""

TRUST = 4.0
"""Recipes that passed which a technique is credited with beforehand. With 1 in place of 4, 35 recorded tasks of which the fastest recipe's technique
was made to fail come to 0.98 of the best at 16 evaluations in place of 0.97 (0.94 without all this), but two whose recipes fail for want of one other
action lose it: 0.38 and 0.70 of the best in place of 1.00 and 0.76."""

OPTIMISM = 0.3
"""Standard deviations that are added to what is expected where the most hopeful recipe is asked for."""


@dataclass(frozen=True)
class Prior:
    """What is thought of the weights before anything of a program was measured: technique -> mean, variance."""

    weights: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise: float = NOISE

    def mean(self, technique: str) -> float:
        """Return the mean of a technique's weight; 0 of one that nothing is known of."""
        return self.weights[technique][0] if technique in self.weights else 0.0

    def variance(self, technique: str) -> float:
        """Return the variance of a technique's weight."""
        return self.weights[technique][1] if technique in self.weights else PRIOR


NOTHING = Prior()
"""The cost model is taken at its word."""


def at_its_word(_: Recipe, start: float, seconds: float) -> float:
    """Return the log of the speed-up by the estimates of the original and of a recipe alone."""
    return math.log(start / seconds)


Told = Callable[[Recipe, float, float], float]
"""Says the log of a recipe's speed-up, by the estimates of the original and of itself."""


class Costs:
    """What is expected of one space's recipes."""

    def __init__(self, moves: Moves, known: Mapping[Recipe, float] | None = None, prior: Prior = NOTHING, told: Told = at_its_word) -> None:
        """`known`: recipe -> speed-up, what is learned at once. `told`: what is corrected, such as a learned model (`trees.py`)."""
        self.moves, self.prior, self.told = moves, prior, told
        self._weights: dict[str, float] = {}
        self._covariance: dict[str, dict[str, float]] = {}
        self._passed: Counter[str] = Counter()
        """Technique -> recipes with it that passed."""
        self._failed: list[list[str]] = []
        """Techniques of each recipe that did not pass."""
        for recipe, speedup in (known or {}).items():
            self.learn(recipe, speedup)

    def factor(self, technique: str) -> float:
        """Return how many times as fast a program with a technique is as the cost model says, weighed with its chance to pass."""
        return math.exp(self._weight(technique)) * self._passes(technique)

    def gain(self, recipe: Recipe) -> float:
        """Return the log of the speed-up that is expected; -inf for a recipe without an estimate."""
        start, seconds = self.moves.estimate(()), self.moves.estimate(recipe)
        if start <= 0 or seconds <= 0:
            return -math.inf
        return self.told(recipe, start, seconds) + sum(map(self._weight, _techniques(recipe)))

    def hope(self, recipe: Recipe) -> float:
        """Return the log of the speed-up that a recipe may have: what is expected and OPTIMISM deviations more, so that the unknown is tried."""
        names = _techniques(recipe)
        shared = sum(self._shared(one, other) for one in names for other in names)
        return self.gain(recipe) + OPTIMISM * math.sqrt(max(0.0, shared) + self.prior.noise) + math.log(self.chance(recipe))

    def chance(self, recipe: Recipe) -> float:
        """Return how likely a recipe is to pass, by those of its techniques that failed on this program; 1 where nothing failed."""
        return math.prod(map(self._passes, _techniques(recipe)))

    def best(self, recipes: Sequence[Recipe]) -> Recipe:
        """Return the recipe of which most is expected, weighed with its chance to pass; of equals, and where nothing is estimated, the first."""
        return max(recipes, key=lambda recipe: self.gain(recipe) + math.log(self.chance(recipe)))

    def learn(self, recipe: Recipe, speedup: float) -> None:
        """Take in what was measured of a recipe; 0 for one that did not pass."""
        expected, names = self.gain(recipe), _techniques(recipe)
        if speedup <= 0:
            self._failed += [names] if names else []
            return
        self._passed.update(names)
        if not names or math.isinf(expected):
            return
        for name in names:
            self._weights.setdefault(name, self.prior.mean(name))
            self._covariance.setdefault(name, {name: self.prior.variance(name)})
        shared = {one: sum(row.get(name, 0.0) for name in names) for one, row in self._covariance.items()}
        scale = self.prior.noise + sum(shared[name] for name in names)
        error = math.log(speedup) - expected
        for one, row in self._covariance.items():
            self._weights[one] += shared[one] / scale * error
            for other in shared:
                row[other] = row.get(other, 0.0) - shared[one] * shared[other] / scale

    def _passes(self, technique: str) -> float:
        """Return how likely a technique is not to be what a recipe fails by."""
        blame = 0.0
        for names in self._failed:
            suspects = [name for name in names if not self._passed[name]] or names
            blame += (technique in suspects) / len(suspects)
        return (self._passed[technique] + TRUST) / (self._passed[technique] + blame + TRUST)

    def _weight(self, technique: str) -> float:
        return self._weights[technique] if technique in self._weights else self.prior.mean(technique)

    def _shared(self, one: str, other: str) -> float:
        """Return the covariance of two techniques' weights."""
        if one in self._covariance:
            return self._covariance[one].get(other, 0.0)
        return self.prior.variance(one) if one == other else 0.0


def _techniques(recipe: Recipe) -> list[str]:
    return sorted({action.technique for action in recipe})
