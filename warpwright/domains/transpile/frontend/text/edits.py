"""Edits of a text: what is put in place of which part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replace [start, end) of a text."""

    start: int
    end: int
    text: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with the edits made; where two overlap, the one that starts first (the longer one) counts.

    What is put in where another text is replaced stands in front of it.
    """
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end > e.start, -e.end)):
        if edit.start < at:
            continue
        out += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*out, text[at:]])
