"""Which recipe is evaluated next: the most hopeful one of what the model wrote, of variants of the best recipes so far, and of random walks.

What is hoped of a recipe is what the cost model says, corrected by what was measured of this program and, before that, of others (`search/costs.py`).
A recipe that makes the very program of another one is not evaluated again: its speed is known, and counts as what was measured of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from warpwright.loop.programs import Failed, make_candidate
from warpwright.policy.writing import MayEnd, anywhere
from warpwright.search.costs import NOTHING, Costs, Prior
from warpwright.search.moves import Moves, Recipe, distinct

PARENTS, CHILDREN = 2, 16
"""Of the fastest recipes so far, variants are drawn besides."""

WALKS, MOST_STEPS = 8, 8
"""Random walks besides, and their actions at most."""


class Choice:
    """The recipes of one search over one space; a space without a cost model gives no order, and the model's own answers are proposed."""

    def __init__(self, moves: Moves, prior: Prior = NOTHING, may_end: MayEnd = anywhere) -> None:
        self.moves, self.prior, self.may_end = moves, prior, may_end
        self._makers: dict[str, Recipe] = {}
        """Text of a program -> the first recipe that made it."""
        self._text(())

    def costs(self, known: Mapping[Recipe, float]) -> Costs:
        """Return what is expected after `known` was measured."""
        return Costs(self.moves, known, self.prior)

    def pool(self, written: Sequence[Recipe], known: Mapping[Recipe, float], rng: Random) -> list[Recipe]:
        """Return what may be proposed, each once, the model's answers first."""
        more = self._others(known, rng) if self.moves.space.estimate is not None else ()
        return distinct(recipe for recipe in (*written, *more) if recipe not in known and self.may_end(recipe))

    def choose(self, pool: Sequence[Recipe], known: dict[Recipe, float]) -> Recipe | None:
        """Return the most hopeful recipe of `pool` that makes a new program; None where there is none. What the others are is put into `known`."""
        for recipe in sorted(pool, key=self.costs(known).hope, reverse=True):
            maker = self._makers.get(self._text(recipe), recipe)
            if maker == recipe or maker not in known:
                return recipe
            known[recipe] = known[maker]
        return None

    def _text(self, recipe: Recipe) -> str:
        """Return what recipes of one program share; "" where that cannot be told."""
        alike = self.moves.space.alike
        candidate = make_candidate(self.moves.space, recipe) if alike is not None else None
        if alike is None or candidate is None or isinstance(candidate, Failed):
            return ""
        text = alike(candidate)
        if text:
            self._makers.setdefault(text, recipe)
        return text

    def _others(self, known: Mapping[Recipe, float], rng: Random) -> Iterator[Recipe]:
        best = sorted(known, key=lambda recipe: known[recipe], reverse=True)[:PARENTS]
        for _ in range(CHILDREN):
            yield self.moves.mutated(rng, rng.choice(best))
        for _ in range(WALKS):
            yield self.moves.walk(rng, rng.randint(1, MOST_STEPS))
