"""How a bug of each of ten kinds is planted in one line of anybody's kernel: a rule of rewriting, not a text."""

from __future__ import annotations

import re
from collections.abc import Callable

BARRIER = re.compile(
    r"(?:\b__syncthreads\s*\(\s*\)|\b__syncwarp\s*\([^;]*\)|\b(?:cg::|cooperative_groups::)sync\s*\(\s*\w+\s*\)|\b\w+\.sync\(\))\s*;"
)
ATOMIC = re.compile(r"\batomic(Add|Max|Min|Or|Inc)\s*\(")
BLOCK = re.compile(r"\b(?:blockIdx\.[xyz]|(?:cta|block)\.group_index\(\)\.[xyz])")

SHOWS = {
    "missing barrier": "race", "missing second barrier": "race", "narrow barrier": "race", "missing atomic": "race", "missing block offset": "race",
    "missing guard": "out-of-bounds", "off by one": "out-of-bounds", "negative index": "out-of-bounds", "uninitialised": "uninitialised",
    "divergent barrier": "barrier",
}  # fmt: skip
"""Kind of bug -> the kind of finding that it has to be."""


def closing(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one at `start`."""
    pairs = {"(": ")", "[": "]"}
    depth, left, right = 0, text[start], pairs[text[start]]
    for at in range(start, len(text)):
        depth += (text[at] == left) - (text[at] == right)
        if depth == 0:
            return at
    raise ValueError(f"expected {right!r} in {text!r}, saw none")


def comma(text: str) -> int:
    """Return the index of the first comma outside brackets."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            return at
    raise ValueError(f"expected two arguments in {text!r}, saw one")


def found(pattern: re.Pattern[str], line: str, nth: int) -> re.Match[str]:
    matches = list(pattern.finditer(line))
    if len(matches) <= nth:
        raise ValueError(f"expected {pattern.pattern!r} {nth + 1} times in {line!r}, saw {len(matches)}")
    return matches[nth]


def without_barrier(line: str, nth: int) -> str:
    match = found(BARRIER, line, nth)
    return line[: match.start()] + ";" + line[match.end() :]


def narrow_barrier(line: str, nth: int) -> str:
    """Let only the warp wait, where the block should."""
    match = found(BARRIER, line, nth)
    return line[: match.start()] + "__syncwarp();" + line[match.end() :]


def divergent_barrier(line: str, nth: int) -> str:
    """Let the first thread pass it by."""
    match = found(BARRIER, line, nth)
    return line[: match.start()] + "if (threadIdx.x + threadIdx.y + threadIdx.z > 0) " + line[match.start() :]


def without_atomic(line: str, nth: int) -> str:
    """Read, compute and write without the atomic."""
    match = found(ATOMIC, line, nth)
    start = match.end() - 1
    end = closing(line, start)
    inner = line[start + 1 : end]
    at = comma(inner)
    where, value = inner[:at].strip(), inner[at + 1 :].strip()
    place = f"*({where})"
    made = {"Add": f"{place} = {place} + ({value})", "Or": f"{place} = {place} | ({value})", "Inc": f"{place} = {place} + 1"}
    chosen = made.get(match[1]) or f"{place} = {place} {'>' if match[1] == 'Max' else '<'} ({value}) ? {place} : ({value})"
    return line[: match.start()] + chosen + line[end + 1 :]


def without_block(line: str, nth: int) -> str:
    match = found(BLOCK, line, nth)
    return line[: match.start()] + "0" + line[match.end() :]


def without_guard(line: str, nth: int) -> str:
    """Let all threads pass a condition: `if (i < n)` is always true, `if (i >= n)`, before what leaves, never."""
    match = found(re.compile(r"\bif\s*\("), line, nth)
    end = closing(line, match.end() - 1)
    return line[: match.end()] + ("false" if ">=" in line[match.end() : end] else "true") + line[end:]


def one_more(line: str, nth: int) -> str:
    """Go one too far: `i < n` as `i <= n`, `i >= n` (of a return) as `i > n`; else the next element of an array."""
    bound = re.compile(r"(?<=[\w)\]])\s*(<|>=)\s*(?=[\w(])(?![^;]*>\s*\()")
    if re.search(r"\b(if|for|while)\s*\(", line) and len(matches := list(bound.finditer(line))) > nth:
        match = matches[nth]
        return line[: match.start()] + (" <= " if match[1] == "<" else " > ") + line[match.end() :]
    return moved(line, nth, "+ 1")


def one_less(line: str, nth: int) -> str:
    return moved(line, nth, "- 1")


def moved(line: str, nth: int, by: str) -> str:
    """Move the place of an access."""
    start = found(re.compile(r"(?<=[\w\])])\["), line, nth).end() - 1
    end = closing(line, start)
    return f"{line[: start + 1]}({line[start + 1 : end]}) {by}{line[end:]}"


def without_store(line: str, nth: int) -> str:
    """Leave the store out of `s[i] = x;`, whatever stands before it."""
    match = found(re.compile(r"[\w.>-]+(?:\[[^=;]*\])*\s*=(?!=)[^;]*;"), line, nth)
    return line[: match.start()] + ";" + line[match.end() :]


RULES: dict[str, Callable[[str, int], str]] = {
    "missing barrier": without_barrier, "missing second barrier": without_barrier, "narrow barrier": narrow_barrier,
    "missing atomic": without_atomic, "missing block offset": without_block, "missing guard": without_guard, "off by one": one_more,
    "negative index": one_less, "uninitialised": without_store, "divergent barrier": divergent_barrier,
}  # fmt: skip


def planted(text: str, line: int, kind: str, nth: int = 0) -> str:
    """Return the text with a bug of a kind in a line (from 1 on), at the nth place of it where the rule applies."""
    lines = text.split("\n")
    lines[line - 1] = RULES[kind](lines[line - 1], nth)
    return "\n".join(lines)
