"""Which loops over threads may be vectorised, and which device functions do not stand in the way."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir, vmath
from warpwright.domains.transpile.analysis import bounds, uniform
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.analysis.uniform import INLINED_CALLS
from warpwright.domains.transpile.ir import Declare, Expr, Raw, Return, Stmt

_CASTS = frozenset(["T", "scalar_t", "float", "int", "double", "unsigned", "static_cast"])
"""Conversions that the parser shows as calls where their type depends on a template parameter."""


def is_simple(function: ir.Function, known: frozenset[str], own: frozenset[str] = frozenset()) -> bool:
    """Say whether a device function is straight code with one return, of calls that are inlined."""
    if function.problem or not function.body:
        return False
    for stmt in ir.walk(function.body):
        if isinstance(stmt, ir.For | ir.DoWhile | Raw | ir.Jump) or (isinstance(stmt, Return) and stmt is not function.body[-1]):
            return False
    return all(
        e.kind != "lambda" and (e.kind != "call" or e.name in known or (e.name not in own and _in_library(e))) for e in ir.expressions(function.body)
    )


def _in_library(call: Expr) -> bool:
    """Say whether a call becomes straight code, if its name is not one of the program's own."""
    return call.name in INLINED_CALLS or call.name in _CASTS or vmath.inlined(call)


def unvectorisable(stmts: Sequence[Stmt], plan: Plan, simple: frozenset[str], own: frozenset[str] = frozenset()) -> str:
    """Return why a loop over threads is left scalar, or nothing."""
    for stmt in ir.walk(tuple(stmts)):
        if isinstance(stmt, Return | Raw | ir.DoWhile | ir.Jump):
            return f"line {stmt.line}: a jump"
        if isinstance(stmt, ir.For) and (
            stmt.cond is None or any(uniform.varies(e, plan.facts.varying, plan.variables) and not _counted(stmt, plan) for e in (stmt.cond,))
        ):
            return f"line {stmt.line}: a loop whose length differs between threads"
    for expr in ir.expressions(tuple(stmts)):
        if expr.kind == "call" and expr.name.startswith("atomic"):
            return f"line {expr.line}: {expr.name}"
        if expr.kind == "call" and expr.name not in simple and not expr.name.startswith("operator") and (expr.name in own or not _in_library(expr)):
            return f"line {expr.line}: a call of {expr.name or 'a function'}"
        if expr.kind == "lambda":
            return f"line {expr.line}: a lambda"
        changed = ir.assigned(expr)
        if changed is not None and _is_scattered(changed, plan):
            return f"line {expr.line}: stores to shared memory at a distance known only when it runs"
    return ""


def _is_scattered(place: Expr, plan: Plan) -> bool:
    """Is this `s[step * (2 * t + 1) - 1]` in shared memory, with a step that no compiler knows? In vectors each element is moved for itself.

    Of other memory the steps are often parameters that are 1, for which compilers make a version of their own. (A tree of sums over 512 numbers, up
    and down: 1.1 us in vectors, 0.8 without.)
    """
    if place.kind != "index" or place.children[0].kind != "name" or place.children[0].var not in plan.variables:
        return False
    whole = bounds.expand(place.children[1], plan) if plan.variables[place.children[0].var].space in ("shared", "dynamic") else None
    if whole is None or not bounds.mentions_x(whole):
        return False
    plain = ("name", "member", "literal", "paren", "cast", "type")
    linear = all(n.kind in plain or (n.kind == "binary" and n.name in ("+", "-", "*")) for n in whole.walk())
    return linear and any(n.name == "*" and _is_by_variable(n, plan) for n in whole.walk() if n.kind == "binary")


def _is_by_variable(product: Expr, plan: Plan) -> bool:
    """Does a product multiply the thread's number by what changes while the kernel runs?"""
    factors = [other for one, other in (product.children, product.children[::-1]) if bounds.mentions_x(one)]
    return any(plan.facts.assigned.get(n.var) for factor in factors for n in factor.walk() if n.var is not None)


def _counted(stmt: ir.For, plan: Plan) -> bool:
    """Say whether a loop counts from and to uniform values, though its counter is private to the thread."""
    own = {s.var.key for s in stmt.init if isinstance(s, Declare)}
    varying = plan.facts.varying - own
    inits = [s.init for s in stmt.init if isinstance(s, Declare) and s.init is not None]
    exprs = [e for e in (stmt.cond, stmt.step, *inits) if e is not None]
    return not any(uniform.varies(e, varying, plan.variables) for e in exprs)
