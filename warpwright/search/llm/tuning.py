"""Constants that a program itself says may have other values: they are tried without a question to the model.

    #define TILE 16  // tune: 8 16 32
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

from warpwright.base import Record
from warpwright.search.llm.asking import Proposal
from warpwright.search.llm.conversation import Tried, best_of
from warpwright.search.moves import Recipe

MOST_TUNED = 4
"""Constants of a program that are tuned."""

_TUNE = re.compile(r"^(?P<head>[ \t]*(?:#define\s+(?P<macro>\w+)\s+|(?:static\s+)?(?:const|constexpr)\s[^=\n]*?(?P<name>\w+)\s*=\s*))"
                   r"(?P<value>\d+)(?P<tail>[^\n]*//\s*tune:\s*(?P<values>\d+(?:[ ,]+\d+)*)[ \t]*)$", re.M)  # fmt: skip

Evaluate = Callable[[list[str], str, str], Proposal]
"""evaluate(texts, note, origin): proposes texts that were made from `origin`, and returns what became of them."""


def tuned(start: Tried, most: int, evaluate: Evaluate) -> Generator[list[Recipe], list[Record], None]:
    """Try other values of a program's own constants, one constant after the other, from the best so far; at most so many programs."""
    best, left, seen = start, most, {start.text}
    for name in list(tunable(start.text))[:MOST_TUNED]:
        value, values = tunable(best.text)[name]
        texts = [with_value(best.text, name, other) for other in values if other != value]
        texts = [text for text in texts if text not in seen][:left]
        seen |= set(texts)
        left -= len(texts)
        tried = yield from evaluate(texts, f"{start.note}, {name} tuned", best.text)
        better = best_of(tried)
        if better is not None and better.speedup > best.speedup:
            best = better
        if left <= 0:
            return


def tunable(text: str) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return the constants that a program says may have other values: name -> its value, and all of them."""
    constants = {}
    for match in _TUNE.finditer(text):
        values = tuple(dict.fromkeys(int(value) for value in re.split(r"[ ,]+", match["values"].strip())))
        constants[match["macro"] or match["name"]] = (int(match["value"]), values)
    return constants


def with_value(text: str, name: str, value: int) -> str:
    """Return a program with another value of one of its constants."""
    return _TUNE.sub(lambda match: f"{match['head']}{value}{match['tail']}" if (match["macro"] or match["name"]) == name else match[0], text)
