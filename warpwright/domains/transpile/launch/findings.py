"""What a sanitized kernel reports."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("race", "out-of-bounds", "uninitialised", "barrier")

NOTES = ("same-value",)
"""What is said beside the findings and is none: threads of a block write one value to one place on purpose."""


@dataclass(frozen=True)
class Finding:
    """One thing that the sanitizer found."""

    kind: str
    """One of KINDS, of a note one of NOTES."""
    line: int
    """Of the CUDA source."""
    text: str


def findings(text: str) -> list[Finding]:
    """Return what the library reported, one finding for each kind and line, without the notes."""
    return [one for one in _reported(text) if one.kind in KINDS]


def notes(text: str) -> list[Finding]:
    """Return the notes that the library reported, one for each kind and line."""
    return [one for one in _reported(text) if one.kind in NOTES]


def _reported(text: str) -> list[Finding]:
    reported: dict[tuple[str, int], Finding] = {}
    for row in text.splitlines():
        kind, line, what = row.split("\t", 2)
        reported.setdefault((kind, int(line)), Finding(kind, int(line), what))
    return sorted(reported.values(), key=lambda one: (one.line, one.kind))
