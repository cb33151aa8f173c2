"""The rows of a block as one row of threads, where threads are looked at by their number alone.

A loop over `y * w + x`, with x = threadIdx.x, y = threadIdx.y and w = blockDim.x, or a number that turns out to be blockDim.x, is the loop for y = 0
in which x runs up to the block's size: one loop of 256 threads and not 8 of 32, and stretches (`segments.py`) that do not end with each row.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import is_index_as_signed
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Expr, Stmt

WIDTH = "dim_x"
"""The width of a block, as the output writes it."""



def width(stmts: Sequence[Stmt], plan: Plan, impure: frozenset[str]) -> str | None:
    """Return w, as the output writes it, if the statements look at x and y as `y * w + x` only, and None if they do not."""
    widths: set[str] = set()
    seen = {s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, Declare)}
    try:
        for stmt in ir.walk(tuple(stmts)):
            if isinstance(stmt, Declare) and stmt.init is not None and _meant(ir.name_of(stmt.var), plan).kind != "name":
                continue
            for expr in ir.own_expressions(stmt):
                _look(expr, plan, impure, seen, widths)
    except DoesNotApply:
        return None
    return widths.pop() if len(widths) == 1 else None


def _look(expr: Expr, plan: Plan, impure: frozenset[str], seen: set[int], widths: set[str]) -> None:
    """Note the widths in an expression, and in what the values are computed from that it names. `seen`: variables that were looked at."""
    if expr.kind in ("lambda", "other", "lane") or (expr.kind == "call" and expr.name in impure) or _is_thread(expr, "xy"):
        raise DoesNotApply
    if expr.kind == "name":
        if (expr.name == "threadIdx" and expr.var is None) or _meant(expr, plan).kind != "name":
            raise DoesNotApply
        if expr.var is not None and expr.var in plan.recomputed and expr.var not in seen:
            seen.add(expr.var)
            declaration = plan.facts.declared.get(expr.var)
            if declaration is not None and declaration.init is not None:
                _look(declaration.init, plan, impure, seen, widths)
        return
    rest = _without_number(expr, plan, widths) if expr.kind == "binary" and expr.name == "+" else None
    for child in expr.children if rest is None else rest:
        if not _is_thread(child, "z"):
            _look(child, plan, impure, seen, widths)


def _without_number(expr: Expr, plan: Plan, widths: set[str]) -> list[Expr] | None:
    """Return the terms of a sum beside y * w + x, and note w; None where the sum has no such terms."""
    terms = _terms(expr)
    across = [term for term in terms if _is_thread(_meant(term, plan), "x")]
    down = {id(term): factor for term in terms if (factor := _width(_meant(term, plan), plan)) is not None}
    if len(across) != 1 or len(down) != 1:
        return None
    widths |= set(down.values())
    return [term for term in terms if term is not across[0] and id(term) not in down]


def _terms(expr: Expr) -> list[Expr]:
    inner = ir.bare(expr)
    if inner.kind == "binary" and inner.name == "+" and len(inner.children) == 2:
        return [term for child in inner.children for term in _terms(child)]
    return [expr]


def _meant(expr: Expr, plan: Plan) -> Expr:
    """Return an expression without parentheses, a name that stands for an index of the thread as that index."""
    inner = _index(expr)
    if inner.kind == "name" and inner.var is not None and not plan.facts.assigned.get(inner.var) and inner.var not in plan.facts.addressed:
        declaration = plan.facts.declared.get(inner.var)
        if declaration is not None and declaration.init is not None and _is_thread(_index(declaration.init), "xy"):
            return _index(declaration.init)
    return inner


def _index(expr: Expr) -> Expr:
    """Return the expression without parentheses and casts of an index to a signed type."""
    while (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and is_index_as_signed(expr)):
        expr = expr.children[-1]
    return expr


def _width(term: Expr, plan: Plan) -> str | None:
    """Return w of y * w or (y + ...) * w."""
    if term.kind != "binary" or term.name != "*" or len(term.children) != 2:
        return None
    for one, other in (term.children, term.children[::-1]):
        factor = _index(other)
        number = literal(factor)
        is_width = factor.kind == "member" and factor.name == "x" and bool(factor.children) and factor.children[0].name == "blockDim"
        if not is_width and not number:
            continue
        terms = _terms(one)
        downs = [t for t in terms if _is_thread(_meant(t, plan), "y")]
        others = [n for t in terms if t not in downs for n in t.walk()]
        varies = any(_is_thread(n, "xy") or n.kind == "call" or (n.var is not None and n.var in plan.facts.varying) for n in others)
        if len(downs) == 1 and not varies:
            return WIDTH if is_width else str(number)
    return None


def _is_thread(expr: Expr, axes: str) -> bool:
    return expr.kind == "member" and expr.name in axes and bool(expr.children) and expr.children[0].name == "threadIdx"
