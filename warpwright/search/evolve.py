"""Evolution: a population of recipes; the better of two parents is mutated or crossed with another, and the worst of the old leave."""

from __future__ import annotations

from random import Random
from typing import Any

from warpwright.search.moves import Moves, Proposer, Recipe, ask
from warpwright.space import Space

POPULATION = 12
FOUNDERS = 6
CROSSED = 0.3
"""Share of children with two parents."""


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose founders (the original and random walks), then children for ever."""
    moves = Moves(space)
    founders: list[Recipe] = [(), *(moves.walk(rng, rng.randint(1, 4)) for _ in range(FOUNDERS - 1))]
    records = yield from ask(founders, batch)
    population = {recipe: record.speedup for recipe, record in zip(founders, records, strict=True)}
    while True:
        children = [_child(moves, rng, population) for _ in range(batch)]
        records = yield from ask(children, batch)
        population.update((recipe, record.speedup) for recipe, record in zip(children, records, strict=True))
        kept = sorted(population, key=lambda recipe: -population[recipe])[:POPULATION]
        population = {recipe: population[recipe] for recipe in kept}


def _child(moves: Moves, rng: Random, population: dict[Recipe, float]) -> Recipe:
    """Return a recipe that is not in the population, where one is found soon; else a fresh random walk."""
    for _ in range(10):
        parent = _tournament(rng, population)
        if rng.random() < CROSSED:
            other = _tournament(rng, population)
            child = moves.repair((*parent[: rng.randint(0, len(parent))], *other[rng.randint(0, len(other)) :]))
        else:
            child = _mutated(moves, rng, parent)
        if child not in population:
            return child
    return moves.walk(rng, rng.randint(1, 6))


def _tournament(rng: Random, population: dict[Recipe, float]) -> Recipe:
    return max((rng.choice(list(population)) for _ in range(2)), key=lambda recipe: population[recipe])


def _mutated(moves: Moves, rng: Random, parent: Recipe) -> Recipe:
    """Return `parent` with one action inserted, removed or replaced."""
    place = rng.randint(0, len(parent))
    kind = rng.choice(("insert", "insert", "remove", "replace"))
    if kind == "remove" and parent:
        place = rng.randrange(len(parent))
        return moves.repair(parent[:place] + parent[place + 1 :])
    head = moves.walk(rng, 1, parent[:place])
    return moves.repair((*head, *parent[place + (kind == "replace") :]))
