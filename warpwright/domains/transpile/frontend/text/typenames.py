"""`A<T>::type A<T>::find()`: nvcc takes a dependent type without `typename` where nothing but a type can stand, as C++20 does; C++17 does not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import ATTRIBUTES, Token

_MAY_BE = re.compile(r">\s*::\s*\w+\s*[;*&\w]")
_BEFORE = {*ATTRIBUTES, "const", "virtual", "friend", "volatile"}


def insertions(text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
    """Return where a `typename` is missing in front of what a template's function gives back or a template's alias stands for."""
    if not _MAY_BE.search(text):
        return []
    found = []
    for at, token in enumerate(tokens):
        if token.text == "template" and at + 1 < len(tokens) and tokens[at + 1].text == "<":
            first = _declared(tokens, at)
        elif token.text == "using" and at + 2 < len(tokens) and tokens[at + 2].text == "=":
            first = at + 3
        else:
            continue
        last = _qualified(tokens, first)
        if last is not None and _is_type(tokens, last, token.text):
            found.append((tokens[first].start, "typename "))
    return sorted(set(found))


def _declared(tokens: Sequence[Token], at: int) -> int:
    """Return the index after the template's headers and the words in front of the type."""
    while at < len(tokens) and tokens[at].text == "template" and (closing := scan.angles(tokens, at + 1)) is not None:
        at = closing + 1
    while at < len(tokens) and tokens[at].text in _BEFORE:
        at += 1
    return at


def _qualified(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index after `a::b<T>::c` if that begins at the index and names something within a template's instance."""
    instance = within = False
    at += at < len(tokens) and tokens[at].text == "::"
    while at < len(tokens) and tokens[at].kind == "word" and tokens[at].text not in ("typename", "operator", "template", "decltype"):
        within = instance
        at += 1
        if at < len(tokens) and tokens[at].text == "<":
            closing = scan.angles(tokens, at)
            if closing is None:
                return None
            at, instance = closing + 1, True
            ends = True
        else:
            ends = False
        if at >= len(tokens) or tokens[at].text != "::":
            return at if within and not ends else None
        at += 1
    return None


def _is_type(tokens: Sequence[Token], last: int, keyword: str) -> bool:
    """Say whether what ends in front of an index is followed by what only a type is: the name of a function, or the end of an alias."""
    after = tokens[last].text if last < len(tokens) else ""
    if keyword == "using":
        return after == ";"
    while after in ("*", "&", "const") and last + 1 < len(tokens):
        last += 1
        after = tokens[last].text
    return last < len(tokens) and tokens[last].kind == "word" and last + 1 < len(tokens) and tokens[last + 1].text in ("::", "(", "<")
