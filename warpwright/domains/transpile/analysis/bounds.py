"""Guards as loop bounds: `if (x >= 1 && x < w - 1)`, with x = base + thread_x, makes the loop over thread_x run from 1 - base to w - 1 - base.

Quotients and multiples of thread_x bound it as well: base + (thread_x >> 2) < n is thread_x < (n - base) * 4. A comparison that does not depend on
thread_x is looked at once for a row of threads. `if (threadIdx.x == 0)` is a loop of one thread. What has another form stays a guard, with which
stores are masked: 20 times as slow on some cores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import Plan, changed
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import LAUNCH, SIGNED, UNSIGNED, literal, not_negative
from warpwright.domains.transpile.ir import Expr
from warpwright.domains.transpile.printing import Printer

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@dataclass
class Bounds:
    """What became of the guards of a region."""

    rows: list[str] = field(default_factory=list)
    """Conditions that a row of threads shares."""
    rows_apart: list[str] = field(default_factory=list)
    """Those of them that are no bounds of thread_y, ..."""
    low_y: list[str] = field(default_factory=list)
    """... and what the others come to: thread_y is at least each of these, ..."""
    high_y: list[str] = field(default_factory=list)
    """... and less than each of these."""
    low: list[str] = field(default_factory=list)
    """thread_x is at least each of these."""
    high: list[str] = field(default_factory=list)
    """thread_x is less than each of these."""
    rest: list[Expr] = field(default_factory=list)
    """Guards that stay."""
    one: bool = False
    """Whether low and high leave one thread at most."""
    every: tuple[str, str] | None = None
    """A base and a size: of the threads, those for which base + thread_x is a multiple of the size."""


def conjuncts(cond: Expr) -> list[Expr]:
    """Return the parts of a condition that all have to hold."""
    inner = ir.bare(cond)
    if inner.kind == "binary" and inner.name == "&&":
        return [part for child in inner.children for part in conjuncts(child)]
    return [inner]


def bounds(conds: Sequence[Expr], plan: Plan, printer: Printer) -> Bounds:
    """Return the bounds that the guards come to."""
    result = Bounds()
    for cond in conds:
        for part in conjuncts(cond):
            _place(part, plan, printer, result)
    return result


def named(part: Expr, plan: Plan) -> Expr | None:
    """Return what a flag that is a name stands for, when that is a condition of its own."""
    inner = ir.bare(part)
    if inner.kind != "name" or inner.var is None or inner.var in plan.scalars or (declaration := plan.facts.declared.get(inner.var)) is None:
        return None
    whole = expand(inner, plan)
    return declaration.init if whole is not None and whole.kind == "paren" else None


def without_not(cond: Expr, plan: Plan) -> Expr:
    """Return `!(i >= n)` as `i < n`, also of a flag's name, where whole numbers are compared; another condition as it is."""
    inner = ir.bare(cond)
    if inner.kind != "unary" or inner.name != "!":
        return cond
    stands_for = named(inner.children[0], plan)
    positive = ir.bare(stands_for if stands_for is not None else inner.children[0])
    if positive.kind != "binary" or len(positive.children) != 2:
        return cond
    left, right = positive.children
    if positive.name == "||":
        parts = [without_not(Expr("unary", ("!", ir.paren(side)), cond.line, "!", None, "bool"), plan) for side in (left, right)]
        return Expr("binary", (parts[0], " && ", parts[1]), cond.line, "&&", None, "bool")
    if positive.name not in _OPPOSITE or not _whole_numbers(positive, plan):
        return cond
    operator = _OPPOSITE[positive.name]
    return Expr("binary", (left, f" {operator} ", right), cond.line, operator, None, "bool")


