"""The shape of a launch's block, where the text says it by constants: literals, and names that have one value alone."""

from __future__ import annotations

import re

from warpwright.domains.cuda.unit import Launch, Unit
from warpwright.domains.transpile.frontend import scan

DEPTH = 4
"""Names that stand for one another at most."""

_ARITHMETIC = re.compile(r"[\d\s()*+/-]{1,200}")
_LITERAL = re.compile(r"\b(\d+)[uUlL]+\b")


def block_shape(unit: Unit, launch: Launch) -> tuple[int, int, int] | None:
    """Return the threads of a launch's block along each axis; None where they are not constants of the text."""
    if len(launch.configuration) < 2:
        return None
    host = next((unit.text[p.start : launch.start] for p in scan.pieces(scan.tokens(unit.text)) if p.start <= launch.start < p.end), "")
    return _shape(launch.configuration[1], host, _globals(unit), DEPTH)


def _globals(unit: Unit) -> str:
    """Return the declarations of a text that are no functions."""
    return "\n".join(unit.text[p.start : p.end] for p in scan.pieces(scan.tokens(unit.text)) if p.brace < 0)


def _shape(words: str, host: str, outside: str, depth: int) -> tuple[int, int, int] | None:
    """Return the shape that an expression means within a host function."""
    words = words.strip()
    match = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", words, re.S) if words.startswith(("dim3", "{")) else None
    sides = scan.split_commas(match[1]) if match is not None else [words]
    if match is None and re.fullmatch(r"[A-Za-z_]\w*", words):
        held = _held(words, host, outside)
        if held is None or not depth:
            return None
        if held[0] == "dim3":
            return _shape(f"dim3({held[1]})", host, outside, depth - 1)
    values = [_value(side, host, outside, depth) for side in sides]
    if not 1 <= len(values) <= 3 or None in values:
        return None
    x, y, z = ([value for value in values if value is not None] + [1, 1])[:3]
    return (x, y, z) if min(x, y, z) > 0 and x * y * z <= 1024 else None


def _value(words: str, host: str, outside: str, depth: int) -> int | None:
    words = _LITERAL.sub(r"\1", words.strip())
    for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", words)):
        held = _held(name, host, outside) if depth else None
        value = _value(held[1], host, outside, depth - 1) if held is not None and held[0] != "dim3" else None
        if value is None:
            return None
        words = re.sub(rf"\b{name}\b", f"({value})", words)
    if not _ARITHMETIC.fullmatch(words) or re.search(r"\*\s*\*|/\s*/|\d{8}", words):
        return None
    try:
        return int(eval(words.replace("/", "//"), {"__builtins__": {}}))  # digits, brackets and operators alone
    except (SyntaxError, TypeError, ValueError, ArithmeticError):
        return None


def _held(name: str, host: str, outside: str) -> tuple[str, str] | None:
    """Return the type of a name and the text of its one value: of a local that is never changed, else of a constant of the file."""
    for text, constant in ((host, False), (outside, True)):
        mentions = len(re.findall(rf"\b{name}\b", text))
        if not mentions:
            continue
        changed = rf"(?:\+\+|--)\s*{name}\b|&\s*{name}\b|\b{name}\s*(?:\.\s*[xyz]\s*)?(?:\+\+|--|[-+*/%&|^]=|<<=|>>=)|\b{name}\s*\.\s*[xyz]\s*=[^=]"
        initialised = rf"{name}\s*(?:=\s*([^;]+?)\s*;|[({{]([^;]*?)[)}}]\s*;)"
        declared = re.findall(rf"(?:\b(const|constexpr)\s+)?\b([A-Za-z_]\w*)\s+(?:const\s+)?{initialised}", text)
        assigned = len(re.findall(rf"\b{name}\s*=[^=]", text))
        if len(declared) != 1 or re.search(changed, text) or assigned != bool(declared[0][2]):
            return None
        const, kind, value, called = declared[0]
        if constant and not (const or kind in ("const", "constexpr")):
            return None
        if value.startswith("dim3"):
            return "dim3", value.partition("(")[2].rpartition(")")[0]
        return kind, value or called
    return None
