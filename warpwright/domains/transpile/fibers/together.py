"""Tier F for code that asks which lanes are together: `__activemask()`, shuffles and votes without a mask, `coalesced_threads()`.

Such lanes are those that wait at the same place (`ww::converged`). On a GPU lanes that part in a turn of a loop are together again when the next turn
begins, however they came there; and a function that is called from two branches asks in each of them alone. So in functions that ask the turns of
loops are counted, and calls of such functions told apart:

    for (...) { if (a) continue; m = __activemask(); }
    { ww::At ww_at_0(__LINE__, 0); for (...) { { if (a) goto ww_next_0; m = __activemask(); } ww_next_0: ww_at_0.next(); } }

    if (a) f(x); else f(y);
    if (a) (ww::At(__LINE__, 1), f(x)); else (ww::At(__LINE__, 2), f(y));

Lanes of an earlier turn go on first (`ww::before`). Other code stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from warpwright.domains.transpile.analysis.synchronisation import SHUFFLES, VOTES
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Token
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.frontend.text.shifts import device_bodies

ASKS = frozenset([*SHUFFLES, *VOTES, "__activemask", "coalesced_threads"])
"""What asks which lanes are together."""

_BEFORE_A_CALL = frozenset(["return", "else", "do", "case", "throw", "not", "and", "or", "xor"])


class _Loop(NamedTuple):
    """A loop, as indices of tokens: [start, stop), and of its body, [first, end)."""

    start: int
    first: int
    end: int
    stop: int


def edits(source: Source) -> list[Edit]:
    """Return what makes lanes meet after each turn of the loops that ask, and tells the places of calls apart."""
    tokens = source.tokens
    if not any(token.text in ASKS for token in tokens):
        return []
    bodies = list(device_bodies(tokens))
    functions = _asking(tokens, bodies)
    asking = [(low, high) for low, high in bodies if _asks(tokens, low, high, functions)]
    loops = [loop for low, high in asking for loop in _loops(tokens, low, high) if _asks(tokens, loop.start, loop.stop, functions)]
    calls = [call for low, high in asking for call in _calls(tokens, low, high, functions)]
    numbers = {at: number for number, at in enumerate(sorted({*(loop.start for loop in loops), *(first for first, _ in calls)}))}
    return [*_turns(tokens, loops, numbers), *_places(tokens, calls, numbers)]


def _asking(tokens: Sequence[Token], bodies: Sequence[tuple[int, int]]) -> frozenset[str]:
    """Return the names of the functions that ask, themselves or by one that they call."""
    named = [(name, low, high) for low, high in bodies if (name := name_of(tokens, low))]
    found: frozenset[str] = frozenset()
    while more := {name for name, low, high in named if name not in found and _asks(tokens, low, high, found)}:
        found |= more
    return found


def name_of(tokens: Sequence[Token], brace: int) -> str:
    """Return the name of the function whose body begins at an index."""
    at = brace
    while at > 0 and tokens[at].text != ")":
        at -= 1
        if tokens[at].text in (";", "}"):
            return ""
    at = _back(tokens, at) - 1
    return tokens[at].text if at >= 0 and tokens[at].kind == "word" else ""


def _back(tokens: Sequence[Token], at: int) -> int:
    """Return the index of what opens the parenthesis or bracket that the token at the index closes."""
    depth = 0
    for index in range(at, -1, -1):
        depth += (tokens[index].text in (")", "]")) - (tokens[index].text in ("(", "["))
        if depth == 0:
            return index
    return 0


def _asks(tokens: Sequence[Token], low: int, high: int, functions: Set[str]) -> bool:
    return any(is_call(tokens, at, functions) or is_call(tokens, at, ASKS) for at in range(low, high))


def is_call(tokens: Sequence[Token], at: int, names: Set[str]) -> bool:
    """Is one of the functions called at an index?"""
    return tokens[at].text in names and at + 1 < len(tokens) and tokens[at + 1].text in ("(", "<")


# --- loops ------------------------------------------------------------------------------------------------------------------------------


def _loops(tokens: Sequence[Token], low: int, high: int) -> Iterator[_Loop]:
    """Yield the loops in a range, outer ones first."""
    tails: set[int] = set()
    for at in range(low, high):
        word = tokens[at].text
        if word == "do":
            end = _statement(tokens, at + 1)
            tails.add(end)
            yield _Loop(at, at + 1, end, _statement(tokens, at))
        elif word in ("for", "while") and at not in tails and tokens[at + 1].text == "(":
            first = scan.matching(tokens, at + 1) + 1
            end = _statement(tokens, first)
            yield _Loop(at, first, end, end)


def _statement(tokens: Sequence[Token], at: int) -> int:
    """Return the index after the statement that begins at an index."""
    while tokens[at].text == "#":  # a pragma: to its line's end
        at += 1
        while tokens[at].text not in ("for", "while", "do", "{", "if"):
            at += 1
    word = tokens[at].text
    if word == "{":
        return scan.matching(tokens, at, "{", "}") + 1
    if word in ("for", "while", "switch", "if"):
        opening = next(i for i in range(at, len(tokens)) if tokens[i].text == "(")
        end = _statement(tokens, scan.matching(tokens, opening) + 1)
        return _statement(tokens, end + 1) if word == "if" and tokens[end].text == "else" else end
    if word == "do":
        return scan.matching(tokens, _statement(tokens, at + 1) + 1) + 2
    while tokens[at].text != ";":
        closing = {"(": ")", "[": "]", "{": "}"}.get(tokens[at].text)
        at = scan.matching(tokens, at, tokens[at].text, closing) + 1 if closing else at + 1
    return at + 1


def _turns(tokens: Sequence[Token], loops: Sequence[_Loop], numbers: Mapping[int, int]) -> list[Edit]:
    """Return the edits for loops: closings of inner ones stand before those of outer ones at the same place, openings the other way round."""
    openings: list[Edit] = []
    closings: list[Edit] = []
    jumps: list[Edit] = []
    for loop in loops:
        number = numbers[loop.start]
        skips = list(_continues(tokens, loop))
        jumps += [Edit(tokens[at].start, tokens[at].end, f"goto ww_next_{number}") for at in skips]
        label = f"ww_next_{number}: " if skips else ""
        openings.append(_put(tokens[loop.start].start, f"{{ ww::At ww_at_{number}(__LINE__, {number}); "))
        openings.append(_put(tokens[loop.first].start, "{ { "))
        closings += [_put(tokens[loop.stop - 1].end, " }"), _put(tokens[loop.end - 1].end, f" }} {label}ww_at_{number}.next(); }}")]
    return [*reversed(closings), *openings, *jumps]


def _put(at: int, text: str) -> Edit:
    return Edit(at, at, text)


def _continues(tokens: Sequence[Token], loop: _Loop) -> Iterator[int]:
    """Yield the `continue`s of a loop, those of loops inside left out."""
    within = list(_loops(tokens, loop.first, loop.end))
    for at in range(loop.first, loop.end):
        if tokens[at].text == "continue" and not any(other.first <= at < other.end for other in within):
            yield at


# --- calls ------------------------------------------------------------------------------------------------------------------------------


def _calls(tokens: Sequence[Token], low: int, high: int, functions: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield the calls of functions that ask, as indices of their first and last tokens."""
    for at in range(low, high):
        if not is_call(tokens, at, functions):
            continue
        opening: int | None = at + 1
        if tokens[at + 1].text == "<":
            closing = scan.angles(tokens, at + 1)
            opening = closing + 1 if closing is not None else None
        first = _first(tokens, at)
        declared = tokens[first - 1].kind == "word" and tokens[first - 1].text not in _BEFORE_A_CALL
        if opening is not None and tokens[opening].text == "(" and not declared:
            yield first, scan.matching(tokens, opening)


def _first(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the first token of a name with all that stands in front of it: `a.b[1].` of `a.b[1].f`, `n::` of `n::f`."""
    while tokens[at - 1].text in (".", "->", "::"):
        at -= 1
        if tokens[at - 1].text in (")", "]"):
            at = _back(tokens, at - 1)
            while tokens[at - 1].text in (")", "]"):
                at = _back(tokens, at - 1)
            at -= tokens[at - 1].kind == "word"
        elif tokens[at - 1].kind == "word":
            at -= 1
        else:
            break
    return at


def _places(tokens: Sequence[Token], calls: Sequence[tuple[int, int]], numbers: Mapping[int, int]) -> list[Edit]:
    before = [_put(tokens[first].start, f"(ww::At(__LINE__, {numbers[first]}), ") for first, _ in calls]
    return [*before, *(_put(tokens[last].end, ")") for _, last in calls)]
