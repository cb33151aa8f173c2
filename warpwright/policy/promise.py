"""What a cost model promises of a word: by what factor the program becomes faster, by its estimate, with the best action that the word leads to.

A model of few training programs gives a rewrite that it hardly read hardly a chance, also where the estimate says that a tenth of the work is left.
So the weights of words (`spreading.py`) are multiplied by

    promise(word) = estimate now / least estimate of an action that the word leads to

between 1 / MOST and MOST. Of a rewrite the best rewrite after it counts too: many forms only prepare others. To end leaves the estimate as it is, and
promises 1, as does an action of which nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpwright.policy.writing import Writing
from warpwright.search.moves import Recipe

MOST = 64.0
"""Factor beyond which a promise is not believed further."""

REWRITES = "EDPQ"
"""Legalities of what changes a program's mathematics: that prepares more of its kind. Schedules do not."""


class Promises:
    """The promises of one space's words."""

    def __init__(self, writing: Writing) -> None:
        self.writing, self.moves = writing, writing.moves
        self._least: dict[Recipe, float] = {}

    def factors(self, before: Sequence[str], words: Sequence[str]) -> list[float]:
        """Return the promise of each of `words`, any of which may come after `before`."""
        recipe, begun = self.writing.read(before)
        now = self.moves.estimate(recipe)
        if now <= 0:
            return [1.0] * len(words)
        actions = self.writing.actions(recipe)
        factors = []
        for word in words:
            start = (*begun, word)
            longer = [(*recipe, action) for named, action in actions.items() if named[: len(start)] == start]
            gains = [now / least if (least := self.least(one)) > 0 else 1.0 for one in longer]
            factors.append(min(MOST, max(1 / MOST, *gains)) if gains else 1.0)
        return factors

    def least(self, recipe: Recipe) -> float:
        """Return the least estimate, in seconds, of a recipe and of those that are one rewrite longer, where it ends with a rewrite; 0 for none."""
        if recipe not in self._least:
            found = [self.moves.estimate(one) for one in (recipe, *self._prepared(recipe)) if self.moves.space.traits(one[-1]).estimated]
            self._least[recipe] = min([one for one in found if one > 0], default=0.0)
        return self._least[recipe]

    def _prepared(self, recipe: Recipe) -> Iterator[Recipe]:
        space = self.moves.space
        if space.traits(recipe[-1]).legality in REWRITES and len(recipe) < self.writing.longest:
            for technique in space.techniques:
                if technique.traits.legality in REWRITES:
                    yield from ((*recipe, action) for action in technique.sites(self.moves.ir(recipe)))