def _place(part: Expr, plan: Plan, printer: Printer, result: Bounds) -> None:
    positive = without_not(part, plan)
    if positive is not part:
        for inner in conjuncts(positive):
            _place(inner, plan, printer, result)
        return
    stands_for = named(part, plan)
    if stands_for is not None and plan.variables[next(n.var for n in part.walk() if n.var is not None)].type == "bool":
        for inner in conjuncts(stands_for):
            _place(inner, plan, printer, result)
        return
    whole = expand(part, plan)
    if whole is None:
        result.rest.append(part)
        return
    if not mentions_x(whole):
        result.rows.append(printer.expr(whole))
        _place_along_y(part, whole, plan, printer, result)
        return
    if whole.kind == "binary" and whole.name in _TURNED and len(whole.children) == 2 and _whole_numbers(part, plan):
        left, right = whole.children
        unsigned = compared_unsigned(part, plan)
        counting = _counting(whole, plan) if unsigned else set()
        moving, fixed, operator = (left, right, whole.name) if mentions_x(left) else (right, left, _TURNED[whole.name])
        both = ("<=", ">=") if operator == "==" else (operator,)
        if not mentions_x(fixed) and all(_bound(one, moving, fixed, unsigned, counting, printer, result) for one in both):
            result.one |= operator == "==" and coefficient(moving) is not None
            return
        if result.every is None and operator == "==" and (every := _multiples(moving, fixed, printer)) is not None:
            result.every = every
            return
        if result.every is None and operator == "==" and _parity(part, moving, fixed, plan, printer, result):
            return
        if operator == "<" and not mentions_x(fixed) and (limit := _by_factor(moving, fixed, unsigned, printer)) is not None:
            result.high.append(limit)  # the guard stays as well
    result.rest.append(part)


def _place_along_y(part: Expr, whole: Expr, plan: Plan, printer: Printer, result: Bounds) -> None:
    """Note what a condition that a row shares comes to as bounds of thread_y."""
    turned = whole.map(lambda n: replace(n, name="x", parts=(n.children[0], ".x")) if _is_y(n) else None)
    limits = Bounds()
    if whole.kind == "binary" and whole.name in _TURNED and len(whole.children) == 2 and _whole_numbers(part, plan):
        left, right = turned.children
        unsigned = compared_unsigned(part, plan)
        moving, fixed, operator = (left, right, whole.name) if mentions_x(left) else (right, left, _TURNED[whole.name])
        both = ("<=", ">=") if operator == "==" else (operator,)
        apart = mentions_x(moving) and not mentions_x(fixed) and _quotient(moving) is None and coefficient(moving) == 1
        if apart and all(_bound(one, moving, fixed, unsigned, set(), printer, limits) for one in both):
            result.low_y += limits.low
            result.high_y += limits.high
            return
    result.rows_apart.append(printer.expr(whole))


def _is_y(expr: Expr) -> bool:
    return expr.kind == "member" and expr.name == "y" and bool(expr.children) and expr.children[0].name == "threadIdx"


def _multiples(moving: Expr, fixed: Expr, printer: Printer) -> tuple[str, str] | None:
    """Return base and size of `(base + thread_x) % size == 0`, where the size is no number: rows are cut at those (`segments.py`)."""
    inner = ir.bare(moving)
    if inner.kind != "binary" or inner.name != "%" or literal(fixed) != 0 or literal(inner.children[1]) is not None or mentions_x(inner.children[1]):
        return None
    whole, size = inner.children
    return (printer.expr(at_zero(whole)), printer.expr(size)) if coefficient(whole) == 1 and not_negative(whole) else None


