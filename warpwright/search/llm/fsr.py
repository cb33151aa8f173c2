"""Feature Search and Reinforcement (arXiv 2506.09092): a model writes programs, three gates judge them, their words go into the next question.

    gates   compilation, then functional validation on the verifier's cases, then the performance profile: `Evaluator.evaluate` in that order
    level   N candidates; where none passes, at most `max_repair` rounds that show code, errors and history; the fastest that passed goes into
            the next level's question
    tuning  the fastest program of a level says `#define TILE 16  // tune: 8 16 32`: its own constants are tried without a question
    end     after `depth` levels, or when a budget is spent; the result is the best ever seen, not the last level's best

The publication bounds neither its repair rounds nor its history. Here both are bounded, and every number is an option.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from warpwright.base import Record
from warpwright.search.llm.asking import Proposal, answers, evaluated
from warpwright.search.llm.conversation import CONTRAST, Conversation, ModelOptions, ModelSearch, Tried, best_of, history_of
from warpwright.search.llm.feedback import changes, errors_of
from warpwright.search.llm.tuning import tuned
from warpwright.search.moves import Proposer, Recipe
from warpwright.space import Space


@dataclass(frozen=True)
class Options(ModelOptions):
    """How far the search goes, and what it may spend."""

    EXAMPLE = "candidates=4,depth=3"

    candidates: int = 4
    """Of a level, and of a repair round."""
    depth: int = 3
    max_repair: int = 2
    """Repair rounds of a level."""
    contrast: int = 0
    """1: from the second level on, questions show two programs of clearly different speed, and ask what makes the difference."""
    tunes: int = 6
    """Evaluations of a level that tuning its fastest program's own constants may take; 0: none."""


@dataclass
class Fsr(ModelSearch):
    """The search, with a model: `fsr(space, rng, batch)` proposes."""

    options: Options = Options()

    __name__ = "fsr"

    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Propose what the model writes, level by level."""
        return _Run(self.conversation(space), self.options, self).levels(batch)


@dataclass
class _Run:
    talk: Conversation
    options: Options
    search: Fsr
    tried: list[Tried] = field(default_factory=list)

    def levels(self, batch: int) -> Proposer:
        """Go through the levels; each begins with the best program of all before it."""
        for level in range(1, self.options.depth + 1):
            passed = yield from self.level(level, batch)
            if self.search.stopped or (not passed and self.best is None):
                return

    @property
    def best(self) -> Tried | None:
        """The fastest program that passed, of all levels."""
        return best_of(self.tried)

    def level(self, level: int, batch: int) -> Generator[list[Recipe], list[Record], bool]:
        """Propose a level's candidates, and repair rounds while none passes; return whether one did."""
        best = self.best
        for round_ in range(self.options.max_repair + 1):
            failed = self.nearest(level)
            if round_ == 0:
                about = {"level": level, **(self.first() if best is None else self.faster(best))}
            elif failed is not None:
                about = self.repair(failed)
            else:
                about = {"level": level, **self.first()}
            tried = yield from self.candidates(about, f"level {level}" + (f", repair {round_}" if round_ else ""), batch)
            fastest = best_of(tried)
            if fastest is not None:
                yield from tuned(fastest, self.options.tunes, lambda texts, note, origin: self.proposed(dict.fromkeys(texts, note), origin, batch))
                return True
            if self.search.stopped:
                return False
        return False

    def candidates(self, about: dict[str, Any], note: str, batch: int) -> Proposal:
        """Ask for a round's programs, then propose them; what was answered before the model failed is proposed all the same."""
        texts = answers(self.talk, {**about, "depth": self.options.depth}, self.options.candidates)
        if self.talk.stopped:
            self.search.stopped = self.talk.stopped
        tried = yield from self.proposed({text: f"{note}, candidate {number}" for text, number in texts.items()}, about["source"], batch)
        return tried

    def proposed(self, texts: dict[str, str], origin: str, batch: int) -> Proposal:
        """Propose texts, each with where it comes from in words, and remember what became of them."""
        tried = yield from evaluated(self.talk, texts, origin, batch)
        self.tried += tried
        return tried

    def first(self) -> dict[str, Any]:
        return {"template": "first", "source": self.talk.writing.source}

    def faster(self, best: Tried) -> dict[str, Any]:
        other = self.other(best) if self.options.contrast else None
        if other is not None:
            return {
                "template": "contrast", "source": best.text, "speedup": f"{best.record.speedup:.2f}", "profile": self.talk.profile(best),
                "other": other.text, "other_speedup": f"{other.record.speedup:.2f}", "other_profile": self.talk.profile(other),
                "history": self.history(),
            }  # fmt: skip
        return {
            "template": "faster", "source": best.text, "speedup": f"{best.record.speedup:.2f}", "profile": self.talk.profile(best),
            "history": self.history(),
        }  # fmt: skip

    def other(self, best: Tried) -> Tried | None:
        """Return the fastest program that is clearly slower than the best one; None where all are alike."""
        slower = [one for one in self.tried if one.passed and one.record.speedup * CONTRAST <= best.record.speedup]
        return max(slower, key=lambda one: one.record.speedup, default=None)

    def repair(self, failed: Tried) -> dict[str, Any]:
        return {
            "template": "repair", "source": failed.text, "gate": failed.gate, "history": self.history(failed),
            "errors": "\n".join(filter(None, [errors_of(failed.record), changes(failed.origin, failed.text)])),
        }  # fmt: skip

    def nearest(self, level: int) -> Tried | None:
        """Return the level's failed program that came furthest through the gates, the latest of equals."""
        failed = [one for one in self.tried if one.note.startswith(f"level {level}") and not one.passed]
        return max(reversed(failed), key=lambda one: one.gate != "compilation", default=None)

    def history(self, without: Tried | None = None) -> str:
        """Return what was tried before, in a few lines."""
        return history_of(self.tried, without)


__all__ = ["Fsr", "Options", "Tried"]
