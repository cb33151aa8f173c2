"""Shifts as a GPU does them: by the width of the word or more they give 0, or the sign; the amount is read as an unsigned number of 32 bits.

C++ leaves them open, and x86 takes the amount modulo the width. In device code `x << n` becomes `x << ww::by(n)`, with operators of the runtime
(base.hpp), before anything else is read: so it is in the text of every tier, in device functions and in templates, whatever the type of x turns
out to be. A class keeps its own operator. To the compiler it is a shift as before (`plain`). Amounts that are seen to be below 32 stay as written.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Token
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Expr

WORD = 32
"""Bits of the narrowest word that is shifted: what is narrower is promoted to int first."""

_BITS = {"int": 32, "unsigned int": 32, "uint32_t": 32, "int32_t": 32, "long": 64, "unsigned long": 64, "long long": 64, "unsigned long long": 64,
         "uint64_t": 64, "int64_t": 64, "size_t": 64, "bool": 32, "char": 32, "signed char": 32, "unsigned char": 32, "short": 32,
         "unsigned short": 32, "uint8_t": 32, "uint16_t": 32, "int8_t": 32, "int16_t": 32}  # fmt: skip
"""Type -> bits of its word when it is shifted."""

_CLOSES = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset([*")]};,", "?", ":", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="])
"""Tokens that end an assignment's right side; of `? :` and `=` that holds for a shift alone."""
_ENDS_SHIFT = frozenset([*_ENDS, "<<", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||", ">>>"])
_STREAMS = frozenset(["cout", "cerr", "clog", "ostream", "stringstream", "ostringstream", "istream", "endl"])
_LOOSER = frozenset(["|", "^", "?", ",", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "<<", "="])
"""Operators that bind looser than `&`, and `<<`."""


def insertions(text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
    """Return what is put in where in a source, so that the shifts of its device code are those of a GPU: (offset, text), ascending."""
    if "<<" not in text and ">>" not in text:
        return []
    inserted: list[tuple[int, str]] = []
    for low, high in device_bodies(tokens):
        if any(token.text in _STREAMS for token in tokens[low:high]):
            continue
        for at in range(low, high):
            first = _amount(tokens, at, low)
            if first is None:
                continue
            last = _end(tokens, first, high, assigns=tokens[first - 1].text.endswith("="))
            if last > first and not _is_small(tokens[first:last]):
                inserted += [(tokens[first].start, "ww::by("), (tokens[last - 1].end, ")")]
    return sorted(inserted, key=lambda one: one[0])  # what closes stands before what opens at the same place: amounts are not empty


def put_in(text: str, inserted: Sequence[tuple[int, str]]) -> str:
    """Return the text with the insertions made."""
    ends = [0, *(at for at, _ in inserted), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(ends)]
    return "".join(piece + word for piece, word in zip(pieces, [*(word for _, word in inserted), ""], strict=True))


def amount(call: Expr) -> Expr:
    """Return `ww::by(n)` as n in parentheses, which it is to the compiler: its text stays."""
    return replace(call, kind="paren", name="", parts=("ww::by(", call.children[-1], ")"), type=call.children[-1].type)


def plain(expr: Expr) -> Expr:
    """Return the call of one of the runtime's operators, or of one that is open, as the shift that it is."""
    if len(expr.children) != 2 or not isinstance(left := expr.parts[0], Expr) or not isinstance(by := expr.parts[-1], Expr):
        return expr
    sign = "".join(part for part in expr.parts if isinstance(part, str)).strip()
    if sign not in ("<<", ">>", "<<=", ">>=") or by.parts[0] != "ww::by(":
        return expr
    kind = left.type.removeprefix("const ").removeprefix("volatile ")
    number = literal(by)
    if number is not None and number < _BITS.get(kind, 0):
        by = by.children[0]
    assigns = sign.endswith("=")
    shifted = left.type if assigns else _promoted(kind, expr.type)
    return replace(expr, kind="assign" if assigns else "binary", parts=(*expr.parts[:-1], by), name=sign, type=shifted)


def _promoted(kind: str, otherwise: str) -> str:
    """Return the type of a shifted value of a type, if it is known."""
    narrow = kind in ("bool", "char", "signed char", "unsigned char", "short", "unsigned short") or re.fullmatch(r"u?int(8|16)_t", kind)
    return "int" if narrow else kind if kind in _BITS else otherwise


# --- where device code and shifts are -------------------------------------------------------------------------------------------------


def device_bodies(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the bodies of functions for the device, and values of variables there, as ranges of tokens."""
    at = done = 0
    while at < len(tokens):
        if tokens[at].text in ("__device__", "__global__", "__constant__") and at >= done:
            opening = _opening(tokens, at)
            if opening is not None:
                done = scan.matching(tokens, opening, "{", "}") + 1
                while done < len(tokens) and tokens[done].text in (",", "{"):  # members' values in front of a constructor's body
                    opening_of_next = _opening(tokens, done)
                    if opening_of_next is None:
                        break
                    done = scan.matching(tokens, opening_of_next, "{", "}") + 1
                yield opening, done
        at += 1


def _opening(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the next brace that is open outside of parentheses, None where the declaration ends without one."""
    while at < len(tokens) and tokens[at].text != ";":
        if tokens[at].text == "{":
            return at
        at = scan.matching(tokens, at, tokens[at].text, _CLOSES[tokens[at].text]) + 1 if tokens[at].text in ("(", "[") else at + 1
    return None


def _amount(tokens: Sequence[Token], at: int, low: int) -> int | None:
    """Return the index of the first token of the amount, if the token at the index is (or begins) the operator of a shift."""
    text = tokens[at].text
    if at <= low or tokens[at - 1].text == "operator":
        return None
    if text in ("<<", "<<="):
        return at + 1
    joined = text == ">" and at + 2 < len(tokens) and tokens[at + 1].text in (">", ">=") and tokens[at].end == tokens[at + 1].start
    if not joined or (tokens[at + 1].text == ">" and _closes_templates(tokens, at, low)):
        return None
    return at + 2


def _closes_templates(tokens: Sequence[Token], at: int, low: int) -> bool:
    """Say whether the `>>` at the index ends two lists of template arguments: two `<` after names are open, with nothing but types in between."""
    opened = 0
    while (at := at - 1) > low and opened < 2:
        token = tokens[at]
        if token.text in (")", "]"):
            depth = 1
            while depth and (at := at - 1) > low:
                depth += (tokens[at].text in ")]") - (tokens[at].text in "([")
        elif token.text == "<" and tokens[at - 1].kind == "word":
            opened += 1
        elif token.text == ">":
            opened -= 1
        elif token.kind not in ("word", "number") and token.text not in ("::", "*", "&", ",", "...", "+", "-"):
            return False
    return opened == 2


def _end(tokens: Sequence[Token], first: int, high: int, assigns: bool) -> int:
    """Return the index after the last token of an amount that begins at `first`."""
    at = first
    while at < high:
        text = tokens[at].text
        if text == "<" and (closing := _template(tokens, at)) is not None:
            at = closing + 1
        elif text in _CLOSES:
            at = scan.matching(tokens, at, text, _CLOSES[text]) + 1
        elif text in (")", "]", "}", ";", ",") or (not assigns and text in _ENDS_SHIFT):
            break
        else:
            at += 1
    return at


def _template(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the token that closes the template arguments that begin at the index: types, with a call or a name after them."""
    closing = scan.angles(tokens, at) if tokens[at - 1].kind == "word" else None
    if closing is None or closing + 1 >= len(tokens) or tokens[closing + 1].text not in ("(", "::", "{"):
        return None
    if tokens[closing + 1].text == "::":  # nothing but a template's name is followed by `> ::` and a name
        return closing
    types = all(t.kind in ("word", "number") or t.text in ("::", "*", "&", ",", "<", ">") for t in tokens[at:closing])
    return closing if types else None


# --- amounts that are small -----------------------------------------------------------------------------------------------------------


def _is_small(amount: Sequence[Token]) -> bool:
    """Say whether an amount is seen to be below the width of a word: a number, `& 31`, `threadIdx.x % 32`."""
    while len(amount) > 2 and amount[0].text == "(" and scan.matching(amount, 0) == len(amount) - 1:
        amount = amount[1:-1]
    value = _value(amount)
    if value is not None:
        return 0 <= value < WORD
    if len(amount) < 3 or (mask := _value(amount[-1:])) is None:
        return False
    if amount[-2].text == "%":
        whole = [token.text for token in amount[:-2]]
        unsigned = whole[:2] == ["threadIdx", "."] and len(whole) == 3
        return unsigned and 0 < mask <= WORD
    return amount[-2].text == "&" and 0 <= mask < WORD and not any(text in _LOOSER for text in _outside(amount))


def _outside(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the tokens that are in no brackets."""
    depth = 0
    for token in tokens:
        depth += (token.text in _CLOSES) - (token.text in _CLOSES.values())
        if depth == 0:
            yield token.text


def _value(tokens: Sequence[Token]) -> int | None:
    """Return the value of a sum, difference or product of whole numbers that are written down."""
    numbers = [re.fullmatch(r"(0[xX][0-9a-fA-F]+|[1-9]\d*|0)[uUlL]*", t.text) for t in tokens]
    if not all(n or t.text in ("+", "-", "*", "(", ")") for n, t in zip(numbers, tokens, strict=True)):
        return None
    try:
        return _folded(ast.parse(" ".join(n[1] if n else t.text for n, t in zip(numbers, tokens, strict=True)), mode="eval").body)
    except SyntaxError:
        return None


def _folded(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _folded(node.left), _folded(node.right)
    if left is None or right is None:
        return None
    return left + right if isinstance(node.op, ast.Add) else left - right if isinstance(node.op, ast.Sub) else left * right
