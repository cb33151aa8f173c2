"""Recorded answers: `Replay` finds them by the prompt's hash and records what is missing; `Recording` plays them in their order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpwright.errors import ChatError, UsageError
from warpwright.llm.chat import Chat, Message, prompt_digest


@dataclass
class Replay:
    """Answers from a JSONL file, by the hash of model and messages; with `live`, what is missing is asked and recorded."""

    path: Path
    name: str = "replay"
    live: Chat | None = None
    known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.live is not None:
            self.name = self.live.name
        if not self.path.exists():
            if self.live is None:
                raise UsageError(f"expected a file of recorded answers, saw no {self.path}", "record one with --model openai:URL,MODEL --record FILE")
            return
        if self.live is not None:
            without_torn_line(self.path)
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            try:
                row: Any = json.loads(line)
                if "failure" in row and "prompt" in row:
                    continue
                self.known[row["prompt"]] = row["answer"]
                if self.live is None and row.get("model"):
                    self.name = str(row["model"])
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(
                    f"expected prompt and answer in line {number} of {self.path}, saw {line[:80]!r}", "was it recorded by warpwright?"
                ) from error

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the recorded answer. Raises ChatError where there is none."""
        key = prompt_digest(self.name, messages)
        if key in self.known:
            return self.known[key]
        if self.live is None:
            raise ChatError(f"expected a recorded answer to the prompt {key} of {self.name} in {self.path}, saw none", "record it with --record")
        answer = self.live.ask(messages)
        self.known[key] = answer
        with self.path.open("a") as file:
            file.write(json.dumps({"prompt": key, "model": self.name, "answer": answer}) + "\n")
        return answer


@dataclass
class Recording:
    """A recorded conversation, played in its order whatever is asked: what is asked depends on times that no two runs share."""

    path: Path
    name: str = "recording"
    played: int = 0
    answers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            rows = [json.loads(line) for line in self.path.read_text().splitlines()]
            self.answers = [row["answer"] for row in rows if "failure" not in row]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"expected a recorded conversation in {self.path}, saw {error!r}", "a line each, with its answer") from error

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the next answer. Raises ChatError after the last one."""
        if self.played >= len(self.answers):
            raise ChatError(f"expected at most {len(self.answers)} questions, as {self.path} has answers, saw one more", "record a longer one")
        self.played += 1
        return self.answers[self.played - 1]


def without_torn_line(log: Path) -> None:
    """Take the last line off a log where a process that was killed had not ended it: its question is asked again."""
    data = log.read_bytes()
    if data and not data.endswith(b"\n"):
        with log.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
