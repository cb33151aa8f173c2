"""Neighbours shown as such: an index that is computed in an unsigned type becomes a start and the thread's number.

    const unsigned t = thread_x; s[t] += s[t + d]   ->   s[thread_x] += s[ww::start(0 + d) + thread_x]

Unsigned numbers begin again at zero, so that a compiler takes s[t + d] for a gather. A start in the last 65,536 of its type stands for a negative
number, as `i - 1` is for i = 0: no array has an element there.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import at_zero, coefficient, counting, expand, is_x
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.integers import UNSIGNED
from warpwright.domains.transpile.ir import Declare, Expr, For, Stmt
from warpwright.domains.transpile.printing import Printer


def shown(stmts: Sequence[Stmt], plan: Plan, printer: Printer, in_stretch: bool = False) -> list[Stmt]:
    """Return the statements of a loop over threads with such indices written out. `in_stretch`: starts are those of a stretch's first thread."""
    counters = {d.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, For) for d in s.init if isinstance(d, Declare)}

    def change(expr: Expr) -> Expr | None:
        if expr.kind in ("lambda", "other"):
            return expr
        if expr.kind != "index" or len(expr.children) != 2:
            return None
        base, index = expr.children
        text = _start(index, plan, printer, counters, in_stretch)
        moved = f"{text} + {'(thread_x - stretch_x)' if in_stretch else 'thread_x'}"
        new = Expr("other", (moved,), index.line, "", None, "long") if text else index.map(change)
        return expr.with_children([base.map(change), new])

    return [ir.map_expressions(s, change) for s in stmts]


def _start(index: Expr, plan: Plan, printer: Printer, counters: set[int], in_stretch: bool) -> str:
    """Return what an index is for the first thread; nothing where it is signed, or does not move by one from thread to thread."""
    if not _is_unsigned(index, plan):
        return ""
    with counting(plan, counters):
        whole = expand(index, plan)
    if whole is None or coefficient(whole) != 1:
        return ""
    return f"ww::start({printer.expr(_at_stretch(whole) if in_stretch else at_zero(whole))})"


def _at_stretch(expr: Expr) -> Expr:
    return expr.map(lambda node: Expr("other", ("stretch_x",), node.line, "", None, "int") if is_x(node) else None)


def _is_unsigned(index: Expr, plan: Plan) -> bool:
    types = {index.type, *(plan.variables[n.var].type for n in index.walk() if n.var in plan.variables and n.var is not None)}
    return any(t.removeprefix("const ") in (*UNSIGNED[:3], "uint") for t in types)
