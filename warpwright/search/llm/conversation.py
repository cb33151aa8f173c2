"""What the searches that ask a model share: programs it wrote and what became of them, questions from templates, and when to stop asking."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

from warpwright.base import Candidate, Record
from warpwright.errors import ChatError, LimitReached, UsageError
from warpwright.llm.chat import Chat, Message
from warpwright.llm.metered import Limits, Metered
from warpwright.search.llm.answers import program_of
from warpwright.search.llm.feedback import changes, profile
from warpwright.search.moves import Proposer
from warpwright.space import Facts, Space, Writing

PROMPTS = Path(__file__).with_name("prompts")

GATES = {"not_built": "compilation", "ok": "performance"}
"""Status of a record -> the gate at which it ended; every other one: functional validation."""

CONTRAST = 1.25
"""Ratio of speed-ups from which two programs teach something by their difference (contrastive exemplars, arXiv 2507.14111)."""

HISTORY = 6
"""Lines of history in a question: the latest ones."""


@dataclass(frozen=True)
class ModelOptions:
    """What the model of a search may cost, and what its questions hold."""

    EXAMPLE: ClassVar[str] = "tokens=200000"
    """What an error shows."""

    counters: int = 0
    """1: the profiler is asked about programs that passed, where it is permitted."""
    tokens: int | None = None
    dollars: float | None = None
    questions: int | None = None
    price_asked: float = 0.0
    """Dollars for a million tokens."""
    price_answered: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the options that `name=value,...` says; raise UsageError for others."""
        shared = {f.name for f in fields(ModelOptions)}
        known = sorted((f.name for f in fields(cls)), key=lambda name: name in shared)  # a search's own first
        values: dict[str, Any] = {}
        for piece in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, value = piece.partition("=")
            try:
                values[name] = float(value) if name in ("dollars", "price_asked", "price_answered") else int(value)
            except ValueError:
                name = ""
            if name not in known or not 0 <= values[name] < math.inf:
                raise UsageError(f"expected options such as {cls.EXAMPLE}, saw {piece!r}", f"known: {', '.join(known)}")
        return cls(**values)

    @property
    def limits(self) -> Limits:
        """What the model may cost in all."""
        return Limits(self.tokens, self.dollars, self.questions, self.price_asked, self.price_answered)


@dataclass
class ModelSearch(ABC):
    """A search that asks a model: `search(space, rng, batch)` proposes what it writes."""

    chat: Chat
    options: ModelOptions
    log: Path | None = None
    """File that gets every question and answer."""
    device: str = "one GPU"
    """What the programs run on, in words."""
    stopped: str = ""
    """Why no more was asked, where that was not for the search's own end."""
    meter: Metered | None = field(default=None, repr=False)
    counted: Callable[[Record], str] | None = field(default=None, repr=False)
    """Gives what a profiler counted of a program, in words."""

    __name__ = ""

    @property
    def unanswered(self) -> int:
        """Questions that the endpoint gave no answer to: the same run asks them again."""
        return self.meter.unanswered if self.meter is not None else 0

    @abstractmethod
    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Propose what the model writes."""

    def conversation(self, space: Space[Any]) -> Conversation:
        """Begin to ask about programs of a space; raise UsageError where a model may not write them."""
        self.meter = Metered(self.chat, self.options.limits, self.log)
        return Conversation(writing_of(space), self.meter, self.device, space.facts, self.counted)


@dataclass(frozen=True)
class Tried:
    """One program of the model's, and what became of it."""

    text: str
    record: Record
    note: str
    """Where it came from: `level 1, candidate 2`."""
    origin: str = field(default="", repr=False)
    """Text of the program that the question showed."""

    @property
    def gate(self) -> str:
        """The gate at which it ended."""
        return GATES.get(self.record.status, "functional validation")

    @property
    def passed(self) -> bool:
        """Did it pass all gates?"""
        return self.record.status == "ok"

    @property
    def speedup(self) -> float:
        """Over the best baseline; 0 for one that did not pass."""
        return self.record.speedup

    def line(self) -> str:
        """Return it in a line, for the history."""
        if self.passed:
            return f"{self.note}: passed, {self.record.speedup:.2f} times as fast as the source given"
        return f"{self.note}: failed at {self.gate}: {' '.join(self.record.detail.split())[:200]}"


def best_of(tried: list[Tried]) -> Tried | None:
    """Return the fastest program that passed."""
    return max((one for one in tried if one.passed), key=lambda one: one.speedup, default=None)


def history_of(tried: list[Tried], without: Tried | None = None) -> str:
    """Return what was tried before, a line each, the latest last: the question does not grow with the run."""
    lines = [one.line() for one in tried if one is not without]
    left_out = len(lines) - HISTORY
    shown = [f"({left_out} earlier ones)"] if left_out > 0 else []
    return "\n".join(["", *shown, *lines[-HISTORY:]]) if lines else "nothing"


@dataclass
class Conversation:
    """Questions to a model about one task. A dead endpoint, or a limit, ends it: `stopped` says why."""

    writing: Writing
    chat: Metered
    device: str
    facts: Callable[[Candidate], Facts] | None = None
    counted: Callable[[Record], str] | None = None
    """Gives what a profiler counted of a program, in words."""
    stopped: str = ""

    def program(self, about: Mapping[str, Any]) -> str:
        """Return the program in the model's answer to a question; "" for none. `about["template"]` names the question's file in prompts/."""
        answer = self.answer(about)
        return program_of(answer, self.writing.marks, self.writing.other_marks, str(about.get("source", ""))) if answer else ""

    def answer(self, about: Mapping[str, Any]) -> str:
        """Return the model's answer to a question; "" for none."""
        template = (PROMPTS / f"{about['template']}.txt").read_text()
        always = {"statement": self.writing.statement, "context": self.writing.context, "device": self.device}
        messages: list[Message] = [
            {"role": "system", "content": (PROMPTS / "system.txt").read_text()},
            {"role": "user", "content": filled(template, {**always, **about})},
        ]
        try:
            return self.chat.ask(messages)
        except LimitReached as error:
            self.stopped = str(error)
        except ChatError as error:
            if self.chat.failed >= self.chat.limits.failures:
                self.stopped = str(error)
        return ""

    def profile(self, one: Tried) -> str:
        """Return what is known of a program that passed: times, what the compiler says, what was counted, what changed since its parent."""
        facts = self.facts(one.record.candidate) if self.facts is not None else None
        counted = self.counted(one.record) if self.counted is not None else ""
        return "\n".join(filter(None, [profile(one.record, facts), counted, changes(one.origin, one.text)]))


def writing_of(space: Space[Any]) -> Writing:
    """Return how a model may write programs of a space; raise UsageError where it may not."""
    if space.writing is None:
        raise UsageError("expected a task that a model can write programs for, saw one of rewrites alone", "give a .cu file (docs/cuda.md)")
    return space.writing


def filled(template: str, values: Mapping[str, Any]) -> str:
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
