"""Answers that say what to change in a program instead of saying it whole: unified diffs, and blocks of SEARCH and REPLACE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_REPLACE = re.compile(r"^<{5,9}[ \t]*(?:SEARCH|ORIGINAL|HEAD)?[^\n]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9}[ \t]*(?:REPLACE|UPDATED)?[^\n]*$", re.M | re.S)
_HUNK = re.compile(r"^@@.*$", re.M)
_HEAD = re.compile(r"^(---|\+\+\+|diff |index |\\ No newline|new file|deleted file|similarity|rename )")


def is_patch(code: str, language: str = "") -> bool:
    """Are these changes of a program rather than one?"""
    return language in ("diff", "patch", "udiff") or bool(re.search(r"^@@ .*@@|^--- .*\n\+\+\+ ", code, re.M)) or _REPLACE.search(code) is not None


def edited(text: str, blocks: Sequence[tuple[str, str]], source: str) -> Iterator[str]:
    """Yield what the changes in an answer make of `source`, and what a diff alone says of the new text. Changes that do not fit make nothing."""
    replacements = _REPLACE.findall(text)
    if replacements and source:
        changed = replaced(source, replacements)
        if changed is not None:
            yield changed
    patches = [code for language, code in blocks if is_patch(code, language) and _REPLACE.search(code) is None]
    if patches and source:
        changed = patched(source, "\n".join(patches))
        if changed is not None:
            yield changed
    for patch in reversed(patches):
        yield "\n".join(line[1:] for line in _lines(patch) if not line.startswith("-")) + "\n"


def replaced(source: str, pairs: Sequence[tuple[str, str]]) -> str | None:
    """Return a text with each first text of a pair replaced by the second; None where one is not found."""
    lines: list[str] | None = source.split("\n")
    for old, new in pairs:
        lines = _exchanged(lines, _trimmed(old), _trimmed(new)) if lines is not None else None
    return "\n".join(lines) if lines is not None else None


def patched(source: str, patch: str) -> str | None:
    """Return a text with the hunks of a unified diff applied, whatever line numbers it names; None where one does not fit."""
    lines: list[str] | None = source.split("\n")
    for hunk in _HUNK.split(patch):
        marked = _lines(hunk)
        if not any(line.startswith(("+", "-")) for line in marked) or lines is None:
            continue
        old = [line[1:] for line in marked if not line.startswith("+")]
        new = [line[1:] for line in marked if not line.startswith("-")]
        lines = _exchanged(lines, old, new)
    return "\n".join(lines) if lines is not None else None


def _lines(patch: str) -> list[str]:
    """Return a hunk's lines, each with its mark; empty ones stand for empty lines of the text, but at the ends."""
    lines = [line if line else " " for line in patch.strip("\n").split("\n") if not _HEAD.match(line) and not line.startswith("@@")]
    return lines


def _trimmed(text: str) -> list[str]:
    return text.strip("\n").split("\n") if text.strip() else []


def _exchanged(lines: list[str], old: list[str], new: list[str]) -> list[str] | None:
    """Return lines with the first place that reads like `old` replaced; blanks at the ends of lines do not count. None where there is none."""
    if not old:
        return None
    for like in (str.rstrip, str.strip):
        wanted = [like(line) for line in old]
        seen = [like(line) for line in lines]
        at = next((at for at in range(len(seen) - len(wanted) + 1) if seen[at : at + len(wanted)] == wanted), -1)
        if at >= 0:
            return [*lines[:at], *new, *lines[at + len(old) :]]
    return None
