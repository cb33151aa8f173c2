"""Evolution on islands: each keeps the best recipe of every set of techniques; children have one parent that is changed, or two that are crossed.

An archive by sets of techniques keeps apart what is alike but for parameters, so that a population does not fill with variants of one recipe. Islands
go their own ways, in turn; now and then the best of each comes to the next.

`ranked` is the same with a cost model: a founder or a child is the one of BROOD of which most is expected (`costs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from warpwright.search.costs import Costs, Told, at_its_word
from warpwright.search.moves import Moves, Proposer, Recipe, ask, distinct
from warpwright.space import Space

ISLANDS = 3

POPULATION = 12
"""Sets of techniques on an island: the worst beyond it leaves."""

FOUNDERS = 2
"""Random walks that an island begins with, beside the original."""

MIGRATION = 12
"""Children of an island between two arrivals."""

CROSSED = 0.3
"""Share of children with two parents."""

BROOD = 8
"""Recipes of which `ranked` proposes one."""

Techniques = frozenset[str]


@dataclass
class Island:
    """An archive of recipes."""

    best: dict[Techniques, tuple[Recipe, float]] = field(default_factory=dict)
    children: int = 0

    def take(self, recipe: Recipe, speedup: float) -> None:
        """Keep a recipe where it is the best of its techniques; the island holds POPULATION of them."""
        techniques = frozenset(action.technique for action in recipe)
        known = self.best.get(techniques)
        if known is None or speedup > known[1]:
            self.best[techniques] = recipe, speedup
        if len(self.best) > POPULATION:
            del self.best[min(self.best, key=lambda one: self.best[one][1])]

    @property
    def champion(self) -> tuple[Recipe, float]:
        """The best recipe, with its speed-up."""
        return max(self.best.values(), key=lambda pair: pair[1])

    def parent(self, rng: Random) -> Recipe:
        """Return the better of two drawn at random."""
        drawn = [rng.choice(list(self.best.values())) for _ in range(2)]
        return max(drawn, key=lambda pair: pair[1])[0]


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose founders (the original and random walks), then children of the islands in turn for ever."""
    return _evolve(space, rng, batch, 1)


def ranked(space: Space[Any], rng: Random, batch: int, told: Told = at_its_word) -> Proposer:
    """Propose as `search` does, of BROOD founders or children always the one of which most is expected; all of them where nothing is estimated."""
    return _evolve(space, rng, batch, BROOD if space.estimate is not None else 1, told)


def _evolve(space: Space[Any], rng: Random, batch: int, brood: int, told: Told = at_its_word) -> Proposer:
    moves = Moves(space)
    costs = Costs(moves, told=told) if brood > 1 else None
    islands = [Island() for _ in range(ISLANDS)]
    homes: list[list[Recipe]] = [
        [(), *(_best(costs, [moves.walk(rng, rng.randint(1, 4)) for _ in range(brood)]) for _ in range(FOUNDERS))] for _ in islands
    ]
    founders = distinct(recipe for home in homes for recipe in home)
    records = yield from ask(founders, batch)
    known = {recipe: record.speedup for recipe, record in zip(founders, records, strict=True)}
    _learn(costs, known)
    for island, home in zip(islands, homes, strict=True):
        for recipe in home:
            island.take(recipe, known[recipe])
    turn = 0
    while True:
        island = islands[turn % ISLANDS]
        turn += 1
        children = [_best(costs, [_child(moves, rng, island, known) for _ in range(brood)]) for _ in range(batch)]
        records = yield from ask(children, batch)
        for recipe, record in zip(children, records, strict=True):
            known[recipe] = record.speedup
            _learn(costs, {recipe: record.speedup})
            island.take(recipe, record.speedup)
        island.children += batch
        if island.children >= MIGRATION:
            island.children = 0
            islands[turn % ISLANDS].take(*island.champion)


def _best(costs: Costs | None, recipes: Sequence[Recipe]) -> Recipe:
    return costs.best(recipes) if costs else recipes[0]


def _learn(costs: Costs | None, measured: Mapping[Recipe, float]) -> None:
    if costs:
        for recipe, speedup in measured.items():
            costs.learn(recipe, speedup)


def _child(moves: Moves, rng: Random, island: Island, known: dict[Recipe, float]) -> Recipe:
    """Return a recipe that was not proposed yet, where one is found soon; else a fresh random walk."""
    for _ in range(10):
        parent = island.parent(rng)
        if rng.random() < CROSSED:
            other = island.parent(rng)
            child = moves.repair((*parent[: rng.randint(0, len(parent))], *other[rng.randint(0, len(other)) :]))
        else:
            child = moves.mutated(rng, parent)
        if child not in known:
            return child
    return moves.walk(rng, rng.randint(1, 6))