def _parity(part: Expr, moving: Expr, fixed: Expr, plan: Plan, printer: Printer, result: Bounds) -> bool:
    """Note `(base + thread_x) % 2 == fixed`, or `& 1`, of 2, 4 and 8: every second thread; False for another form.

    Rests of sums that may be negative have their sign. Each of these sizes divides 2^32: sums of unsigned numbers may begin again at zero.
    (Cells of one colour of 1,024 x 1,024: 2.8 ms under masks, 0.9 by every second thread, on a busy machine.)
    """
    inner = ir.bare(moving)
    if inner.kind != "binary" or inner.name not in ("%", "&") or len(inner.children) != 2 or not _whole_numbers(part, plan) or mentions_x(fixed):
        return False
    whole, number = inner.children[0], literal(inner.children[1])
    size = number if inner.name == "%" else None if number is None else number + 1
    if size not in (2, 4, 8) or coefficient(whole) != 1:
        return False
    if inner.name == "%" and not (literal(fixed) == 0 or not_negative(whole)):
        return False
    result.every = (f"(long)({printer.expr(at_zero(whole))}) - (long)({printer.expr(fixed)})", str(size))
    known = literal(fixed)
    if known is None:
        text = f"(unsigned long)({printer.expr(fixed)}) < {size}"
        result.rows.append(text)
        result.rows_apart.append(text)
    elif known >= size:
        result.rows.append("false")
        result.rows_apart.append("false")
    return True


def _by_factor(moving: Expr, fixed: Expr, unsigned: str, printer: Printer) -> str | None:
    """Return the bound of `factor * thread_x < fixed`, for a factor that only the run shows; None for another form."""
    factors = _product(moving)
    if sum(is_x(f) for f in factors) != 1 or any(mentions_x(f) and not is_x(f) for f in factors):
        return None
    factor = " * ".join(f"(long)({printer.expr(f)})" for f in factors if not is_x(f))
    return f"ww::bounded((long){f'({unsigned})' if unsigned else ''}({printer.expr(fixed)}), {factor})" if factor else None


def _product(expr: Expr) -> list[Expr]:
    inner = ir.bare(expr)
    if inner.kind == "binary" and inner.name == "*" and len(inner.children) == 2:
        return [f for child in inner.children for f in _product(child)]
    return [inner]


def _bound(operator: str, moving: Expr, fixed: Expr, unsigned: str, counting: Set[int], printer: Printer, result: Bounds) -> bool:
    """Note the bound on thread_x that `moving operator fixed` comes to; False where `moving` has another form.

    moving = rest + N / d, with N = n + c * thread_x (d or c is 1, or both): for whole m, N / d < m exactly when N < m * d, where N is not negative or
    the quotient is a shift; and c * thread_x < k exactly when thread_x < k / c, rounded up. `unsigned`: the type in which the sides are compared, or
    nothing where it is signed; a negative sum is large there. `counting`: variables that count up from zero or more.
    """
    quotient = _quotient(moving)
    if unsigned and not not_negative(moving, counting):
        return False
    inside, divisor = quotient if quotient is not None else (moving, 1)
    factor = coefficient(inside)
    if factor is None or factor < 1 or (divisor > 1 and factor > 1):
        return False
    limit = f"(long){f'({unsigned})' if unsigned else ''}({printer.expr(fixed)})"
    if quotient is not None:
        rest = moving.map(lambda node: ir.number(0, node.line) if node is inside else None)
        limit = f"({limit} - (long)({printer.expr(rest)}){' + 1' if operator in ('<=', '>') else ''}) * {divisor}"
    limit = f"{limit} - (long)({printer.expr(at_zero(inside))})"
    if quotient is None and operator in ("<=", ">"):
        limit += " + 1"
    (result.high if operator in ("<", "<=") else result.low).append(f"ww::up({limit}, {factor})" if factor > 1 else limit)
    return True


def _quotient(moving: Expr) -> tuple[Expr, int] | None:
    """Return N and d of an expanded sum that has one term with thread_x, N / d or N >> s, which is added."""
    inner = moving
    while (inner.kind == "paren" and len(inner.children) == 1) or inner.kind == "cast":
        inner = inner.children[-1]
    if inner.kind != "binary" or len(inner.children) != 2:
        return None
    left, right = inner.children
    if inner.name in ("+", "-"):
        if mentions_x(left) and not mentions_x(right):
            return _quotient(left)
        return _quotient(right) if inner.name == "+" and mentions_x(right) and not mentions_x(left) else None
    number = literal(right)
    if number is None or not mentions_x(left):
        return None
    if inner.name == ">>" and number < 31 and (left.type in SIGNED or not_negative(left)):
        return left, 1 << number
    return (left, number) if inner.name == "/" and number > 0 and not_negative(left) else None


