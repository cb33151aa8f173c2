"""A chat under limits: it counts tokens and dollars, stops before a limit is passed, and logs every question."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpwright.base import now
from warpwright.errors import ChatError, LimitReached, UsageError
from warpwright.llm.chat import Chat, Message, Usage, prompt_digest
from warpwright.llm.recorded import Recording, without_torn_line
from warpwright.secrets import scrubbed


@dataclass(frozen=True)
class Limits:
    """What a run may spend on a model; None: no limit of that kind. Prices are dollars for a million tokens."""

    tokens: int | None = None
    dollars: float | None = None
    questions: int | None = None
    price_asked: float = 0.0
    price_answered: float = 0.0
    failures: int = 3
    """So many questions in a row without an answer, and the endpoint is taken to be dead."""


@dataclass
class Metered:
    """A chat under limits, which writes each question, its answer and what it cost to a file that `Replay` can play."""

    chat: Chat
    limits: Limits = Limits()
    log: Path | None = None
    most_tokens: int = 8192
    """An answer has at most so many."""
    tokens: int = 0
    dollars: float = 0.0
    questions: int = 0
    failed: int = 0
    """Questions in a row that had no answer."""
    unanswered: int = 0
    """All that had none."""
    answered: dict[str, list[_Answered]] = field(default_factory=dict, repr=False)
    """What the log has, by question: a run that was cut short goes on where it stood, and pays for no answer again. What these took counts once more
    in the run that uses them, so that a run in pieces keeps its limits, too."""

    def __post_init__(self) -> None:
        if self.log is not None and self.log.exists():
            without_torn_line(self.log)
            self.answered = _answers_of(self.log)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.chat.name

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError; LimitReached where the answer could pass a limit."""
        key = prompt_digest(self.name, messages)
        if self.answered.get(key):
            before = self.answered[key].pop(0)
            self.tokens, self.dollars = self.tokens + before.tokens, self.dollars + before.dollars
            if isinstance(self.chat, Recording):
                self.chat.played += 1  # it was asked this before the run was cut short
            return before.answer
        self._expect_room(messages)
        began = time.monotonic()
        self.questions += 1
        try:
            answer = self.chat.ask(messages)
        except ChatError as error:
            self.failed += 1
            self.unanswered += 1
            self._write(messages, {"failure": scrubbed(str(error)), "seconds": round(time.monotonic() - began, 3)})
            raise
        self.failed = 0
        usage = getattr(self.chat, "usage", None) or Usage.estimated(messages, answer)
        cost = self._cost(usage)
        self.tokens, self.dollars = self.tokens + usage.asked + usage.answered, self.dollars + cost
        spent = {"asked_tokens": usage.asked, "answered_tokens": usage.answered, "dollars": cost, "seconds": round(time.monotonic() - began, 3)}
        self._write(messages, {"answer": answer, **spent})
        return answer

    def _cost(self, usage: Usage) -> float:
        return (usage.asked * self.limits.price_asked + usage.answered * self.limits.price_answered) / 1e6

    def _expect_room(self, messages: Sequence[Message]) -> None:
        """The dearest answer has to fit: a limit is never passed, not even by the last question."""
        most = Usage(Usage.estimated(messages, "").asked, self.most_tokens)
        limits = self.limits
        if self.failed >= limits.failures:
            raise LimitReached(f"expected {self.name} to answer, saw {self.failed} questions in a row without an answer", "is it up?")
        for what, spent, more, most_allowed in (
            ("questions", self.questions, 1, limits.questions), ("tokens", self.tokens, most.asked + most.answered, limits.tokens),
            ("dollars", self.dollars, self._cost(most), limits.dollars),
        ):  # fmt: skip
            if most_allowed is not None and spent + more > most_allowed:
                spending = f"{spent:g} of {most_allowed:g} {what} are spent, and the next question may take {more:g}"
                raise LimitReached(f"the model's limit is reached: {spending}", "raise the limit to go on; what was answered is kept")

    def _write(self, messages: Sequence[Message], row: Mapping[str, Any]) -> None:
        if self.log is None:
            return
        key = prompt_digest(self.name, messages)
        whole = {"prompt": key, "model": self.name, "messages": [dict(m) for m in messages], **row, "when": now()}
        with self.log.open("a") as file:
            file.write(scrubbed(json.dumps(whole)) + "\n")


@dataclass(frozen=True)
class _Answered:
    """An answer of a log, and what it took."""

    answer: str
    tokens: int
    dollars: float


def _answers_of(log: Path) -> dict[str, list[_Answered]]:
    """Return the answers of a log by question, in their order; raise UsageError for a file that is none."""
    answers: dict[str, list[_Answered]] = {}
    for number, line in enumerate(log.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
            if "failure" not in row:
                tokens = row.get("asked_tokens", 0) + row.get("answered_tokens", 0)
                answers.setdefault(row["prompt"], []).append(_Answered(row["answer"], tokens, row.get("dollars", 0.0)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"expected prompt and answer in line {number} of {log}, saw {line[:80]!r}", "move it away to begin anew") from error
    return answers
