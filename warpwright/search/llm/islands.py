"""Evolution on islands with a model as the proposer: it varies programs, the verifier and the timer select.

    island      keeps the fastest program of each optimisation feature that was asked for, and of each score bucket
    question    a parent, a contrastive exemplar from another bucket (arXiv 2507.14111), and one feature to bring in
    bandit      which feature: UCB1 over what each has gained so far, on all islands together
    tuning      a program says `#define TILE 16  // tune: 8 16 32`: its own constants are tried, one after the other, without a question
    migration   now and then an island's champion comes to the next

One meter counts for all islands. A run that was cut short goes on where it stood: answers come from the log and records from the archive, and every
choice is drawn from the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from warpwright.base import Record
from warpwright.search.bandit import Arms
from warpwright.search.llm.asking import Proposal, answers, evaluated
from warpwright.search.llm.conversation import CONTRAST, Conversation, ModelOptions, ModelSearch, Tried, best_of, history_of
from warpwright.search.llm.feedback import errors_of
from warpwright.search.llm.tuning import tuned
from warpwright.search.moves import Proposer, Recipe
from warpwright.space import Space

FEATURES = {
    "coalescing": "Have neighbouring threads read and write neighbouring addresses: exchange loops, or transpose, where that is needed.",
    "vector loads": "Read and write 16 bytes a thread at once (float4), with a scalar path for what does not divide.",
    "shared memory": "Stage what several threads of a block read in shared memory, without bank conflicts.",
    "registers": "Have each thread compute several outputs and keep operands in registers.",
    "warp operations": "Join values of a warp by shuffles in place of shared memory, barriers and atomics.",
    "fewer atomics": "Form partial results in registers and shared memory, with one atomic a block, or none.",
    "launch shape": "Choose the block's size and the grid so that the machine is full: more warps, a grid-stride loop, or fewer and larger blocks.",
    "bytes in flight": "Have more loads under way: unroll, load the next tile while this one is used, copy asynchronously.",
    "less arithmetic": "Take out what is computed twice: indices, invariants of loops, divisions; use fused operations that stay exact enough.",
    "fewer passes": "Read memory once: fuse loops and kernels, or compute in one sweep what takes two.",
}
"""Optimisation features: what a question asks to bring in."""

BUCKETS = 4
"""Score buckets, each CONTRAST wide on the logarithmic scale: 1x to 1.25x, to 1.56x, ..."""

POPULATION = 8
"""Programs of an island; the slowest beyond it leave."""


@dataclass(frozen=True)
class Options(ModelOptions):
    """How far the search goes, and what it may spend."""

    EXAMPLE = "islands=3,rounds=8"

    islands: int = 3
    rounds: int = 8
    """Turns of each island."""
    candidates: int = 2
    """Programs that are asked for in a turn."""
    migration: int = 3
    """Turns of an island between two arrivals; 0: none."""
    repair: int = 1
    """Questions in a turn that repair a program which did not pass, where none did."""
    tunes: int = 6
    """Evaluations that tuning a program's own constants may take; 0: none."""


@dataclass
class Islands(ModelSearch):
    """The search, with a model: `islands(space, rng, batch)` proposes."""

    options: Options = Options()

    __name__ = "islands"

    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Propose what the model writes, island by island."""
        return _Run(self.conversation(space), self.options, self, rng).turns(batch)


@dataclass
class Island:
    """Programs that passed, of one line of descent."""

    name: str
    programs: list[tuple[str, Tried]] = field(default_factory=list)
    """With the feature that each was asked to bring in; the fastest first."""
    tried: list[Tried] = field(default_factory=list)
    """All of this island's own, in order."""

    def take(self, feature: str, one: Tried) -> None:
        """Keep a program that passed: the fastest of each feature, and the fastest of each bucket."""
        if not one.passed or any(kept.text == one.text for _, kept in self.programs):
            return
        ranked = sorted([*self.programs, (feature, one)], key=lambda pair: -pair[1].speedup)
        features: set[str] = set()
        buckets: set[int] = set()
        kept = []
        for own, program in ranked:
            if own not in features or bucket(program) not in buckets:
                kept.append((own, program))
            features.add(own)
            buckets.add(bucket(program))
        self.programs = kept[:POPULATION]

    @property
    def champion(self) -> Tried | None:
        """The fastest program."""
        return self.programs[0][1] if self.programs else None

    def parent(self, rng: Random) -> Tried | None:
        """Return the faster of two drawn at random."""
        drawn = [rng.choice(self.programs)[1] for _ in range(2)] if self.programs else []
        return max(drawn, key=lambda one: one.speedup, default=None)

    def contrast(self, parent: Tried, rng: Random) -> Tried | None:
        """Return a program of another score bucket than the parent's; None where all are alike."""
        others = [one for _, one in self.programs if bucket(one) != bucket(parent)]
        return rng.choice(others) if others else None


