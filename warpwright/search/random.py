"""Random search: independent random walks through the legal actions. The yardstick for every other search."""

from __future__ import annotations

from random import Random
from typing import Any

from warpwright.search.moves import Moves, Proposer, Recipe
from warpwright.space import Space

MOST_STEPS = 8
TRIES = 20


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose the original, then walks of 1 to MOST_STEPS actions; a walk seen before is drawn again up to TRIES times."""
    moves = Moves(space)
    seen: set[Recipe] = {()}
    yield [()]
    while True:
        asked: list[Recipe] = []
        for _ in range(batch):
            recipe: Recipe = ()
            for _ in range(TRIES):
                recipe = moves.walk(rng, rng.randint(1, MOST_STEPS))
                if recipe not in seen:
                    break
            seen.add(recipe)
            asked.append(recipe)
        yield asked
