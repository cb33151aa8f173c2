"""Several programs asked for by one question, and proposed: what each search that asks a model does with a question of its own."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from warpwright.base import Record
from warpwright.search.llm.conversation import Conversation, Tried
from warpwright.search.moves import Recipe, ask

Proposal = Generator[list[Recipe], list[Record], list[Tried]]
"""Proposes programs, and returns what became of them."""


def answers(talk: Conversation, about: Mapping[str, Any], count: int) -> dict[str, int]:
    """Ask for `count` programs; return the different ones, each with the number of its question. Where the model fails, those before that."""
    texts: dict[str, int] = {}
    for number in range(1, count + 1):
        text = talk.program({**about, "number": number, "count": count})
        if text:
            texts.setdefault(text, number)
        if talk.stopped:
            break
    return texts


def evaluated(talk: Conversation, texts: Mapping[str, str], origin: str, batch: int) -> Proposal:
    """Propose texts, each with where it comes from in words; `origin` is the program that the question showed."""
    if not texts:
        return []
    records = yield from ask([(talk.writing.action(text),) for text in texts], batch)
    return [Tried(text, record, note, origin) for (text, note), record in zip(texts.items(), records, strict=True)]
