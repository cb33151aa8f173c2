"""What the text of a C or CUDA function says: its pointer parameters, which of them it stores to, where a bracket closes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from warpwright.errors import UsageError

ELEMENTS: Mapping[str, str] = {
    "float": "float32", "double": "float64", "int": "int32", "int32_t": "int32", "int64_t": "int64", "signed char": "int8", "int8_t": "int8",
    "uint8_t": "uint8", "char": "int8", "bool": "int8",
}  # fmt: skip
"""C name of an element type to numpy's."""

C_NAMES: Mapping[str, str] = {dtype: name for name, dtype in reversed(list(ELEMENTS.items()))}
"""And back: the first name of each."""


def parameters(c: str, entry: str) -> list[tuple[str, str]]:
    """Return (name, element type) of every parameter of a C function. Raises UsageError where one is no pointer to a known type."""
    match = re.search(rf"void\s+{re.escape(entry)}\s*\(([^)]*)\)", c)
    if match is None:
        raise UsageError(f"expected a C function void {entry}(...), saw none")
    listed = []
    for text in match[1].split(","):
        one = parameter(text)
        if one is None:
            raise UsageError(f"expected pointers to {', '.join(ELEMENTS)}, saw the parameter {text.strip()!r} of {entry}")
        listed.append(one)
    return listed


def parameter(text: str) -> tuple[str, str] | None:
    """Return (name, element type) of the text of one parameter; None where it is no pointer to a known type."""
    kind, star, name = re.sub(r"\b(const|restrict|__restrict__|__restrict)\b", " ", text).partition("*")
    element = ELEMENTS.get(" ".join(kind.split()))
    return (name.strip(), element) if star and element is not None and name.strip() else None


def stored_to(text: str, names: Sequence[str]) -> set[str]:
    """Return the names that the text stores to: `name[...] = ...`, `+=` and the like, atomicAdd(&name[...]."""
    return {name for name in names if any(_is_store(text, place) for place in mentions(text, name))}


def _is_store(text: str, place: re.Match[str]) -> bool:
    end = closing(text, place.end() - 1)
    after = "" if end is None else text[end + 1 : end + 4].lstrip()
    before = text[max(0, place.start() - 16) : place.start()].replace(" ", "")
    return bool(re.match(r"(=(?!=)|[-+*/|&]=|\+\+|--)", after) or re.search(r"atomic\w+\(\(?&\(?$", before))


def mentions(text: str, name: str) -> list[re.Match[str]]:
    """Return the places where a name is indexed; each match ends with the opening bracket."""
    return list(re.finditer(rf"(?<![\w.]){re.escape(name)}\s*\[", text))


def closing(text: str, opening: int) -> int | None:
    """Return the place of the bracket that closes the one at `opening`; None where none does."""
    pair = {"[": "]", "{": "}", "(": ")"}[text[opening]]
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == text[opening]) - (text[at] == pair)
        if depth == 0:
            return at
    return None


def base_of(name: str) -> str:
    """Return a name without its number: T_add of T_add_1."""
    return re.sub(r"_\d+$", "", name)
