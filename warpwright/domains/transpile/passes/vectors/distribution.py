"""Loop distribution: a loop that stores and adds up as two."""

from __future__ import annotations

from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import changed, used
from warpwright.domains.transpile.ir import Evaluate, For, Stmt


def distributed(stmt: Stmt) -> list[Stmt]:
    """Return `for (k) { o[k] = value; sum += o[k]; }` as a loop that stores and one that adds up what it stored; another statement as it is.

    The stores need no sum, and the second loop reads what the first wrote in the same step alone.
    """
    if not isinstance(stmt, For) or not all(isinstance(s, Evaluate) and s.expr.kind == "assign" for s in stmt.body):
        return [stmt]
    kept = [s for s in stmt.body if stores(s)]
    rest = [s for s in stmt.body if not stores(s)]
    changes = {key for s in rest for key in changed(s)}
    if not (kept and rest) or list(stmt.body) != [*kept, *rest] or changes & {key for s in kept for key in used([s])}:
        return [stmt]
    places = {ir.text_of(s.expr.children[0]) for s in kept if isinstance(s, Evaluate)}
    if any(e.kind == "index" and ir.text_of(e) not in places for e in ir.expressions(tuple(rest))):
        return [stmt]
    return [replace(stmt, body=tuple(kept)), replace(stmt, body=tuple(rest))]


def stores(stmt: Stmt) -> bool:
    """Say whether a statement stores to memory."""
    return any((place := ir.assigned(e)) is not None and place.kind != "name" for e in ir.expressions((stmt,)))
