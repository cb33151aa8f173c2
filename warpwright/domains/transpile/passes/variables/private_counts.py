"""Counts in memory that all blocks share are kept apart by each CPU thread, and added up when it has run its blocks.

    atomicAdd(&bins[data[i]], 1);   ->   ww::count(ww_counts_bins, data[i], 1);

An atomic add locks a line of the cache; a histogram's bins are few. Whole numbers may be added in any order. It is done where a kernel does nothing
with the array but add to elements and drop what was there before, and calls nothing that might look at it. Elements beyond the first 4,096 are added
to as before (`runtime/run/counts.hpp`). (A histogram of 4 MiB of bytes, one thread: 12.0 ms by atomic adds.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.ir import Evaluate, Expr, Stmt, Var

MOST = 4
"""Arrays of one kernel, as many as the runtime has stores for."""

_TYPES = ("int", "unsigned int", "unsigned", "uint", "uint32_t", "int32_t", "unsigned long long", "unsigned long long int")


_COUNT = Expr("name", ("ww::count",), 0, "ww::count")


def name_of(var: Var) -> str:
    """Return the name of an array's counts in the output."""
    return f"ww_counts_{var.name}"


def apart(body: Sequence[Stmt], variables: Mapping[int, Var]) -> tuple[tuple[Stmt, ...], tuple[Var, ...]]:
    """Return the body of a kernel with such adds as counts, and the arrays that are counted in."""
    adds = [add for stmt in ir.walk(tuple(body)) if isinstance(stmt, Evaluate) and (add := _add(stmt.expr, variables)) is not None]
    counted = {key: variables[key] for key, _, _ in adds if sum(e.var == key for e in ir.expressions(tuple(body))) == sum(a[0] == key for a in adds)}
    if not 0 < len(counted) <= MOST or not all(_is_known(stmt, variables, counted) for stmt in ir.walk(tuple(body))):
        return tuple(body), ()

    def change(expr: Expr) -> Expr | None:
        add = _add(expr, variables)
        if add is None or add[0] not in counted:
            return None
        name = name_of(counted[add[0]])
        parts = (_COUNT, "(", Expr("name", (name,), expr.line, name), ", ", add[1], ", ", add[2], ")")
        return Expr("call", parts, expr.line, _COUNT.name, None, "void")

    return tuple(ir.map_expressions(stmt, change) for stmt in body), tuple(counted.values())


def _is_known(stmt: Stmt, variables: Mapping[int, Var], counted: Mapping[int, Var]) -> bool:
    """Say whether a statement calls nothing but functions of their arguments, and these adds."""
    if isinstance(stmt, ir.Raw | ir.Barrier | ir.Collective):
        return False
    for own in ir.own_expressions(stmt):
        for expr in own.walk():
            add = _add(expr, variables) if isinstance(stmt, Evaluate) and expr is stmt.expr else None
            known = expr.name in PURE_CALLS or (add is not None and add[0] in counted)
            if expr.kind in ("lambda", "other", "lane") or (expr.kind == "call" and not known):
                return False
    return True


def _add(expr: Expr, variables: Mapping[int, Var]) -> tuple[int, Expr, Expr] | None:
    """Return array, index and number of `atomicAdd(&p[i], v)` or `atomicAdd(p + i, v)`, for a parameter of whole numbers."""
    if expr.kind != "call" or expr.name != "atomicAdd" or len(expr.children) != 3:
        return None
    place, value = ir.bare(expr.children[1]), expr.children[2]
    inner = ir.bare(place.children[0]) if place.kind == "unary" and place.name == "&" else place
    if len(inner.children) != 2 or not (inner.kind == "index" if inner is not place else inner.kind == "binary" and inner.name == "+"):
        return None
    base, index = inner.children
    var = variables.get(base.var) if base.kind == "name" and base.var is not None else None
    if var is None or var.space != "parameter" or var.dims or var.reference:
        return None
    kind, star, _ = var.type.partition("*")
    named = any(n.var == var.key for e in (index, value) for n in e.walk())
    return (var.key, index, value) if star and "*" not in var.type[len(kind) + 1 :] and kind.strip() in _TYPES and not named else None
