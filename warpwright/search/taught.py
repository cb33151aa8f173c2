"""What was found for a program in other sizes, or on another GPU, is tried first: a search that begins with recipes which an archive holds."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from warpwright.search.moves import Moves, Proposer, Recipe, Search, ask, distinct
from warpwright.space import Space

MOST = 1
"""Recipes that are tried before a search's own: a budget of two programs has room for one of its own as well."""


def beginning_with(recipes: Sequence[Recipe], search: Search, name: str) -> Search:
    """Return a search called `name` that proposes what can be done of `recipes` in its space before it does what `search` does.

    Left out are actions that are not legal here (`int8_slices` of a product that is too small, say) or of a technique that the space does not have
    (an older version's), recipes of which less than half is left then (a name alone may be another program's: many a model is a Sequential), and
    those that the space's estimate takes to be no faster than the original.
    """

    def beginning(space: Space[Any], rng: Random, batch: int) -> Proposer:
        moves = Moves(space)
        yield from ask(_worth_trying(moves, recipes)[:MOST], batch)
        yield from search(space, rng, batch)

    beginning.__name__ = name
    return beginning


def _worth_trying(moves: Moves, recipes: Sequence[Recipe]) -> list[Recipe]:
    names = {technique.name for technique in moves.space.techniques}
    legal = [(recipe, moves.repair(action for action in recipe if action.technique in names)) for recipe in recipes]
    fitting = distinct(left for recipe, left in legal if left and 2 * len(left) >= len(recipe))
    return [recipe for recipe in fitting if moves.space.estimate is None or 0 < moves.estimate(recipe) < moves.estimate(())]
