"""Guards that leave few threads, such as `if (lane == 0) s[warp] = v;` after what all threads do: they get a loop of their own over those threads.

Inside the loop over all of them the compiler would mask the store, or leave the whole loop scalar.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.bounds import bounds, conjuncts, expand
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Expr, If, Stmt
from warpwright.domains.transpile.passes.loops import segments
from warpwright.domains.transpile.printing import Printer

_INTS = ("", "int", "unsigned int", "unsigned")


def split(stmts: Sequence[Stmt], plan: Plan, printer: Printer) -> tuple[list[Stmt], list[Stmt]] | None:
    """Return the statements of a region before its last, a narrow `if`, and that with the values it needs; None where they belong together."""
    *head, last = stmts
    if not head or not isinstance(last, If) or last.other or last.constexpr or not any(not isinstance(s, Declare) for s in head):
        return None
    declared = {s.var.key: s for s in head if isinstance(s, Declare)}
    changed = {key for s in ir.walk(tuple(head)) if not isinstance(s, Declare) for key in regions.changed(s)}
    changed |= {key for s in head if isinstance(s, Declare) for key in regions.changed(s) - {s.var.key}}
    needed, todo = set(regions.used([last])), list(regions.used([last]))
    while todo:
        declaration = declared.get(todo.pop())
        if declaration is not None and declaration.var.key not in plan.arrays:
            new = regions.used([declaration]) - needed
            needed |= new
            todo += new
    again = [s for s in head if isinstance(s, Declare) and s.var.key in needed and s.var.key not in plan.arrays]
    if any(s.init is None or s.direct or not ir.is_quiet(s.init) or s.var.reference or s.var.dims for s in again):
        return None
    if any(not _may_wait(key, plan, changed) for key in needed) or any(regions.used([s]) & changed for s in again):
        return None
    rest = [opened(guard, set(declared), plan) for guard in bounds(conjuncts(last.cond), plan, printer).rest]
    cut = segments.split([], rest, plan, printer, "dim_x") if rest else None
    return (head, [*again, last]) if not rest or (cut is not None and not cut.only_if and len(cut.only) == len(rest)) else None


def _may_wait(key: int, plan: Plan, changed: Set[int]) -> bool:
    """Is the variable the same after the loop over all threads: unchanged by it, or in a per-thread array?"""
    return key not in changed or key in plan.arrays or plan.variables[key].space in ("shared", "dynamic")


def opened(guard: Expr, declared: Set[int], plan: Plan) -> Expr:
    """Return `value == number`, or a comparison of `t ^ j`, on the region's own values with what these are computed from, where that is the same."""
    if guard.kind != "binary" or guard.name not in ("==", "<", "<=", ">", ">=") or not any(e.var in declared for e in guard.walk()):
        return guard
    whole = expand(guard, plan)
    if whole is None or not all(e.kind != "paren" or e.type in _INTS for e in whole.walk()):
        return guard
    fits = literal(guard.children[-1]) is not None if guard.name == "==" else any(e.kind == "binary" and e.name == "^" for e in whole.walk())
    fits = fits or (guard.name == "==" and any(e.kind == "binary" and e.name in ("&", "^") for e in whole.walk()))
    return whole if fits else guard
