"""Atomic adds of neighbouring threads to places of their own as plain adds, where one CPU thread runs all blocks or the memory is the block's.

    atomicAdd(&d[c], a[i] * b[i]);   ->   for (x) added[x] = a[i] * b[i];   for (x) d[c] += added[x];

Whether blocks run one after another shows when the kernel is launched (`ww::alone`). The sums that are added are rounded before, since they pass
through memory, and each place gets them in the order of the threads, as before; what differs is that all threads of a chunk have computed theirs
before the first is added. (Gradients of an embedding, 1,024 rows of 384 numbers: 1.8 ms by locked adds, 0.13 so.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import coefficient, counting, expand
from warpwright.domains.transpile.analysis.regions import Plan, used
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Stmt, Var
from warpwright.domains.transpile.passes.loops import stretch_values

CHUNK = 256
"""Threads whose sums wait at once: 1 KiB of floats."""

_TYPES = ("float", "double", "int", "unsigned int")


@dataclass(frozen=True)
class Add:
    """One atomic add whose former value nothing reads."""

    place: Expr
    value: Expr
    type: str
    name: str
    """Of the array that its values wait in."""


@dataclass(frozen=True)
class Adds:
    """A region with such adds."""

    stmts: tuple[Stmt, ...]
    """The other statements, with the values to add stored."""
    adds: tuple[Add, ...]
    heads: tuple[Declare, ...]
    """What the places are computed from."""
    everywhere: bool
    """Whether all is in shared memory; otherwise one CPU thread has to run all blocks."""


def apart(stmts: Sequence[Stmt], plan: Plan, index: str, distinct: Callable[[Expr], bool]) -> Adds | None:
    """Return straight statements with their atomic adds apart; None where there are none, or one may meet another thread's place.

    index: of a thread in its chunk, as text. distinct: whether an index differs from thread to thread.
    """
    found = [atomic(s.expr, plan) if isinstance(s, Evaluate) else None for s in stmts]
    if not any(found) or not all(add is not None or _is_plain(s) for s, add in zip(stmts, found, strict=True)):
        return None
    adds: list[Add] = []
    rest: list[Stmt] = []
    everywhere = True
    for stmt, add in zip(stmts, found, strict=True):
        if add is None:
            rest.append(stmt)
            continue
        var, place, value = add
        kind = place.type
        others = sum(e.var == var.key for e in ir.expressions(tuple(stmts)))
        if others != 1 or not distinct(place.children[1]) or value.type.removeprefix("const ") != kind:
            return None
        everywhere &= _is_shared(var, plan)
        name = f"ww_added_{len(adds) + 1}"
        adds.append(Add(place, value, kind, name))
        waits = Expr("other", (f"{name}[{index}]",), stmt.line, "", None, kind)
        rest.append(Evaluate(Expr("assign", (waits, " = ", value), stmt.line, "="), stmt.line))
    heads = _heads(stmts, adds, plan)
    return Adds(tuple(rest), tuple(adds), tuple(heads), everywhere) if heads is not None else None


def atomic(expr: Expr, plan: Plan) -> tuple[Var, Expr, Expr] | None:
    """Return array, element and value of `atomicAdd(&p[i], v)` or `atomicAdd(p + i, v)`, for a pointer or a shared array; None for another call."""
    if expr.kind != "call" or expr.name != "atomicAdd" or len(expr.children) != 3:
        return None
    place = ir.bare(expr.children[1])
    if place.kind == "unary" and place.name == "&":
        element = ir.bare(place.children[0])
    else:
        base, index = place, None
        while base.kind == "binary" and base.name == "+" and len(base.children) == 2:
            base, more = ir.bare(base.children[0]), base.children[1]
            index = more if index is None else Expr("binary", (more, " + ", index), more.line, "+", None, "int")
        if index is None:
            return None
        element = Expr("index", (base, "[", index, "]"), expr.line, "", None, place.type.removesuffix("*").strip())
    if element.kind != "index" or element.children[0].kind != "name" or element.type not in _TYPES:
        return None
    var = plan.variables.get(element.children[0].var or 0)
    if var is None or var.reference or "volatile" in var.type or (var.dims and (len(var.dims) > 1 or var.space not in ("shared", "dynamic"))):
        return None
    pointer = var.type.count("*") == 1 and not plan.facts.assigned.get(var.key) and var.key not in plan.facts.addressed
    return (var, element, expr.children[2]) if var.dims or pointer or var.space == "dynamic" else None


def along_threads(stmts: Sequence[Stmt], plan: Plan) -> Callable[[Expr], bool]:
    """Return what says whether an index differs from thread to thread along x; what a stretch of threads shares counts as fixed."""
    shared = frozenset(s.var.key for s in stretch_values.apart(stmts, plan)[0] if isinstance(s, Declare))

    def distinct(index: Expr) -> bool:
        with counting(plan, shared):
            whole = expand(index, plan)
        return whole is not None and bool(coefficient(whole))

    return distinct


def _is_plain(stmt: Stmt) -> bool:
    """Is this a value of the thread, or a store of one, without a call that has an effect?"""
    if not isinstance(stmt, Declare | Evaluate) or (isinstance(stmt, Declare) and (stmt.direct or stmt.var.dims or stmt.var.reference)):
        return False
    for own in ir.own_expressions(stmt):
        if any(n.kind in ("lambda", "other", "lane") or (n.kind == "call" and n.name not in PURE_CALLS) for n in own.walk()):
            return False
    return isinstance(stmt, Declare) or stmt.expr.kind == "assign"


def _is_shared(var: Var, plan: Plan) -> bool:
    """Does an array, or a pointer that is set once, lie in shared memory?"""
    for _ in range(8):
        if var.space in ("shared", "dynamic"):
            return True
        declaration = plan.facts.declared.get(var.key)
        if declaration is None or declaration.init is None or "*" not in var.type or plan.facts.assigned.get(var.key):
            return False
        base = ir.bare(declaration.init)
        while base.kind == "binary" and base.name == "+" and "*" in base.children[0].type + _type(base.children[0], plan):
            base = ir.bare(base.children[0])
        if base.kind != "name" or base.var is None or base.var not in plan.variables:
            return False
        var = plan.variables[base.var]
    return False


def _type(expr: Expr, plan: Plan) -> str:
    var = plan.variables.get(ir.bare(expr).var or 0)
    return "*" if var is not None and (var.dims or var.space == "dynamic" or "*" in var.type) else ""


def _heads(stmts: Sequence[Stmt], adds: Sequence[Add], plan: Plan) -> list[Declare] | None:
    """Return the declarations that the places need, in order; None where one of them reads memory that may have changed, or is assigned to."""
    needed = set().union(*(used([Evaluate(add.place)]) for add in adds))
    held = {s.var.key for s in stretch_values.apart(stmts, plan)[0] if isinstance(s, Declare)}
    heads: list[Declare] = []
    for stmt in reversed(stmts):
        if not isinstance(stmt, Declare) or stmt.var.key not in needed:
            continue
        if stmt.init is None or plan.facts.assigned.get(stmt.var.key) or stmt.var.key in plan.arrays | plan.lane_arrays:
            return None
        if not ir.is_quiet(stmt.init) and stmt.var.key not in held:
            return None
        needed |= used([stmt])
        heads.insert(0, stmt)
    return heads
