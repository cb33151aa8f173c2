"""What a chat is: text in, text out, with what a question and its answer took."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpwright.base import digest

Message = Mapping[str, str]
"""`role` (system, user, assistant) and `content`."""

LETTERS = 3
MOST_TOLD = 100_000_000
"""Tokens of one question that an endpoint may speak of."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one question and its answer."""

    asked: int
    answered: int

    @classmethod
    def estimated(cls, messages: Sequence[Message], answer: str) -> Usage:
        """Return what a question took where the endpoint does not say: a token has about four letters of English, and three of code."""
        return cls(sum(len(message["content"]) for message in messages) // LETTERS + 1, len(answer) // LETTERS + 1)

    @classmethod
    def told(cls, usage: Any) -> Usage | None:
        """Return what an endpoint says of it; None where that cannot be, as it is counted against a limit."""
        told = usage if isinstance(usage, dict) else {}
        asked, answered = told.get("prompt_tokens"), told.get("completion_tokens")
        if not isinstance(asked, int) or not isinstance(answered, int) or isinstance(asked, bool) or isinstance(answered, bool):
            return None
        return cls(asked, answered) if 0 < asked <= MOST_TOLD and 0 <= answered <= MOST_TOLD else None


class Chat(Protocol):
    """Text in, text out."""

    name: str

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the model's answer. Raises ChatError."""
        ...


def prompt_digest(model: str, messages: Sequence[Message]) -> str:
    """Return the key of a question to a model."""
    return digest(model, json.dumps([dict(message) for message in messages], sort_keys=True, ensure_ascii=False))
