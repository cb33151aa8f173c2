"""Repeated declarations: what a region has computed once and each of its parts can compute again, as the thread's place in a tile."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import Plan, used
from warpwright.domains.transpile.ir import Declare, Stmt


def again(declared: Sequence[Declare], region: Sequence[Stmt], plan: Plan) -> list[Declare]:
    """Return those declarations that may stand in several parts: of places and the like, from what the region does not change."""
    fresh = {s.var.key for s in declared}
    moving = {key for s in region for e in ir.expressions((s,)) for key in e.changes} | plan.facts.addressed
    found: list[Declare] = []
    known: set[int] = set()
    for one in declared:
        plain = one.init is not None and not one.direct and not one.var.dims and not one.var.reference and ir.is_quiet(one.init)
        if plain and one.init is not None and not ({one.var.key} | one.init.keys) & moving and one.init.keys & fresh <= known:
            found.append(one)
            known.add(one.var.key)
    return found


def needed(declared: Sequence[Declare], stmts: Sequence[Stmt]) -> tuple[Declare, ...]:
    """Return the declarations that the statements need, in order."""
    wanted = used(stmts)
    chosen: list[Declare] = []
    for one in reversed(declared):
        if one.var.key in wanted and one.init is not None:
            wanted |= one.init.keys
            chosen.append(one)
    return tuple(reversed(chosen))
