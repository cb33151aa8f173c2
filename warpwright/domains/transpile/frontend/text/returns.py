"""A function that gives back a number and has no `return` at all: its callers ignore it, but compilers of today leave its end out.

It runs into whatever lies behind it then."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Token

_NUMBERS = {"int", "bool", "float", "double", "unsigned", "long", "short", "char", "size_t"}
_BEFORE = {";", "}", "{", ">", ":", "static", "inline", "virtual", "__host__", "__device__", "__forceinline__", "__inline__", *_NUMBERS}
_BETWEEN = {"const", "noexcept", "override", "final"}
_ENDS = {"return", "throw", "asm", "__asm__", "goto", "exit", "abort", "_exit", "__trap", "terminate", "longjmp", "__builtin_unreachable", "main"}


def insertions(tokens: Sequence[Token]) -> list[tuple[int, str]]:
    """Return where a `return 0;` goes."""
    found = []
    for at in range(1, len(tokens)):
        if tokens[at].text not in _NUMBERS or tokens[at - 1].text not in _BEFORE:
            continue
        opening = _body(tokens, at + 1)
        if opening is None:
            continue
        closing = scan.matching(tokens, opening, "{", "}")
        if not any(token.text in _ENDS for token in tokens[at:closing]):
            found.append((tokens[closing].start, "return 0; "))
    return found


def _body(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the brace of the function's body whose name begins at an index, as `A<T>::size() const {`; None where none is there."""
    name = False
    while at < len(tokens) and (tokens[at].kind == "word" or tokens[at].text in ("::", "<")):
        if tokens[at].text in _NUMBERS or tokens[at].text == "operator":
            return None
        name = tokens[at].kind == "word"
        closing = scan.angles(tokens, at) if tokens[at].text == "<" else at
        if closing is None:
            return None
        at = closing + 1
        if name and at < len(tokens) and tokens[at].kind == "word":
            return None
    if not name or at >= len(tokens) or tokens[at].text != "(":
        return None
    at = scan.matching(tokens, at) + 1
    while at < len(tokens) and tokens[at].text in _BETWEEN:
        at += 1
    return at if at < len(tokens) and tokens[at].text == "{" else None