def _type(expr: Expr, plan: Plan) -> str:
    named = expr.kind == "name" and expr.var in plan.variables
    return (plan.variables[expr.var].type if named and expr.var is not None else expr.type).removeprefix("const ")


def _whole_numbers(comparison: Expr, plan: Plan) -> bool:
    """Say whether both sides are of integer types."""
    return all(_type(side, plan) in (*SIGNED, *UNSIGNED, "unsigned short") for side in comparison.children)


def _counting(expr: Expr, plan: Plan) -> set[int]:
    """Return the variables in an expanded expression that are loop counters from a number on upwards."""
    counters = set()
    for key in {n.var for n in expr.walk() if n.var is not None}:
        declaration, changes = plan.facts.declared.get(key), plan.facts.assigned.get(key, [])
        if declaration is None or declaration.init is None or not not_negative(declaration.init) or key in plan.facts.addressed:
            continue
        if all(isinstance(s, ir.For) and s.step is not None and _counts_up(s.step, key) and key not in _changed(s.body) for s in changes):
            counters.add(key)
    return counters


def _counts_up(step: Expr, key: int) -> bool:
    if not step.children or step.children[0].var != key:
        return False
    return (step.kind == "unary" and step.name == "++") or (step.kind == "assign" and step.name == "+=" and not_negative(step.children[1]))


def _changed(body: tuple[ir.Stmt, ...]) -> set[int]:
    return {key for stmt in body for key in changed(stmt)}


def compared_unsigned(comparison: Expr, plan: Plan) -> str:
    """Return the unsigned type in which the two sides are compared; nothing where it is signed."""
    types = [_type(side, plan) for side in comparison.children]
    unsigned = [t for t in types if t in UNSIGNED]
    wide = [t for t in unsigned if t in UNSIGNED[3:]]
    if not unsigned or (not wide and any(t in ("long", "long long", "int64_t") for t in types)):
        return ""
    return (wide or unsigned)[0]


def is_signed(comparison: Expr, plan: Plan) -> bool:
    """Say whether whole numbers are compared as signed ones."""
    return _whole_numbers(comparison, plan) and not compared_unsigned(comparison, plan)


def expand(expr: Expr, plan: Plan, depth: int = 0) -> Expr | None:
    """Return the expression with local values replaced by what they are computed from; None where that is not fixed."""
    if depth > 12 or expr.kind in ("index", "lane", "lambda", "assign", "call", "other", "conditional"):
        return None
    if expr.kind == "cast" and not is_index_as_signed(expr):
        return None
    if expr.kind == "unary" and expr.name in ("*", "&", "++", "--"):
        return None
    if expr.kind == "name" and expr.var is not None and expr.var in plan.variables:
        return _definition(expr, plan, depth) if depth else _kept_definition(expr, plan)
    children: list[Expr] = []
    for child in expr.children:
        new = expand(child, plan, depth)
        if new is None:
            return None
        children.append(new)
    return expr.with_children(children)


@contextmanager
def counting(plan: Plan, counters: Set[int]) -> Iterator[None]:
    """Inside, the counters of loops count as fixed: `expand` leaves them as they are."""
    kept = plan.scalars, plan.definitions
    plan.scalars, plan.definitions = plan.scalars | counters, {}
    try:
        yield
    finally:
        plan.scalars, plan.definitions = kept


