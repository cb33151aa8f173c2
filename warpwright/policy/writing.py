"""What the policy may write: after some words of a recipe, the words that a legal action of the space goes on with. It can write nothing illegal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from warpwright.base import Action
from warpwright.policy.words import STOP, Places
from warpwright.search.moves import Moves, Recipe

END = "<end>"

LONGEST_RECIPE = 12
"""Actions that a policy writes at most."""

MayEnd = Callable[[Recipe], bool]


def anywhere(recipe: Recipe) -> bool:
    """Let any recipe be proposed, but the original."""
    return bool(recipe)


class Writing:
    """The recipes of one space as words. `may_end` says which recipes may be proposed; those in `known` never are."""

    def __init__(self, moves: Moves, places: Places, may_end: MayEnd = anywhere, longest: int = LONGEST_RECIPE) -> None:
        self.moves, self.places, self.may_end, self.longest = moves, places, may_end, longest
        self._actions: dict[Recipe, dict[tuple[str, ...], Action]] = {}

    def actions(self, recipe: Recipe) -> dict[tuple[str, ...], Action]:
        """Return the legal actions after `recipe` by their words. Of several with the same words the first stands for all."""
        if recipe not in self._actions:
            longer = [one for one in self.moves.additions(recipe) if self.moves.legal(one)] if len(recipe) < self.longest else []
            named: dict[tuple[str, ...], Action] = {}
            for one in longer:
                named.setdefault(self.places.action(one[-1]), one[-1])
            self._actions[recipe] = named
        return self._actions[recipe]

    def read(self, words: Sequence[str]) -> tuple[Recipe, tuple[str, ...]]:
        """Return the recipe of the finished actions in `words`, and the words of the unfinished one."""
        recipe: Recipe = ()
        begun: tuple[str, ...] = ()
        for word in words:
            if word == END:
                break
            begun = (*begun, word)
            if word == STOP:
                recipe, begun = (*recipe, self.actions(recipe)[begun]), ()
        return recipe, begun

    def allowed(self, words: Sequence[str], known: Collection[Recipe] = ()) -> list[str]:
        """Return the words that may come next, sorted; END alone where nothing new can be reached."""
        recipe, begun = self.read(words)
        fitting = [named for named, action in self.actions(recipe).items() if named[: len(begun)] == begun and self._leads((*recipe, action), known)]
        following = {named[len(begun)] for named in fitting}
        if not begun and self.may_end(recipe) and recipe not in known:
            following.add(END)
        return sorted(following) or [END]

    def _leads(self, recipe: Recipe, known: Collection[Recipe]) -> bool:
        """Can something new be proposed that begins with `recipe`?"""
        if self.may_end(recipe) and recipe not in known:
            return True
        return any(self._leads((*recipe, action), known) for action in self.actions(recipe).values())
