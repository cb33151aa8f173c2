"""Global variables of the device, one for each source as in CUDA: another source may have one of the same name, and so may the host.

    __constant__ float taps[9];   ->   static __constant__ float taps[9]; WW_NAMED(taps, ...)

nvcc's host sees such variables as static. WW_NAMED is a weak alias by the plain name: a source that says `extern __constant__ float taps[9]`
(relocatable device code) finds the variable by it, and it gives way to a variable of the host that is called the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Token
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit

_SPACES = frozenset(["__device__", "__constant__", "__managed__"])
_OTHERS = frozenset(["static", "extern", "inline", "template", "typedef", "using", "constexpr", "struct", "class", "union", "enum", "operator"])
"""What has these words has no name outside of its source already, or is left as it is."""


def edits(source: Source) -> list[Edit]:
    """Return the edits of the variables in no namespace and no `extern "C"` block, but for those that the text also declares `extern`."""
    if not any(word in source.text for word in _SPACES):
        return []
    found: list[Edit] = []
    tokens, at, depth = source.tokens, 0, 0
    for start, _, end in source.pieces:
        while tokens[at].start < start:
            depth += (tokens[at].text == "{") - (tokens[at].text == "}")
            at += 1
        first = at
        while at < len(tokens) and tokens[at].start < end:
            at += 1
        names = _names(tokens[first:at]) if depth == 0 else []
        if names and not any(re.search(rf"\bextern\b[^;(){{}}]*\b{name}\b", source.text) for name in names):
            if tokens[at - 1].text != ";":  # behind `alignas(16)` values in braces look like a function's body
                if at == len(tokens) or tokens[at].text != ";":
                    continue
                end = tokens[at].end
            begin = _behind_alignment(tokens, first, start)
            found += [Edit(begin, begin, "static "), Edit(end, end, "".join(map(_alias, names)))]
    return found


def _behind_alignment(tokens: Sequence[Token], at: int, start: int) -> int:
    """Return where `static` may stand in a declaration that begins at a token: `alignas(16)` comes before it."""
    while tokens[at].text == "alignas" or tokens[at].text in _SPACES:
        at = at + 1 if tokens[at].text in _SPACES else scan.matching(tokens, at + 1) + 1
        start = tokens[at].start if tokens[at - 1].text == ")" else start
    return start


def _alias(name: str) -> str:
    return f' WW_NAMED({name}, "{name}", "_ZL{len(name)}{name}")'


def _names(piece: Sequence[Token]) -> list[str]:
    """Return the variables that a declaration defines for the device; none where it is anything else."""
    names: list[str] = []
    spaces: set[str] = set()
    at = 0
    while at < len(piece):
        text = piece[at].text
        spaces |= {text} & _SPACES
        if text in _OTHERS or (text == "const" and not names and not any(one.text == "*" for one in piece)):
            return []
        if text == "<" and (close := scan.angles(piece, at)) is not None:
            at = close
        elif text in ("__align__", "alignas", "__attribute__") and at + 1 < len(piece) and piece[at + 1].text == "(":
            at = scan.matching(piece, at + 1, "(", ")")
        elif text == "(":
            return []  # a function, or a pointer to one
        elif text in ("[", "=", ",", ";", "{"):
            if at == 0 or piece[at - 1].kind != "word":
                return []
            names.append(piece[at - 1].text)
            at = _behind(piece, at)
        at += 1
    return names if spaces else []


def _behind(piece: Sequence[Token], at: int) -> int:
    """Return the index of the comma or semicolon that ends a declarator."""
    while at < len(piece) and piece[at].text not in (",", ";"):
        if piece[at].text in ("(", "[", "{"):
            at = scan.matching(piece, at, piece[at].text, {"(": ")", "[": "]", "{": "}"}[piece[at].text])
        elif piece[at].text == "<":
            at = scan.angles(piece, at) or at
        at += 1
    return at
