"""The largest or smallest of many, found by one thread: its nest of loops becomes one loop, which is vectorised.

`for (i < 3) for (j < 4) m = max(m, a[i * 4 + j])` runs through neighbours in order. The order of maxima and minima does not change them (of a NaN and
a number, the number; of -0 and 0, either, as fmaxf has it); that of sums does, so that sums of floats stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import uniform
from warpwright.domains.transpile.analysis.regions import Plan, changed
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.printing import trip_count

SHORTEST = 64
"""Trips of a nest, from which it is vectorised."""

_NAMES = {"max": "max", "fmaxf": "max", "fmax": "max", "min": "min", "fminf": "min", "fmin": "min"}


def vectorised(stmts: Sequence[Stmt], plan: Plan) -> list[Stmt] | None:
    """Return the statements of a region that does the same in every thread, with its reductions vectorised; None where there are none."""
    for expr in ir.expressions(tuple(stmts)):
        if uniform.varies(expr, plan.facts.varying, plan.variables) or expr.kind in ("lambda", "lane"):
            return None
    reduced = [_reduced(s, plan) if isinstance(s, For) else s for s in stmts]
    return reduced if any(one is not other for one, other in zip(reduced, stmts, strict=True)) else None


def _reduced(nest: For, plan: Plan) -> Stmt:
    """Return a nest of loops around `m = max(m, value)` as one; the nest itself where it has another form."""
    loops, trips = [nest], [trip_count(nest)]
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For):
        loops.append(inner)
        trips.append(trip_count(inner))
    counts = [t for t in trips if t is not None]
    if len(counts) != len(trips) or any(_start(loop) != 0 for loop in loops) or len(loops[-1].body) != 1:
        return nest
    last = loops[-1].body[0]
    total = 1
    for count in counts:
        total *= count
    accumulation = _accumulates(last, plan) if isinstance(last, Evaluate) else None
    if accumulation is None or not SHORTEST <= total < 1 << 31:
        return nest
    operation, result, value = accumulation
    keys = [_counter(loop) for loop in loops]
    strides = [1]
    for count in reversed(counts[1:]):
        strides.insert(0, strides[0] * count)
    whole = _fused(value, dict(zip(keys, strides, strict=True)))
    if whole is None or {n.var for n in whole.walk()} & ({result.var, *keys} - {keys[-1]}):
        return nest
    assert isinstance(last, Evaluate)
    name, kind = plan.variables[result.var or 0].name, plan.variables[result.var or 0].type
    call = Expr("other", (f"ww::f{operation}_{kind[0]}(", result, ", ", whole, ")"), last.line, "", None, kind)
    body = replace(last, expr=replace(last.expr, parts=(result, " = ", call)))
    innermost = loops[-1]
    assert innermost.cond is not None
    cond = replace(innermost.cond, parts=(innermost.cond.children[0], " < ", ir.number(total, nest.line)))
    return replace(innermost, cond=cond, body=(body,), line=nest.line, pragma=f"omp simd reduction(ww_{operation}: {name})")


def _counter(loop: For) -> int:
    assert isinstance(loop.init[0], ir.Declare)
    return loop.init[0].var.key


def _start(loop: For) -> int | None:
    first = loop.init[0]
    return literal(first.init) if isinstance(first, ir.Declare) and first.init is not None else None


def _accumulates(stmt: Evaluate, plan: Plan) -> tuple[str, Expr, Expr] | None:
    """Return the operation, the name and the value of `m = max(m, value)`, for a local m of float or double."""
    assign = stmt.expr
    if assign.kind != "assign" or assign.name != "=" or len(changed(stmt)) != 1:
        return None
    result, call = assign.children
    call = ir.bare(call)
    var = plan.variables.get(result.var or 0)
    if result.kind != "name" or var is None or var.space != "local" or var.type not in ("float", "double"):
        return None
    if var.dims or var.reference or var.key in plan.facts.addressed:
        return None
    if call.kind != "call" or call.name not in _NAMES or call.type != var.type or len(call.children) != 3:
        return None
    one, other = call.children[1:]
    if other.kind == "name" and other.var == var.key:
        one, other = other, one
    return (_NAMES[call.name], result, other) if one.kind == "name" and one.var == var.key and other.type.removeprefix("const ") == var.type else None


def _fused(value: Expr, strides: dict[int, int]) -> Expr | None:
    """Return the value with the sums of counters in its subscripts as the last counter; None where they do not run through neighbours."""
    last = next(reversed(strides))
    seen = False
    fits = True

    def change(expr: Expr) -> Expr | None:
        nonlocal seen, fits
        if expr.kind in ("call", "assign", "lambda", "other", "unary", "conditional") or expr.var in strides:
            fits = False
        if expr.kind != "index":
            return None
        factors = _linear(expr.children[1], strides)
        if factors != strides:
            fits = False
            return expr
        seen = True
        rest = expr.children[1].map(lambda n: ir.number(0, n.line) if n.var in strides and n.var != last else None)
        return replace(expr, parts=tuple(rest if p is expr.children[1] else p for p in expr.parts))

    fused = value.map(change)
    return fused if seen and fits and last in {n.var for n in fused.walk()} else None


def _linear(expr: Expr, counters: dict[int, int]) -> dict[int, int] | None:
    """Return how often each counter counts in a sum of multiples of them and of what does not change; None where it is another form."""
    if not {n.var for n in expr.walk()} & set(counters):
        quiet = all(n.kind in ("name", "literal", "binary", "paren", "member", "cast", "type") for n in expr.walk())
        return dict.fromkeys(counters, 0) if quiet else None
    if expr.kind == "name":
        return {key: int(key == expr.var) for key in counters}
    if expr.kind == "paren" and len(expr.children) == 1:
        return _linear(expr.children[0], counters)
    if expr.kind != "binary" or len(expr.children) != 2:
        return None
    left, right = expr.children
    if expr.name == "*":
        left, right = (right, left) if literal(left) is not None else (left, right)
        number, inner = literal(right), _linear(left, counters)
        return {k: v * number for k, v in inner.items()} if number is not None and inner is not None else None
    one, other = _linear(left, counters), _linear(right, counters)
    if expr.name not in ("+", "-") or one is None or other is None:
        return None
    return {k: one[k] + other[k] * (1 if expr.name == "+" else -1) for k in counters}
