"""How a policy goes on searching a space after its first answer: its proposals are spread over the whole of what may be written.

A trained policy prefers two or three openings, and drawn as it is, it writes sixteen variants of these. So at each word its chances are mixed with
those of a draw among all legal words (`SHARE`), also words that it never read, and what begins as recipes that were evaluated already becomes less
likely, the more so the further those stayed behind the best one:

    weight(word) = ((1 - SHARE) * chance(word) + SHARE / legal words) / (1 + STRENGTH * sum over known recipes that begin so of (SEEN + regret))

with the regret 1 - speed-up / best, a failure's being 1. Where the space has a cost model, the weight is multiplied by what that promises of the word
(`promise.py`), and by how far its promises held so far (`search/costs.py`). Without one the first answer is the policy's own: nothing is known then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.policy.promise import Promises
from warpwright.search.costs import Costs

SHARE = 0.2
"""Of the weight of a word, what is drawn among all legal ones."""

STRENGTH = 2.0

SEEN = 0.1
"""What a known recipe counts that is as fast as the best one."""


@dataclass(frozen=True)
class Spread:
    """What is known of a space, as weights of words."""

    counted: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """Beginning of recipes in words -> what the known recipes that begin so count."""
    share: float = SHARE
    strength: float = STRENGTH
    promises: Promises | None = None
    costs: Costs | None = None

    def weights(self, before: tuple[str, ...], words: Sequence[str], chances: Sequence[float], legal: int) -> list[float]:
        """Return the weight of each of `words`, which may come after `before`, by the model's chances; `legal`: how many may come in all.

        The weights need not add up to 1.
        """
        factors = self.promises.factors(before, words) if self.promises else [1.0] * len(words)
        if self.costs:  # of a technique that the recipe has already what it is worth is in the estimate's error as it stands
            factors = [factor * (1.0 if word in before else self.costs.factor(word)) for word, factor in zip(words, factors, strict=True)]
        return [
            factor * ((1 - self.share) * chance + self.share / legal) / (1 + self.strength * self.counted.get((*before, word), 0.0))
            for word, chance, factor in zip(words, chances, factors, strict=True)
        ]


def spread(
    recipes: Iterable[tuple[Sequence[str], float]],
    share: float = SHARE,
    strength: float = STRENGTH,
    seen: float = SEEN,
    promises: Promises | None = None,
) -> Spread | None:
    """Return the spread after some recipes (words, speed-up; 0 for a failure) were evaluated; None where none was and nothing is promised."""
    known = list(recipes)
    if not known and promises is None:
        return None
    best = max([1.0, *(speedup for _, speedup in known)])
    counted: dict[tuple[str, ...], float] = {}
    for words, speedup in known:
        for length in range(1, len(words) + 1):
            beginning = tuple(words[:length])
            counted[beginning] = counted.get(beginning, 0.0) + seen + 1 - speedup / best
    return Spread(counted, share, strength, promises)
