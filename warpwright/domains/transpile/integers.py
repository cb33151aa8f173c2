"""Whole numbers in expressions: types, numbers that are written down, and what cannot be negative."""

from __future__ import annotations

from collections.abc import Set

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import Expr

LAUNCH = ("threadIdx", "blockIdx", "blockDim", "gridDim")

RANK = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))"
THREADS = "(blockDim.x * blockDim.y * blockDim.z)"
"""A thread's number in its block, and how many there are, as cooperative groups and PTX are written out."""

SIGNED = ("int", "long", "long long", "short", "int64_t", "int32_t")
UNSIGNED = ("unsigned int", "unsigned", "uint32_t", "unsigned long", "size_t", "unsigned long long", "uint64_t")


def literal(expr: Expr) -> int | None:
    """Return the value of a whole number that is written down, below 2^31."""
    expr = ir.bare(expr)
    text = ir.text_of(expr).strip().rstrip("uUlL") if expr.kind == "literal" else ""
    return int(text) if text.isdigit() and (text == "0" or text[0] != "0") and int(text) < 1 << 31 else None


def not_negative(expr: Expr, counting: Set[int] = frozenset()) -> bool:
    """Say whether an expanded expression is made of indices, sizes, numbers and counters by sums, products, quotients and rests alone."""
    if expr.kind == "member":
        return bool(expr.children) and expr.children[0].name in LAUNCH
    if expr.kind == "name":
        return expr.var in counting
    if expr.kind == "literal":
        return literal(expr) is not None
    if (expr.kind == "paren" and len(expr.children) == 1) or expr.kind == "cast":
        return not_negative(expr.children[-1], counting)
    if expr.kind == "binary" and expr.name == "%" and expr.type in SIGNED and expr.children[1].type in SIGNED:
        return not_negative(expr.children[0], counting)  # a rest has the sign of what is divided
    if expr.kind == "binary" and expr.name in ("/", "%", ">>"):
        return not_negative(expr.children[0], counting) and bool(literal(expr.children[1]))
    return expr.kind == "binary" and expr.name in ("+", "*", "&") and all(not_negative(c, counting) for c in expr.children)
