"""Feature Search and Reinforcement (arXiv 2506.09092): a model writes programs, three gates judge them, their words go into the next question.

    gates   compilation, then functional validation on the verifier's cases, then the performance profile: `Evaluator.evaluate` in that order
    level   N candidates; where none passes, at most `max_repair` rounds that show code, errors and history; the fastest that passed goes into
            the next level's question
    end     after `depth` levels, or when a budget is spent; the result is the best ever seen, not the last level's best

The publication bounds neither its repair rounds nor its history. Here both are bounded, and every number is an option.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from typing import Any

from warpwright.base import Record
from warpwright.errors import UsageError
from warpwright.llm import Chat, ChatError, LimitReached, Limits, Message, Metered, program_of
from warpwright.search.feedback import errors_of, profile
from warpwright.search.moves import Proposer, Recipe, ask
from warpwright.space import Space, Writing

PROMPTS = Path(__file__).with_name("prompts")

GATES = {"not_built": "compilation", "ok": "performance"}
"""Status of a record -> the gate at which it ended; every other one: functional validation."""

CONTRAST = 1.25
"""Ratio of speed-ups from which two programs teach something by their difference (contrastive exemplars, arXiv 2507.14111)."""

HISTORY = 6
"""Lines of history in a question: the latest ones."""


@dataclass(frozen=True)
class Options:
    """How far the search goes, and what it may spend."""

    candidates: int = 4
    """Of a level, and of a repair round."""
    depth: int = 3
    max_repair: int = 2
    """Repair rounds of a level."""
    contrast: int = 0
    """1: from the second level on, questions show two programs of clearly different speed, and ask what makes the difference."""
    tokens: int | None = None
    dollars: float | None = None
    questions: int | None = None
    price_asked: float = 0.0
    """Dollars for a million tokens."""
    price_answered: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Options:
        """Read `candidates=4,depth=3,tokens=200000`."""
        known = {f.name: f for f in fields(cls)}
        given: dict[str, Any] = {}
        for piece in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, value = piece.partition("=")
            try:
                given[name] = float(value) if name in ("dollars", "price_asked", "price_answered") else int(value)
            except ValueError:
                name = ""
            if name not in known or given[name] < 0:
                raise UsageError(f"expected options such as candidates=4,depth=3, saw {piece!r}", f"known: {', '.join(known)}")
        return cls(**given)

    @property
    def limits(self) -> Limits:
        """What the model may cost."""
        return Limits(self.tokens, self.dollars, self.questions, self.price_asked, self.price_answered)


@dataclass
class Fsr:
    """The search, with a model: `fsr(space, rng, batch)` proposes."""

    chat: Chat
    options: Options = Options()
    log: Path | None = None
    """File that gets every question and answer."""
    device: str = "one GPU"
    """What the programs run on, in words."""
    stopped: str = ""
    """Why no more was asked, where that was not for the depth."""
    meter: Metered | None = field(default=None, repr=False)

    __name__ = "fsr"

    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Propose what the model writes, level by level."""
        if space.writing is None:
            raise UsageError("expected a task that a model can write programs for, saw one of rewrites alone", "give a .cu file (docs/cuda.md)")
        self.meter = Metered(self.chat, self.options.limits, self.log)
        return _Run(space.writing, self.options, self.meter, self).levels(batch)


@dataclass(frozen=True)
class Tried:
    """One program of the model's, and what became of it."""

    text: str
    record: Record
    note: str
    """Where it came from: `level 1, candidate 2`."""

    @property
    def gate(self) -> str:
        """The gate at which it ended."""
        return GATES.get(self.record.status, "functional validation")

    def line(self) -> str:
        """Return it in a line, for the history."""
        if self.record.status == "ok":
            return f"{self.note}: passed, {self.record.speedup:.2f} times as fast as the source given"
        return f"{self.note}: failed at {self.gate}: {' '.join(self.record.detail.split())[:200]}"


