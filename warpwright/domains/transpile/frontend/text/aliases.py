"""`using box_t = box_t<T>;` in a class: nvcc takes it, g++ finds that it changes what the name means there; with its namespace it is taken."""

from __future__ import annotations

import re

from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit

_SELF = re.compile(r"\busing\s+(\w+)\s*=\s*(?:typename\s+)?(?=\1\s*<)")


def edits(source: Source) -> list[Edit]:
    """Put the namespace in front of a class template that gives its name to a type of a class, there and where the class named it before."""
    found: list[Edit] = []
    for match in _SELF.finditer(source.text):
        scopes = _scopes(source, match[1])
        if len(scopes) != 1:
            continue
        spelled = "".join(f"{one}::" for one in ("", *scopes.pop()))
        begun = max((start for start, _, end in source.pieces if start <= match.start() < end), default=match.start())
        before = re.finditer(rf"(?<![\w:.>])\b{match[1]}(?=\s*<)", source.text[begun : match.start()])
        found += [Edit(at, at, spelled) for at in (*(begun + one.start() for one in before), match.end())]
    return found


def _scopes(source: Source, name: str) -> set[tuple[str, ...]]:
    """Return the namespaces in which a class template of a name is declared; those within classes and functions are left out."""
    tokens = source.tokens
    scopes: set[tuple[str, ...]] = set()
    around: list[tuple[str, ...] | None] = []
    """The names of each brace's namespace; None for another brace."""
    opened: tuple[str, ...] | None = None
    for at, token in enumerate(tokens):
        if token.text == "namespace":
            words = [one.text for one in tokens[at + 1 : at + 12]]
            head = words[: words.index("{")] if "{" in words else ["="]
            opened = None if {"=", ";"} & set(head) else tuple(one for one in head if one not in ("::", "inline"))
        elif token.text == "{":
            around.append(opened)
            opened = None
        elif token.text == "}" and around:
            around.pop()
        elif token.text == name and tokens[at - 1].text in ("struct", "class", "union") and tokens[at - 2].text in (">", ">>") and None not in around:
            scopes.add(tuple(word for one in around for word in one or ()))
    return scopes
