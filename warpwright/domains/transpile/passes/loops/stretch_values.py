"""What is the same for all threads of a stretch (`segments.py`) is computed, and read, once in front of its loop.

    for (x) { const int token = tokens[part_1]; out[i] = words[token * n + c]; }   ->   const int token = tokens[part_1]; for (x) out[i] = ...

The row of `words` then lies side by side; a load inside the loop makes it a gather. (Rows of an embedding, 1,024 of 384 numbers: 0.19 ms, 0.07 so.)

All threads of the stretch read the same place, so that none of them stores to it before: that would be a race.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.ir import Declare, Expr, Stmt


def apart(stmts: Sequence[Stmt], plan: Plan) -> tuple[list[Stmt], list[Stmt]]:
    """Return the leading declarations that hold still in a stretch, and the other statements; none unless one of them reads memory."""
    held: list[Stmt] = []
    keys: set[int] = set()
    for stmt in stmts:
        if not isinstance(stmt, Declare) or (stmt.init is not None and not _is_without_effect(stmt.init)):
            break
        if _is_value(stmt, plan) and stmt.init is not None and _holds_still(stmt.init, keys, plan):
            held.append(stmt)
            keys.add(stmt.var.key)
    if not any(e.kind == "index" for e in ir.expressions(tuple(held))):
        return [], list(stmts)
    return held, [stmt for stmt in stmts if stmt not in held]


def _is_value(stmt: Declare, plan: Plan) -> bool:
    """Is this the declaration of a thread's own value that nothing changes?"""
    var, facts = stmt.var, plan.facts
    plain = not (var.dims or var.reference or stmt.direct or "auto" in var.type) and var.space == "local"
    return plain and not facts.assigned.get(var.key) and var.key not in facts.addressed | plan.arrays | plan.lane_arrays


def _is_without_effect(expr: Expr) -> bool:
    def acts(node: Expr) -> bool:
        if node.kind == "call":
            return node.name not in PURE_CALLS
        return node.kind in ("assign", "lambda", "lane", "other") or (node.kind == "unary" and node.name in ("++", "--"))

    return not any(map(acts, expr.walk()))


def _holds_still(expr: Expr, held: set[int], plan: Plan) -> bool:
    """Say whether an expression names nothing that differs between the threads of a stretch."""
    for node in expr.walk():
        if node.kind == "name" and node.name == "threadIdx":
            return False
        if node.var is not None and node.var not in held | plan.scalars and plan.variables[node.var].space not in ("parameter", "constant"):
            return False
    return True
