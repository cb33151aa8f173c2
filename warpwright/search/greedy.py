"""Greedy search: from one recipe to the first better neighbour (one action more or one less), until there is none; then anew elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from random import Random
from typing import Any

from warpwright.base import Record
from warpwright.search.moves import Moves, Proposer, Recipe
from warpwright.space import Space

RESTART_STEPS, TRIES = 6, 20

Step = Generator[list[Recipe], list[Record], tuple[Recipe, float] | None]


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Climb from the original; at a local best, climb anew from a random recipe."""
    moves = Moves(space)
    [first] = yield from moves.ask([()], 1)
    yield from climb(moves, rng, batch, (), first.speedup)


def climb(moves: Moves, rng: Random, batch: int, recipe: Recipe, speedup: float) -> Proposer:
    """Climb from `recipe`, whose speed-up is known, and go on from random recipes for ever; end where there is nothing but baselines.

    What was proposed before is not proposed again, unless nothing else is found.
    """
    while moves.space.draw is not None or moves.additions(()):
        while (better := (yield from _step(moves, rng, batch, recipe, speedup))) is not None:
            recipe, speedup = better
        recipe = _elsewhere(moves, rng)
        [record] = yield from moves.ask([recipe], 1)
        speedup = record.speedup


def _elsewhere(moves: Moves, rng: Random) -> Recipe:
    """Return a random recipe, a new one if one is found soon."""
    walks = (moves.walk(rng, rng.randint(0, RESTART_STEPS)) for _ in range(TRIES))
    recipe: Recipe = ()
    for recipe in walks:
        if recipe not in moves.known:
            break
    return recipe


def _step(moves: Moves, rng: Random, batch: int, recipe: Recipe, speedup: float) -> Step:
    """Propose the neighbours that are new, in random order; return the best of the first batch that holds a better one, with its speed-up."""
    neighbours = (one for one in moves.neighbours(rng, recipe) if one not in moves.known)
    while asked := list(islice(neighbours, batch)):
        records = yield from moves.ask(asked, batch)
        best, recipe_tried = max(zip(records, asked, strict=True), key=lambda pair: pair[0].speedup)
        if best.speedup > moves.space.resolution * speedup:
            return recipe_tried, best.speedup
    return None
