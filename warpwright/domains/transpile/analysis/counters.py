"""Loops that count up from a start to an end by a step."""

from __future__ import annotations

from warpwright.domains.transpile.analysis.regions import jumps
from warpwright.domains.transpile.analysis.uniform import Facts
from warpwright.domains.transpile.ir import Declare, Expr, For, Raw, Return


def counted_loop(stmt: For, facts: Facts) -> tuple[Declare, Expr, Expr] | None:
    """Return the counter, end and step of `for (T i = start; i < end; i += step) body` (or <=) that nothing leaves and nothing else counts on."""
    if len(stmt.init) != 1 or not isinstance(declaration := stmt.init[0], Declare) or declaration.init is None or declaration.var.dims:
        return None
    key, cond, step = declaration.var.key, stmt.cond, stmt.step
    if cond is None or step is None or cond.kind != "binary" or cond.name not in ("<", "<=") or step.kind != "assign" or step.name != "+=":
        return None
    if cond.children[0].var != key or step.children[0].var != key:
        return None
    if len({id(s) for s in facts.assigned.get(key, ())}) != 1 or key in facts.addressed:
        return None
    if any(isinstance(s, Return | Raw) or jumps(s) for s in stmt.body):
        return None
    return declaration, cond.children[1], step.children[1]
