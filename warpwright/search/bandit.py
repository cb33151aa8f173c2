"""A bandit over techniques: each step adds an action of the technique with the greatest upper confidence bound (UCB1) to one of the best recipes.

The reward of a step is the gain that it brought, as a share of the greatest one seen. What a technique gained on one recipe says where to look
first on the next; its parameters are drawn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random
from typing import Any

from warpwright.search.moves import Moves, Proposer, Recipe
from warpwright.space import Space

ELITE = 4
"""Recipes that are gone on from."""

EXPLORATION = 0.7
"""Weight of what is not known yet."""

TRIES = 20


class Arms:
    """What each technique gained so far."""

    def __init__(self) -> None:
        self.pulls: dict[str, int] = defaultdict(int)
        self.gains: dict[str, float] = defaultdict(float)
        self.largest = 1e-9

    def bound(self, technique: str) -> float:
        """Return the upper confidence bound of a technique's gain; infinite for one never tried."""
        pulls = self.pulls[technique]
        if pulls == 0:
            return math.inf
        return self.gains[technique] / pulls / self.largest + EXPLORATION * math.sqrt(math.log(sum(self.pulls.values())) / pulls)

    def learn(self, technique: str, before: float, after: float) -> None:
        """Take in a step: speed-ups before and after it; what did not pass has 0."""
        gain = max(0.0, math.log(after / before)) if before > 0 and after > 0 else 0.0
        self.pulls[technique] += 1
        self.gains[technique] += gain
        self.largest = max(self.largest, gain)


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose the original, then one action more on one of the best recipes for ever; a recipe without anything new is taken apart."""
    moves, arms = Moves(space), Arms()
    [first] = yield [()]
    known: dict[Recipe, float] = {(): first.speedup}
    while True:
        steps = [_step(moves, arms, rng, known) for _ in range(batch)]
        records = yield [recipe for recipe, _, _ in steps]
        for (recipe, parent, technique), record in zip(steps, records, strict=True):
            if technique and recipe not in known:
                arms.learn(technique, known[parent], record.speedup)
            known[recipe] = record.speedup


def _step(moves: Moves, arms: Arms, rng: Random, known: dict[Recipe, float]) -> tuple[Recipe, Recipe, str]:
    """Return a recipe, what it was made from, and the technique that was added; "" for a random walk, where nothing new was found soon."""
    elite = sorted(known, key=lambda recipe: -known[recipe])[:ELITE]
    for _ in range(TRIES):
        parent = rng.choice(elite)
        if parent and rng.random() < 0.2:
            place = rng.randrange(len(parent))
            parent = moves.repair(parent[:place] + parent[place + 1 :])
        if parent not in known:
            return parent, parent, ""
        longer = _additions(moves, rng, parent)
        fresh = [recipe for recipe in longer if recipe not in known]
        if fresh:
            best = max(arms.bound(recipe[-1].technique) for recipe in fresh)
            chosen = rng.choice([recipe for recipe in fresh if arms.bound(recipe[-1].technique) >= best])
            return chosen, parent, chosen[-1].technique
    walked = moves.walk(rng, rng.randint(1, 6))
    return walked, walked, ""


def _additions(moves: Moves, rng: Random, recipe: Recipe) -> list[Recipe]:
    """Return `recipe` with one legal action more, for each of them; in a space that draws, for some."""
    if moves.space.draw is None:
        return [longer for longer in moves.additions(recipe) if moves.legal(longer)]
    return [longer for longer in (moves.drawn(rng, recipe) for _ in range(TRIES)) if longer is not None]