def bucket(one: Tried) -> int:
    """Return the score bucket of a program that passed."""
    return max(-BUCKETS, min(BUCKETS * 4, math.floor(math.log(one.speedup) / math.log(CONTRAST)))) if one.speedup > 0 else -BUCKETS


@dataclass
class _Run:
    talk: Conversation
    options: Options
    search: Islands
    rng: Random
    arms: Arms = field(default_factory=Arms)

    def turns(self, batch: int) -> Proposer:
        """Give each island its turn, round by round."""
        islands = [Island(f"island {number + 1}") for number in range(max(1, self.options.islands))]
        for round_ in range(1, self.options.rounds + 1):
            for island in islands:
                yield from self.turn(island, round_, batch)
                if self.talk.stopped:
                    self.search.stopped = self.talk.stopped
                    return
            if self.options.migration and round_ % self.options.migration == 0:
                _migrate(islands)

    def turn(self, island: Island, round_: int, batch: int) -> Generator[list[Recipe], list[Record], None]:
        """Ask for an island's next programs, propose them, repair one where none passed, and tune the best."""
        parent = island.parent(self.rng)
        feature = self.feature()
        note = f"{island.name}, round {round_}, {feature}"
        about = self.about(island, parent, feature)
        tried = yield from self.proposed(island, feature, about, note, self.options.candidates, batch)
        for _ in range(self.options.repair if tried else 0):
            if self.talk.stopped or any(one.passed for one in tried):
                break
            nearest = max(tried, key=lambda one: one.gate != "compilation")
            repair = {"template": "repair", "source": nearest.text, "gate": nearest.gate, "errors": errors_of(nearest.record),
                      "history": history_of(island.tried, nearest)}  # fmt: skip
            repaired = yield from self.proposed(island, feature, repair, f"{note}, repaired", 1, batch)
            tried = repaired or tried
        best = best_of(tried)
        before = parent.speedup if parent is not None else 1.0
        self.arms.learn(feature, before, best.speedup if best is not None else 0.0)
        if best is not None and self.options.tunes:
            yield from self.tuned(island, feature, best, batch)

    def feature(self) -> str:
        """Return the feature with the greatest upper confidence bound; of equals one at random."""
        bounds = {name: self.arms.bound(name) for name in FEATURES}
        most = max(bounds.values())
        return self.rng.choice([name for name, bound in bounds.items() if bound == most])

    def about(self, island: Island, parent: Tried | None, feature: str) -> dict[str, Any]:
        """Return what the turn's question is about."""
        asked = {"feature": feature, "advice": FEATURES[feature], "history": history_of(island.tried)}
        if parent is None:
            return {"template": "island_first", "source": self.talk.writing.source, **asked}
        own = {"source": parent.text, "speedup": f"{parent.speedup:.2f}", "profile": self.talk.profile(parent), **asked}
        other = island.contrast(parent, self.rng)
        if other is None:
            return {"template": "island_next", **own}
        return {
            "template": "island_contrast", **own, "other": other.text, "other_speedup": f"{other.speedup:.2f}",
            "other_profile": self.talk.profile(other),
        }  # fmt: skip

    def proposed(self, island: Island, feature: str, about: dict[str, Any], note: str, count: int, batch: int) -> Proposal:
        """Ask for `count` programs and propose them; what was answered before the model failed is proposed all the same."""
        texts = list(answers(self.talk, about, count))
        tried = yield from self.evaluated(island, feature, texts, note, str(about["source"]), batch)
        return tried

    def evaluated(self, island: Island, feature: str, texts: list[str], note: str, origin: str, batch: int) -> Proposal:
        """Propose texts; return what became of them, and keep what passed."""
        tried = yield from evaluated(self.talk, dict.fromkeys(texts, note), origin, batch)
        for one in tried:
            island.tried.append(one)
            island.take(feature, one)
        return tried

    def tuned(self, island: Island, feature: str, start: Tried, batch: int) -> Generator[list[Recipe], list[Record], None]:
        """Try other values of a program's own constants."""
        yield from tuned(start, self.options.tunes, lambda texts, note, origin: self.evaluated(island, feature, texts, note, origin, batch))


def _migrate(islands: list[Island]) -> None:
    """Have each island's champion come to the next one: all at once, so that none goes round in one migration."""
    champions = [(island.programs[0][0], island.champion) for island in islands if island.programs]
    guests = dict(zip([island.name for island in islands if island.programs], champions, strict=True))
    for island, source in zip(islands, [islands[-1], *islands[:-1]], strict=True):
        feature, guest = guests.get(source.name, ("", None))
        if guest is not None and source is not island:
            island.take(feature, guest)


__all__ = ["FEATURES", "Islands", "Options"]
