"""Simulated annealing: one step at a time from the recipe at hand; a worse one is taken with a chance that falls with the loss and with time."""

from __future__ import annotations

import itertools
import math
from random import Random
from typing import Any

from warpwright.search.moves import Moves, Proposer, Recipe
from warpwright.space import Space

WARMTH = 10.0
"""The first temperature, in multiples of what can be told apart."""

COOLING = 0.995
"""The temperature falls by this factor at each step; at the lowest the search starts anew, from the original and from the
best recipe in turn: the best one may lie behind a step that costs too much to take back."""

COLDEST = 0.2


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose the original, then neighbours of the recipe at hand for ever."""
    moves, unit = Moves(space), math.log(space.resolution)
    [first] = yield [()]
    origin: tuple[Recipe, float] = ((), first.speedup)
    here, best, warmth = origin, origin, WARMTH
    starts = itertools.cycle((True, False))
    while True:
        asked = [_neighbour(moves, rng, here[0]) for _ in range(batch)]
        records = yield asked
        for recipe, record in zip(asked, records, strict=True):
            warmth *= COOLING
            if record.speedup and _taken(rng, math.log(record.speedup / here[1]) if here[1] else 0.0, warmth * unit):
                here = recipe, record.speedup
                best = max(best, here, key=lambda pair: pair[1])
        if warmth < COLDEST:
            here, warmth = origin if next(starts) else best, WARMTH


def _neighbour(moves: Moves, rng: Random, recipe: Recipe) -> Recipe:
    """Return `recipe` with an action more or, one time in five, less, or with one for another."""
    turn = rng.random()
    if recipe and turn < 0.4:
        place = rng.randrange(len(recipe))
        shorter = moves.repair(recipe[:place] + recipe[place + 1 :])
        return shorter if turn < 0.2 else moves.walk(rng, 1, shorter)
    longer = moves.walk(rng, 1, recipe)
    return longer if longer != recipe else moves.walk(rng, 2)


def _taken(rng: Random, gain: float, temperature: float) -> bool:
    return gain >= 0 or rng.random() < math.exp(gain / temperature)
