"""What the lanes of a warp do with one another's values, `v += __shfl_xor_sync(mask, v, 16)`, for the warp as a whole: in explicit vectors.

The shuffle, the sum and the copy between two shuffles are calls of the runtime (`lanes.hpp`) on per-lane arrays. Distances that the
compiler knows leave them in registers from the first shuffle to the last. As loops of their own they met in memory, where a load of 64 bytes waits
for stores of 32: a sum over a warp took 100 ns, and layernorm's time was that of its shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Stmt

_WORDS = ("float", "int", "unsigned int", "unsigned")
_OPERATORS = {"+": "Sum", "*": "Product", "&": "Both", "|": "Either", "^": "One"}
_CALLS = {"max": "Larger", "fmaxf": "Larger", "min": "Smaller", "fminf": "Smaller"}


@dataclass(frozen=True)
class Join:
    """`v = operation(v, taken)`, of a value taken by a shuffle just before."""

    stmts: tuple[Stmt, ...]
    taken: Declare
    var: int
    """Key of v."""
    operation: str
    swapped: bool
    """`operation(taken, v)`."""


@dataclass(frozen=True)
class Copy:
    """`offered = v`, as a shuffle offers what a lane has."""

    stmts: tuple[Stmt, ...]
    to: int
    source: int


def join(stmts: Sequence[Stmt], plan: Plan) -> Join | None:
    """Return what the first two statements do together; None where they are something else."""
    if len(stmts) < 2 or not isinstance(taken := stmts[0], Declare) or taken.init is None or taken.init.kind != "lane":
        return None
    named = stmts[1] if _names(stmts[1], taken) else taken
    used = stmts[:3] if named is not taken else stmts[:2]
    if not isinstance(change := used[-1], Evaluate) or change.expr.kind != "assign" or taken.var.type not in _WORDS:
        return None
    target, value = change.expr.children
    var = plan.variables.get(target.var or 0)
    if target.kind != "name" or var is None or var.space != "local" or var.reference or var.dims or var.type != taken.var.type:
        return None
    held = plan.arrays | plan.lane_arrays
    keys = {taken.var.key, named.var.key}
    if keys & held or (keys | {var.key}) & plan.facts.addressed or any(keys & regions.used([s]) for s in stmts[len(used) :]):
        return None
    operation = _operation(change.expr.name, value, var.key, named.var.key, var.type)
    return Join(tuple(used), taken, var.key, *operation) if operation is not None else None


def _names(stmt: Stmt, taken: Declare) -> TypeGuard[Declare]:
    """Is this `const T b = taken`?"""
    if not isinstance(stmt, Declare) or stmt.init is None or stmt.var.dims or stmt.var.reference or stmt.var.space != "local":
        return False
    return stmt.init.kind == "name" and stmt.init.var == taken.var.key and stmt.var.type == taken.var.type


def _operation(word: str, value: Expr, var: int, taken: int, kind: str) -> tuple[str, bool] | None:
    """Return the operation, and whether the taken value is its first operand."""
    value = ir.bare(value)
    if word != "=":
        name = _OPERATORS.get(word.removesuffix("="), "")
        return (name, False) if value.var == taken and value.kind == "name" and _is_for(name, kind) else None
    one, other = value.children[-2:] if len(value.children) >= 2 else (value, value)
    if {one.kind, other.kind} != {"name"} or {one.var, other.var} != {var, taken}:
        return None
    if value.kind == "conditional" and len(value.children) == 3:
        return _chosen(ir.bare(value.children[0]), one.var, other.var, taken)
    if value.kind == "binary" and len(value.children) == 2:
        name = _OPERATORS.get(value.name, "")
    else:
        fits = value.kind == "call" and len(value.children) == 3 and value.type == kind and (kind == "float" or not value.name.startswith("f"))
        name = _CALLS.get(value.name, "") if fits else ""
    return (name, one.var == taken) if _is_for(name, kind) else None


def _chosen(cond: Expr, one: int | None, other: int | None, taken: int) -> tuple[str, bool] | None:
    """Return the operation of `a < b ? one : other`, also with another comparison, of the same two values."""
    if cond.kind != "binary" or cond.name not in ("<", "<=", ">", ">=") or len(cond.children) != 2:
        return None
    low, high = (ir.bare(side) for side in (cond.children if cond.name[0] == "<" else cond.children[::-1]))
    if {low.kind, high.kind} != {"name"} or {low.var, high.var} != {one, other}:
        return None
    equal, second = "=" in cond.name, one == high.var
    return f"Chosen<{str(equal).lower()}, {str(second).lower()}>", low.var == taken


def _is_for(name: str, kind: str) -> bool:
    return bool(name) and (kind != "float" or name not in ("Both", "Either", "One"))


def copy(stmt: Stmt, plan: Plan) -> Copy | None:
    """Return what a statement copies, lane by lane, from one array to another."""
    if not isinstance(stmt, Declare) or stmt.init is None or stmt.init.kind != "name" or stmt.init.var is None:
        return None
    source = plan.variables.get(stmt.init.var)
    if source is None or stmt.var.key not in plan.lane_arrays or stmt.init.var not in plan.arrays | plan.lane_arrays:
        return None
    if source.type != stmt.var.type or source.type not in _WORDS or source.dims or source.reference or source.key in plan.facts.addressed:
        return None
    return Copy((stmt,), stmt.var.key, source.key)
