"""Screening: measure many single steps from the recipe at hand, then those that helped, together; where a step gains little and costs little.

A step that gains less than two measurements can tell apart is kept if it seems to help: what is taken together is measured anew, and the recipe at
hand is thought less of when nothing near it comes up to what it was measured at (the winner of many noisy measurements was lucky).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from random import Random
from typing import Any

from warpwright.base import Record
from warpwright.search.moves import Moves, Proposer, Recipe, distinct
from warpwright.space import Space

WIDTH = 24
"""Steps that are measured from one recipe before the best are taken together."""

TOGETHER = (2, 3, 5, 8)
"""How many of the best steps are taken together."""

PATIENCE = 4
"""Rounds without progress after which the search goes on from a few random steps further."""

KICK = 3
LONGEST = 400
TRIES = 4

Measured = list[tuple[float, Recipe]]


def _speedup(measured: tuple[float, Recipe]) -> float:
    return measured[0]


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose the original, then rounds for ever; end where there is nothing but baselines."""
    moves = Moves(space, LONGEST)
    [first] = yield from moves.ask([()], 1)
    best: tuple[float, Recipe] = (first.speedup, ())
    here, idle = best, 0
    while space.draw is not None or moves.additions(()):
        measured = yield from _round(moves, rng, batch, here[1])
        top = max(measured, key=_speedup, default=here)
        at_best = here[1] == best[1]
        if top[0] > here[0]:
            here, idle = top, 0
        else:
            here, idle = (top[0], here[1]), idle + 1
        best = here if at_best else max(best, here, key=_speedup)
        if idle >= PATIENCE or not measured:
            here, idle = (yield from _kicked(moves, rng, best[1])), 0


def _round(moves: Moves, rng: Random, batch: int, recipe: Recipe) -> Generator[list[Recipe], list[Record], Measured]:
    """Measure steps from `recipe`, then the best of them together."""
    steps = list(islice(_new(moves, rng, recipe), WIDTH))
    records = yield from moves.ask(steps, batch)
    measured = sorted(((record.speedup, step) for record, step in zip(records, steps, strict=True)), key=_speedup, reverse=True)
    middle = measured[len(measured) // 2][0] if measured else 0.0
    added = [step[len(recipe) :] for speedup, step in measured if speedup > middle and step[: len(recipe)] == recipe]
    wanted = (recipe + sum(added[:count], ()) for count in TOGETHER if count <= len(added))
    together = [combined for combined in distinct(moves.repair(actions) for actions in wanted) if combined not in moves.known]
    records = yield from moves.ask(together, batch)
    return measured + [(record.speedup, combined) for record, combined in zip(records, together, strict=True)]


def _new(moves: Moves, rng: Random, recipe: Recipe) -> Iterator[Recipe]:
    """Yield recipes near `recipe` that were not measured: a step or, now and then, a few steps further, or one less."""
    for step in moves.neighbours(rng, recipe):
        longer = moves.walk(rng, rng.randint(1, KICK), step) if rng.random() < 0.25 else step
        if longer not in moves.known:
            yield longer


def _kicked(moves: Moves, rng: Random, best: Recipe) -> Generator[list[Recipe], list[Record], tuple[float, Recipe]]:
    """Return a recipe a few random steps away from the best or from the original, with its speed-up: a new one if one is found soon."""
    recipe: Recipe = ()
    for _ in range(TRIES):
        recipe = moves.walk(rng, rng.randint(1, KICK), best if rng.random() < 0.8 else ())
        if recipe not in moves.known:
            break
    [record] = yield from moves.ask([recipe], 1)
    return (record.speedup, recipe)
