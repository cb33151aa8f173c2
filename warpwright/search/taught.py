"""What was found for a program in other sizes, or on another GPU, is tried first: a search that begins with recipes which an archive holds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from random import Random
from typing import Any

from warpwright.base import Record
from warpwright.search.moves import Moves, Proposer, Recipe, Search, ask, distinct
from warpwright.space import Space

MOST = 1
"""Recipes that are tried before a search's own: a budget of two programs has room for one of its own as well."""


def beginning_with(recipes: Sequence[Recipe], search: Search, name: str) -> Search:
    """Return a search called `name` that proposes what can be done of `recipes` in its space before it does what `search` does.

    Left out are actions that are not legal here (`int8_slices` of a product that is too small, say) or of a technique that the space does not have
    (an older version's), recipes of which less than half is left then (a name alone may be another program's: many a model is a Sequential) or no
    more than a baseline, and those that the space's estimate takes to be no faster than the original.
    """

    def beginning(space: Space[Any], rng: Random, batch: int) -> Proposer:
        moves = Moves(space)
        first = _worth_trying(moves, recipes)[:MOST]
        records = yield from ask(first, batch)
        yield from _without(dict(zip(first, records, strict=True)), search(space, rng, batch))

    beginning.__name__ = name
    return beginning


def _without(known: dict[Recipe, Record], proposer: Proposer) -> Proposer:
    """Propose what `proposer` does without what is known, each once: a budget counts a proposal again, and these are often the search's first."""
    with closing(proposer), suppress(StopIteration):
        recipes = next(proposer)
        while True:
            answers = {recipe: known.pop(recipe) for recipe in recipes if recipe in known}
            asked = [recipe for recipe in recipes if recipe not in answers]
            if asked:
                answers |= zip(asked, (yield asked), strict=True)
            recipes = proposer.send([answers[recipe] for recipe in recipes])


def _worth_trying(moves: Moves, recipes: Sequence[Recipe]) -> list[Recipe]:
    names = {technique.name for technique in moves.space.techniques}
    legal = [(recipe, moves.repair(action for action in recipe if action.technique in names)) for recipe in recipes]
    fitting = distinct(left for recipe, left in legal if left and 2 * len(left) >= len(recipe))
    gaining = [recipe for recipe in fitting if moves.space.estimate is None or 0 < moves.estimate(recipe) < moves.estimate(())]
    return [recipe for recipe in gaining if len(recipe) > 1 or not moves.makes_baseline(recipe[0])]