def linear(index: Expr, plan: Plan, counters: Set[int]) -> Expr:
    """Return an index with local values replaced, `counters` left; raise DoesNotApply where that is not fixed."""
    with counting(plan, counters):
        whole = expand(index, plan)
    if whole is None:
        raise DoesNotApply
    return whole


def is_index_as_signed(expr: Expr) -> bool:
    """Is this `(int)threadIdx.x` or the like? Indices and sizes of a launch fit, so that the cast changes nothing; others may cut a value off."""
    operand = ir.bare(expr.children[-1])
    of_launch = operand.kind == "member" and bool(operand.children) and operand.children[0].name in LAUNCH
    return of_launch and expr.type in ("int", "long", "long long")


def _kept_definition(expr: Expr, plan: Plan) -> Expr | None:
    """Return the definition of a name that stands in the expanded expression itself: kept, since most indices begin with the same few."""
    assert expr.var is not None
    if expr.var not in plan.definitions:
        plan.definitions[expr.var] = _definition(expr, plan, 0)
    return plan.definitions[expr.var]


def _definition(expr: Expr, plan: Plan, depth: int) -> Expr | None:
    assert expr.var is not None
    key, var = expr.var, plan.variables[expr.var]
    if var.space in ("parameter", "constant") or key in plan.scalars or key in {s.var.key for s in plan.hoisted if isinstance(s, ir.Declare)}:
        return expr if not var.dims else None
    declaration = plan.facts.declared.get(key)
    if (
        var.space != "local"
        or var.dims
        or plan.facts.assigned.get(key)
        or key in plan.facts.addressed
        or declaration is None
        or declaration.init is None
    ):
        return None
    inner = expand(declaration.init, plan, depth + 1)
    if inner is None or converts(var.type, inner):
        return None
    return Expr("paren", ("(", inner, ")"), expr.line, "", None, var.type)


_NARROW = re.compile(r"\b(char|short|bool|u?int(8|16)_t)\b")

_WIDE = re.compile(r"\b(long|size_t|u?int64_t)\b")


def converts(kind: str, value: Expr) -> bool:
    """Say whether a variable of a type may hold another number than its value: one that is cut, or a difference of unsigned numbers below zero."""
    if _NARROW.search(kind):
        return value.type.removeprefix("const ") != kind.removeprefix("const ")
    if _WIDE.search(kind) and value.type.removeprefix("const ") in ("unsigned int", "unsigned", "uint32_t") and not not_negative(value):
        return True
    if kind.removeprefix("const ") not in SIGNED:
        return False
    return any(n.kind == "binary" and n.name == "-" and all(c.type.removeprefix("const ") in UNSIGNED for c in n.children) for n in value.walk())


def mentions_x(expr: Expr) -> bool:
    """Say whether an expanded expression depends on threadIdx.x."""
    return _has_x(expr) or (expr.kind == "name" and expr.name == "threadIdx")


def _has_x(expr: Expr) -> bool:
    """Say whether threadIdx.x is in an expression: kept beside its fields, since each level of a sum asks it of all below."""
    known: bool | None = vars(expr).get("has_x")
    if known is None:
        known = vars(expr)["has_x"] = is_x(expr) or any(map(_has_x, expr.children))
    return known


def is_x(expr: Expr) -> bool:
    return expr.kind == "member" and expr.name == "x" and bool(expr.children) and expr.children[0].name == "threadIdx"


def coefficient(expr: Expr) -> int | None:
    """Return how often thread_x counts in an expanded expression that is linear in it; None where it is not, or not known to be."""
    if is_x(expr):
        return 1
    if not mentions_x(expr):
        return 0
    if (expr.kind == "paren" and len(expr.children) == 1) or expr.kind == "cast":
        return coefficient(expr.children[-1])
    if expr.kind == "binary" and expr.name in ("+", "-") and len(expr.children) == 2:
        left, right = (coefficient(c) for c in expr.children)
        if left is None or right is None:
            return None
        return left + right if expr.name == "+" else left - right
    if expr.kind == "binary" and expr.name == "*" and len(expr.children) == 2:
        for factor, other in (expr.children, expr.children[::-1]):
            number, inner = literal(factor), coefficient(other)
            if number is not None and inner is not None:
                return number * inner
    return None


