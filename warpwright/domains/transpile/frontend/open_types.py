"""Expressions whose types are open because a template's number stands in them: `As[y][k] * Bs[k][x]` with `__shared__ float As[T][T]`.

The parser shows the type of an element of such an array as open, and an operator on it as a call, which it could be for a class. What is known to be
a number is given its type here, and its operators are operators again.
"""

from __future__ import annotations

import re
from dataclasses import replace

from warpwright.domains.transpile.ir import Expr, text_of

OPEN = "<dependent type>"

_NUMBERS = (
    "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long", "unsigned long", "long long",
    "unsigned long long", "float", "double",
)  # fmt: skip
"""By rank: of two operands the later type is the result's (int at least)."""

_ARRAY = re.compile(r"(?:const )?(?:volatile )?([a-z ]+?) ?\[[^\[\]]*\]")
_COMPARE = {"<", ">", "<=", ">=", "==", "!=", "&&", "||"}
_COMPUTE = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}
_ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


def closed(expr: Expr) -> Expr:
    """Return an expression of open type with its type, where its operands say it; else as it is."""
    if expr.kind == "index" and expr.children:
        array = _ARRAY.fullmatch(expr.children[0].type)
        return replace(expr, type=array[1]) if array is not None and array[1] in _NUMBERS else expr
    if expr.kind == "paren" and len(expr.children) == 1:
        return replace(expr, type=expr.children[0].type)
    if expr.kind in ("binary", "assign") and len(expr.children) == 2:
        return _operator(expr, expr.children[0], expr.name, expr.children[1])
    if expr.kind == "call" and not expr.name and len(expr.parts) >= 3 and isinstance(expr.parts[0], Expr) and isinstance(expr.parts[-1], Expr):
        sign = "".join(part if isinstance(part, str) else text_of(part) for part in expr.parts[1:-1]).strip()
        return _operator(expr, expr.parts[0], sign, expr.parts[-1])
    return expr


def _operator(expr: Expr, left: Expr, sign: str, right: Expr) -> Expr:
    a, b = _number(left), _number(right)
    if a is None or b is None:
        return expr
    if sign in _ASSIGN:
        return replace(expr, kind="assign", parts=(left, f" {sign} ", right), name=sign, type=a)
    if sign in _COMPARE:
        return replace(expr, kind="binary", parts=(left, f" {sign} ", right), name=sign, type="bool")
    if sign in _COMPUTE:
        rank = max(_NUMBERS.index(a), _NUMBERS.index(b if sign not in ("<<", ">>") else a), _NUMBERS.index("int"))
        return replace(expr, kind="binary", parts=(left, f" {sign} ", right), name=sign, type=_NUMBERS[rank])
    return expr


def _number(expr: Expr) -> str | None:
    plain = re.sub(r"\bconst\b|&", "", expr.type).strip()
    return plain if plain in _NUMBERS else None
