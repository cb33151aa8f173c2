"""What a sanitized kernel reports."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("race", "out-of-bounds", "uninitialised", "barrier")


@dataclass(frozen=True)
class Finding:
    """One thing that the sanitizer found."""

    kind: str
    """One of KINDS."""
    line: int
    """Of the CUDA source."""
    text: str


def findings(text: str) -> list[Finding]:
    """Return what the library reported, one finding for each kind and line."""
    reported: dict[tuple[str, int], Finding] = {}
    for row in text.splitlines():
        kind, line, what = row.split("\t", 2)
        reported.setdefault((kind, int(line)), Finding(kind, int(line), what))
    return sorted(reported.values(), key=lambda one: (one.line, one.kind))
