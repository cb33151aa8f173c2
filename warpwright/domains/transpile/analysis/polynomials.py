"""Whole numbers of a kernel as polynomials of the launch's indices, its parameters and the counters of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import LAUNCH, SIGNED, UNSIGNED, literal
from warpwright.domains.transpile.ir import Expr, Shape, Var

Polynomial = Mapping[tuple[str, ...], int]
"""Sorted symbols of a product -> its factor, which is not 0; no symbols: the number. A symbol is `threadIdx.x` or the like, or
`#` and a variable's key."""

AXES = "xyz"


def number(value: int) -> Polynomial:
    return {(): value} if value else {}


def symbol(name: str) -> Polynomial:
    return {(name,): 1}


def added(one: Polynomial, other: Polynomial, times: int = 1) -> Polynomial:
    """Return one + times * other."""
    total = dict(one)
    for product, factor in other.items():
        total[product] = total.get(product, 0) + times * factor
    return {product: factor for product, factor in total.items() if factor}


def multiplied(one: Polynomial, other: Polynomial) -> Polynomial:
    total: dict[tuple[str, ...], int] = {}
    for a, left in one.items():
        for b, right in other.items():
            product = tuple(sorted(a + b))
            total[product] = total.get(product, 0) + left * right
    return {product: factor for product, factor in total.items() if factor}


def constant(value: Polynomial) -> int | None:
    """Return the number that a polynomial is; None of one with symbols."""
    if not value:
        return 0
    return value.get(()) if len(value) == 1 else None


def at(value: Polynomial, known: Mapping[str, int]) -> Polynomial:
    """Return the polynomial where some symbols are numbers."""
    total: dict[tuple[str, ...], int] = {}
    for product, factor in value.items():
        left = product
        for name in product:
            if name in known:
                factor *= known[name]
                left = tuple(s for s in left if s not in known)
        total[left] = total.get(left, 0) + factor
    return {product: factor for product, factor in total.items() if factor}


@dataclass(frozen=True)
class Parts:
    """Quotients and rests by numbers, each of which is a symbol: of a thread's number and counters, so that they are numbers where those are."""

    made: dict[str, tuple[str, Polynomial, int]] = field(default_factory=dict)
    """Symbol -> `/` or `%`, what is divided, by what."""

    def part(self, operator: str, whole: Polynomial, divisor: int) -> Polynomial:
        name = next((name for name, made in self.made.items() if made == (operator, whole, divisor)), f"@{len(self.made)}")
        self.made[name] = (operator, whole, divisor)
        return symbol(name)

    def with_parts(self, known: Mapping[str, int]) -> dict[str, int]:
        """Return what is known with the quotients and rests that this makes known."""
        all_known = dict(known)
        for name, (operator, whole, divisor) in self.made.items():
            value = constant(at(whole, all_known))
            if value is not None and value >= 0:  # of less, C++ rounds the other way
                all_known[name] = value // divisor if operator == "/" else value % divisor
        return all_known


def put(value: Polynomial, name: str, what: Polynomial) -> Polynomial:
    """Return the polynomial with another one in place of a symbol."""
    total: Polynomial = {}
    for product, factor in value.items():
        term: Polynomial = {tuple(s for s in product if s != name): factor}
        for _ in range(product.count(name)):
            term = multiplied(term, what)
        total = added(total, term)
    return total


def in_block(value: Polynomial, known: Mapping[str, int]) -> Polynomial:
    """Return the polynomial for one thread and round of loops: one number for the block. Raises DoesNotApply where a quotient is left."""
    left = at(value, known)
    if any(name.startswith(("@", "threadIdx.")) for product in left for name in product):
        raise DoesNotApply
    return left


def of(
    expr: Expr, values: Mapping[int, Polynomial | None], variables: Mapping[int, Var], block: Shape, quotients: Parts | None = None
) -> Polynomial | None:
    """Return the polynomial of an expression, for blocks of one shape; None of one that is none, or not known.

    `values`: of local variables; `quotients`: where those that it holds are noted. Sums that pass the end of their type are not looked for: of signed
    numbers they are undefined, and an address that unsigned ones wrap to is outside of any array. What is 64 bits wide is left alone: all is written
    as ints.
    """
    written = literal(expr)
    if written is not None:
        return number(written)
    if expr.kind == "name" and expr.var is not None:
        if expr.var in values:
            return values[expr.var]
        return symbol(f"#{expr.var}") if is_number(variables.get(expr.var)) else None
    if expr.kind == "member" and expr.children and expr.children[0].kind == "name" and expr.children[0].name in LAUNCH and expr.name in AXES:
        name = expr.children[0].name
        if name == "blockDim":
            return number(block[AXES.index(expr.name)])
        return symbol(f"{name}.{expr.name}") if name != "gridDim" else None
    if expr.kind == "paren" and len(expr.children) == 1:
        return of(expr.children[0], values, variables, block, quotients)
    if expr.kind == "cast" and expr.type in ("int", "unsigned int"):
        return of(expr.children[-1], values, variables, block, quotients) if _is_whole(expr.children[-1]) else None
    if expr.kind == "unary" and expr.name == "-":
        inner = of(expr.children[0], values, variables, block, quotients)
        return added({}, inner, -1) if inner is not None else None
    if expr.kind == "binary" and expr.name in ("+", "-", "*") and len(expr.children) == 2:
        left, right = (of(child, values, variables, block, quotients) for child in expr.children)
        if left is None or right is None:
            return None
        return multiplied(left, right) if expr.name == "*" else added(left, right, 1 if expr.name == "+" else -1)
    if expr.kind == "binary" and expr.name in ("/", "%") and quotients is not None and (divisor := literal(expr.children[1])):
        whole = of(expr.children[0], values, variables, block, quotients)
        return quotients.part(expr.name, whole, divisor) if whole is not None else None
    return None


def is_number(var: Var | None) -> bool:
    """Is this a parameter that holds a whole number of 32 bits?"""
    return var is not None and var.space == "parameter" and not var.dims and not var.reference and _plain(var.type) in ("int", "unsigned int")


def _is_whole(expr: Expr) -> bool:
    return _plain(expr.type) in (*SIGNED, *UNSIGNED)


def _plain(kind: str) -> str:
    return kind.removeprefix("const ")