def at_zero(expr: Expr) -> Expr:
    """Return an expanded expression for thread_x = 0."""
    return expr.map(lambda node: ir.number(0, node.line) if is_x(node) else None)


def at_thread(expr: Expr, last: bool, row: str = "dim_x") -> Expr:
    """Return an expanded expression for the first or the last thread of the block. `row`: how many threads run along x, where blocks are joined."""

    def known(node: Expr) -> Expr | None:
        if node.kind == "member" and node.children and node.children[0].name == "threadIdx":
            size = row if node.name == "x" else f"dim_{node.name}"
            return Expr("literal", (f"({size} - 1)" if last else "0",), node.line, "", None, "int")
        return None

    return expr.map(known)


def grows(expr: Expr, assumed: list[Expr] | None = None, mentions: Callable[[Expr], bool] | None = None) -> bool:
    """Say whether an expanded expression is smallest for the block's first thread: sums and products of indices, sizes and positive numbers.

    With `assumed`, other factors go there: it is so if none of them is negative. With `mentions`, of what that finds in place of threadIdx: of the
    first block, say.
    """
    moves = mentions or _mentions_thread
    if expr.kind == "member":
        return bool(expr.children) and expr.children[0].name in LAUNCH
    if expr.kind == "literal":
        return ir.text_of(expr).rstrip("uUlL").isdigit()
    if (expr.kind == "paren" and len(expr.children) == 1) or expr.kind == "cast":
        return grows(expr.children[-1], assumed, mentions)
    if expr.kind == "binary" and expr.name == "+":
        return all(grows(c, assumed, mentions) or not moves(c) for c in expr.children)
    if expr.kind == "binary" and expr.name == "*" and moves(expr):
        return all(grows(c, assumed, mentions) if moves(c) else _may_multiply(c, assumed) for c in expr.children)
    return not moves(expr)


def _may_multiply(factor: Expr, assumed: list[Expr] | None) -> bool:
    if not not_negative(factor):
        if assumed is None:
            return False
        assumed.append(factor)
    return True


def _mentions_thread(expr: Expr) -> bool:
    return any(n.kind == "name" and n.name == "threadIdx" for n in expr.walk())


def whole_block(cond: Expr, plan: Plan, printer: Printer, row: str = "dim_x") -> str | None:
    """Return a condition, the same for all threads of a block or of a row of blocks, under which `cond` holds for each; None where none is simple."""
    texts = []
    for part in conjuncts(cond):
        whole = expand(part, plan)
        if whole is None:
            return None
        if not _mentions_thread(whole):
            texts.append(printer.expr(whole))
            continue
        if whole.kind != "binary" or whole.name not in ("<", "<=", ">", ">=") or len(whole.children) != 2:
            return None
        left, right = whole.children
        moving, fixed = (left, right) if _mentions_thread(left) else (right, left)
        factors: list[Expr] = []
        if _mentions_thread(fixed) or not grows(moving, factors) or not _whole_numbers(part, plan):
            return None
        upper = (whole.name in ("<", "<=")) == (moving is left)
        worst = at_thread(moving, upper, row)
        texts += [f"({printer.expr(factor)}) >= 0" for factor in factors]
        sides = (worst, right) if moving is left else (left, worst)
        texts.append(f"(long)({printer.expr(sides[0])}) {whole.name} (long)({printer.expr(sides[1])})")
        if compared_unsigned(part, plan) and not not_negative(moving):  # less than zero is large
            texts.append(f"(long)({printer.expr(at_thread(moving, False))}) >= 0")
    return " && ".join(f"({text})" for text in texts)
