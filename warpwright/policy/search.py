"""`--search policy`: the model proposes recipes, and is shown two of the answers so far in each prompt. What it cannot do is drawn at random.

Every recipe that the model writes is legal (`writing.py`) and new. Where it finds none, a random walk stands in. For an operator that the model never
read one of its kind stands, as the space says (`Space.stand_ins`). A program for a word of which none stands, or of whose techniques it knows less
than half, is the ladder's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from warpwright import loop
from warpwright.policy import prompt
from warpwright.policy.choosing import MOST_STEPS, Choice
from warpwright.policy.model import Policy
from warpwright.policy.promise import Promises
from warpwright.policy.spreading import Spread, spread
from warpwright.policy.words import Places, program_words
from warpwright.policy.writing import END, MayEnd, Writing, anywhere
from warpwright.search import ladder
from warpwright.search.costs import NOTHING, Costs, Prior
from warpwright.search.moves import Moves, Proposer, Recipe
from warpwright.space import Space

WIDTH = 16
"""Answers that are written for a proposal where the space has a cost model; the most hopeful of these and some others is proposed (choosing.py)."""


class PolicySearch:
    """A search over one space that asks a policy. `may_end` limits what is proposed, for spaces in which not all that is legal was recorded.

    `width`: answers that are written for a proposal; with 0 the model is not asked, and what is proposed comes from variants and walks alone.
    """

    __name__ = "policy"

    def __init__(self, policy: Policy, roof: float | None = None, may_end: MayEnd = anywhere, width: int = WIDTH) -> None:
        self.policy, self.roof, self.may_end, self.width = policy, roof, may_end, width
        self.note = ""
        """Why the ladder searched in the policy's place; "" where it did not."""

    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Propose the original, then what the model writes, for ever."""
        asking = Asking(space, self.may_end, prior=self.policy.prior, read=self.policy.words)
        unread = self._unread(asking)
        if unread:
            self.note = f"the policy never read {', '.join(unread)}: the ladder searched in its place"
            yield from ladder.search(space, rng, batch)
            return
        [first] = yield [()]
        roof = self.roof if self.roof is not None else loop.bandwidth_share(first) or None
        known: dict[Recipe, float] = {(): first.speedup or 1.0}
        while True:
            width = self.width if space.estimate is not None else 1
            count = batch * width
            prompts = [asking.prompt(known, rng, roof, self.policy.notes.exemplars) for _ in range(count)]
            seed, spreads = rng.getrandbits(32), [asking.spread(known)] * count
            written = self.policy.write(prompts, [asking.writing] * count, [known] * count, seed, spreads) if count else []
            recipes: list[Recipe] = []
            for number in range(batch):
                answers = [one.recipe for one in written[number * width : (number + 1) * width]]
                pool = [recipe for recipe in asking.choice.pool(answers, known, rng) if recipe not in recipes]
                recipes.append(asking.choice.choose(pool, known) or asking.moves.walk(rng, rng.randint(1, MOST_STEPS)))
            records = yield recipes
            known.update(zip(recipes, (record.speedup for record in records), strict=True))

    def _unread(self, asking: Asking) -> list[str]:
        """Return what the policy knows too little of: words of the program, or most of the techniques that are legal."""
        techniques = self.policy.unread(asking.techniques)
        return self.policy.unread(asking.program) or (techniques if 2 * len(techniques) > len(asking.techniques) else [])


class Asking:
    """A space as the policy is asked about it."""

    def __init__(
        self, space: Space[Any], may_end: MayEnd = anywhere, later: Iterable[str] = (), prior: Prior = NOTHING, read: Collection[str] = ()
    ) -> None:  # fmt: skip
        """`later`: places of actions that are legal after others only. `read`: the words of the policy that is asked, which stand for others."""
        self.moves, self.places = Moves(space), Places()
        first = space.actions(space.start)
        self.techniques = tuple(dict.fromkeys(action.technique for action in first))
        raw = program_words(space, first)
        sites = sorted({*(action.at for action in first), *later} - {""})
        for name in [*(word[1:] for word in raw if word[1:] in sites and word[0] == "@"), *sites]:
            self.places.word(name)
        self.program = _known(self.places.program(raw), read, space)
        self.writing = Writing(self.moves, self.places, may_end)
        self.choice = Choice(self.moves, prior, may_end)
        self.promises = Promises(self.writing) if space.estimate is not None else None

    def prompt(self, known: dict[Recipe, float], rng: Random, roof: float | None, how: prompt.Exemplars) -> str:
        """Return a prompt with exemplars drawn from `known`."""
        return prompt.text(self.program, roof, prompt.draw(known, rng, how), self.places)

    def cheapest(self, recipes: Sequence[Recipe], known: Mapping[Recipe, float] | None = None) -> Recipe:
        """Return the recipe that the space's cost model, corrected by what is known, holds for the cheapest; the first where it has none."""
        return Costs(self.moves, known).best(recipes)

    def spread(self, known: dict[Recipe, float], promised: bool = True) -> Spread | None:
        """Return how to spread what is written next; None where no more than the original is known and no cost model promises anything."""
        said = (((*self.places.recipe(recipe), END), speedup) for recipe, speedup in known.items() if recipe)
        found = spread(said, promises=self.promises if promised else None)
        return replace(found, costs=self.choice.costs(known)) if found and promised and self.promises else found


def _known(program: Sequence[str], read: Collection[str], space: Space[Any]) -> tuple[str, ...]:
    """Return a program's words, for each that is not in `read` what stands for it; as it is where none does."""
    others = space.stand_ins(space.start) if space.stand_ins is not None and read and not all(word in read for word in program) else {}
    kept = [(word, [one for one in others.get(word, ()) if one in read]) for word in program]
    return tuple(those[0] if those and word not in read else word for word, those in kept if word in read or those or others.get(word) != ())
