"""What the searches share: a recipe is a tuple of actions; these are the steps from one legal recipe to others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from random import Random
from typing import Any

from warpwright.base import Action, Record
from warpwright.errors import NotApplicable
from warpwright.space import Space

Recipe = tuple[Action, ...]

Proposer = Generator[list[Recipe], list[Record], None]
"""Yields recipes, at most as many as it was asked for, and is sent their records in the same order."""

Search = Callable[[Space[Any], Random, int], Proposer]
"""A search over a space: the random numbers it may use, and how many recipes it may yield at once."""

LONGEST = 64
"""Actions in a recipe at most: ends a chain of rewrites that undo one another."""

HOST_SECONDS = 4e-5
"""Up to which estimate a program of ours that does as a baseline does is proposed. Three kernels in a CUDA graph took an H200's host 67 us as ours
and 114 as the baseline (results/launch_plan_h200, the fourth run), before ours was one launch; torch.compile's takes more by any estimate."""

NEAR = 1000
"""Neighbours that are drawn before a recipe counts as a local best, in a space whose actions are drawn."""


class Moves:
    """Steps from one recipe of a space to others; the space remembers the IRs that recipes gave."""

    def __init__(self, space: Space[Any], longest: int = LONGEST) -> None:
        self.space, self.longest = space, longest
        self._estimates: dict[Recipe, float] = {}
        self.known: dict[Recipe, float] = {}
        """Speed-ups of the recipes that were proposed by `ask`."""

    def ir(self, recipe: Recipe) -> Any:
        """Return the IR of `recipe`; raise NotApplicable when one of its actions is not legal where it stands."""
        return self.space.replay(recipe)

    def actions(self, recipe: Recipe) -> list[Action]:
        """Return the actions that are legal after `recipe`, in the space's order; none after the longest recipe."""
        return self.space.actions(self.ir(recipe)) if len(recipe) < self.longest else []

    def estimate(self, recipe: Recipe) -> float:
        """Return the space's estimate of the recipe's program, in seconds; 0 where it has none, or the recipe is not legal."""
        if self.space.estimate is None:
            return 0.0
        if recipe not in self._estimates:  # asked for in several sort keys, when the IR may be forgotten
            self._estimates[recipe] = self.space.estimate(self.ir(recipe)) if self.legal(recipe) else 0.0
        return self._estimates[recipe]

    def repair(self, wanted: Iterable[Action]) -> Recipe:
        """Return `wanted` without the actions that are not legal where they would stand."""
        recipe: Recipe = ()
        for action in wanted:
            longer = (*recipe, action)
            if len(longer) <= self.longest and self.legal(longer):
                recipe = longer
        return recipe

    def legal(self, recipe: Recipe) -> bool:
        """Is every action of `recipe` legal where it stands?"""
        try:
            self.ir(recipe)
        except NotApplicable:
            return False
        return True

    def additions(self, recipe: Recipe) -> list[Recipe]:
        """Return `recipe` with one more legal action, for each of them; without those that only make a baseline of the original."""
        return [(*recipe, action) for action in self.actions(recipe) if recipe or not self.makes_baseline(action)]

    def makes_baseline(self, action: Action) -> bool:
        """Is it no more than what a baseline does? Where the host decides it is another program: ours asks less before a call."""
        made = self.space.traits(action).baseline(action) in self.space.baselines
        return made and not 0 < self.estimate((action,)) < HOST_SECONDS

    def removals(self, recipe: Recipe) -> list[Recipe]:
        """Return `recipe` with one action taken out (and whatever depended on it), for each of them."""
        return distinct(self.repair(recipe[:i] + recipe[i + 1 :]) for i in range(len(recipe)))

    def walk(self, random: Random, steps: int, recipe: Recipe = ()) -> Recipe:
        """Return `recipe` with up to `steps` legal actions more, each drawn at random."""
        for _ in range(steps):
            if self.space.draw is not None:
                drawn = self.drawn(random, recipe)
                if drawn is None:
                    break
                recipe = drawn
                continue
            legal = [longer for longer in self.additions(recipe) if self.legal(longer)]
            if not legal:
                break
            recipe = random.choice(legal)
        return recipe

    def drawn(self, random: Random, recipe: Recipe) -> Recipe | None:
        """Return `recipe` with one legal action more, as the space draws it; None where it draws none, or after the longest recipe."""
        assert self.space.draw is not None
        action = self.space.draw(self.ir(recipe), random) if len(recipe) < self.longest else None
        return None if action is None else (*recipe, action)

    def mutated(self, random: Random, recipe: Recipe) -> Recipe:
        """Return `recipe` with one action inserted, removed or replaced."""
        place = random.randint(0, len(recipe))
        kind = random.choice(("insert", "insert", "remove", "replace"))
        if kind == "remove" and recipe:
            place = random.randrange(len(recipe))
            return self.repair(recipe[:place] + recipe[place + 1 :])
        head = self.walk(random, 1, recipe[:place])
        return self.repair((*head, *recipe[place + (kind == "replace") :]))

    def neighbours(self, random: Random, recipe: Recipe) -> Iterator[Recipe]:
        """Yield the recipes of one action more or less, in random order; in a space that draws, what it tries first and then NEAR draws."""
        if self.space.draw is None:
            listed = [*self.additions(recipe), *self.removals(recipe)]
            random.shuffle(listed)
            yield from listed
            return
        first = [technique for technique in self.space.techniques if technique.traits.tried_first]
        if not recipe:
            yield from ((action,) for technique in first for action in technique.sites(self.space.start))
        elif len(recipe) > 1:
            yield self.repair(recipe[:-1])
        for _ in range(NEAR):
            drawn = self.drawn(random, recipe)
            if drawn is not None:
                yield drawn

    def ask(self, recipes: Sequence[Recipe], batch: int) -> Generator[list[Recipe], list[Record], list[Record]]:
        """Propose `recipes` in batches, and remember their speed-ups; return all their records. Use it with `yield from`."""
        records = yield from ask(recipes, batch)
        self.known |= {recipe: record.speedup for recipe, record in zip(recipes, records, strict=True)}
        return records

    def fixpoint(self, recipe: Recipe, classes: str, enabling: bool = True) -> Recipe:
        """Return `recipe` with rewrites of the legality `classes` (letters) applied, the first legal one each time, until none is left.

        Without `enabling`, no technique that says of itself that it only prepares others.
        """
        fitting = (technique for technique in self.space.techniques if technique.traits.legality in classes)
        techniques = [technique for technique in fitting if enabling or not technique.traits.enabling]
        while len(recipe) < self.longest:
            here = self.ir(recipe)
            sites = (action for technique in techniques for action in technique.sites(here))
            step = next((action for action in sites if self.legal((*recipe, action))), None)
            if step is None:
                break
            recipe = (*recipe, step)
        return recipe


def distinct(recipes: Iterable[Recipe]) -> list[Recipe]:
    """Return `recipes` without repetitions, in order."""
    return list(dict.fromkeys(recipes))


def ask(recipes: Sequence[Recipe], batch: int) -> Generator[list[Recipe], list[Record], list[Record]]:
    """Propose `recipes` in batches; return all their records. Use it with `yield from`."""
    records: list[Record] = []
    for start in range(0, len(recipes), batch):
        records += yield list(recipes[start : start + batch])
    return records