@dataclass
class _Run:
    writing: Writing
    options: Options
    chat: Metered
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
        return max((one for one in self.tried if one.record.status == "ok"), key=lambda one: one.record.speedup, default=None)

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
            made = yield from self.candidates(about, f"level {level}" + (f", repair {round_}" if round_ else ""), batch)
            if any(one.record.status == "ok" for one in made):
                return True
            if self.search.stopped:
                return False
        return False

    def candidates(self, about: dict[str, Any], note: str, batch: int) -> Generator[list[Recipe], list[Record], list[Tried]]:
        """Ask for a round's programs, then propose them; what was answered before the model failed is proposed all the same."""
        texts: dict[str, str] = {}
        for number in range(1, self.options.candidates + 1):
            answer = self.asked({**about, "number": number, "count": self.options.candidates})
            text = program_of(answer, self.writing.marks) if answer else ""
            if text and text not in texts:
                texts[text] = f"{note}, candidate {number}"
            if self.search.stopped:
                break
        if not texts:
            return []
        recipes: list[Recipe] = [(self.writing.action(text),) for text in texts]
        records = yield from ask(recipes, batch)
        made = [Tried(text, record, where) for (text, where), record in zip(texts.items(), records, strict=True)]
        self.tried += made
        return made

    def asked(self, about: dict[str, Any]) -> str:
        """Return the model's answer to a question; "" for none. A dead endpoint, or a limit, ends the search."""
        template = (PROMPTS / f"{about['template']}.txt").read_text()
        messages: list[Message] = [
            {"role": "system", "content": (PROMPTS / "system.txt").read_text()},
            {"role": "user", "content": _filled(template, {**self.always, **about})},
        ]
        try:
            return self.chat.ask(messages)
        except LimitReached as error:
            self.search.stopped = str(error)
        except ChatError as error:
            if self.chat.failed >= self.chat.limits.failures:
                self.search.stopped = str(error)
        return ""

    @property
    def always(self) -> dict[str, Any]:
        writing = self.writing
        return {"statement": writing.statement, "context": writing.context, "device": self.search.device, "depth": self.options.depth}

    def first(self) -> dict[str, Any]:
        return {"template": "first", "source": self.writing.source}

    def faster(self, best: Tried) -> dict[str, Any]:
        other = self.other(best) if self.options.contrast else None
        if other is not None:
            return {
                "template": "contrast", "source": best.text, "speedup": f"{best.record.speedup:.2f}", "profile": profile(best.record),
                "other": other.text, "other_speedup": f"{other.record.speedup:.2f}", "other_profile": profile(other.record),
                "history": self.history(),
            }  # fmt: skip
        return {
            "template": "faster", "source": best.text, "speedup": f"{best.record.speedup:.2f}", "profile": profile(best.record),
            "history": self.history(),
        }  # fmt: skip

    def other(self, best: Tried) -> Tried | None:
        """Return the fastest program that is clearly slower than the best one; None where all are alike."""
        slower = [one for one in self.tried if one.record.status == "ok" and one.record.speedup * CONTRAST <= best.record.speedup]
        return max(slower, key=lambda one: one.record.speedup, default=None)

    def repair(self, failed: Tried) -> dict[str, Any]:
        return {
            "template": "repair", "source": failed.text, "gate": failed.gate, "errors": errors_of(failed.record), "history": self.history(failed),
        }  # fmt: skip

    def nearest(self, level: int) -> Tried | None:
        """Return the level's failed program that came furthest through the gates, the latest of equals."""
        failed = [one for one in self.tried if one.note.startswith(f"level {level}") and one.record.status != "ok"]
        return max(reversed(failed), key=lambda one: one.gate != "compilation", default=None)

    def history(self, without: Tried | None = None) -> str:
        """Return what was tried before, a line each, the latest last: the question does not grow with the run."""
        lines = [one.line() for one in self.tried if one is not without]
        left_out = len(lines) - HISTORY
        shown = [f"({left_out} earlier ones)"] if left_out > 0 else []
        return "\n".join(["", *shown, *lines[-HISTORY:]]) if lines else "nothing"


def _filled(template: str, values: dict[str, Any]) -> str:
    """Return a template with its {names} filled; the values may hold braces."""
    parts: list[str] = []
    rest = template
    while rest:
        opening = rest.find("{")
        closing = rest.find("}", opening)
        if opening < 0 or closing < 0:
            break
        name = rest[opening + 1 : closing]
        parts += [rest[:opening], str(values[name])]
        rest = rest[closing + 1 :]
    return "".join([*parts, rest])


__all__ = ["Fsr", "Options", "Tried"]
