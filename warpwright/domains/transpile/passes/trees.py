"""Trees of sums in shared memory that begin with neighbours:

    for (d = 1; d < blockDim.x; d *= 2) { if (t % (2 * d) == 0) s[t] += s[t + d]; __syncthreads(); }

also with `t & (2 * d - 1)` and with `at = 2 * d * t; if (at < blockDim.x) s[at] += s[at + d]`. Each step touches every second, fourth ... element;
as one operation on whole vectors the steps are exchanges in registers (`runtime/device/trees.hpp`). The sums are the same, in the same order.
(A block of 256 threads: 90 to 120 ns step by step, 18 so.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import conjuncts, expand, is_x
from warpwright.domains.transpile.analysis.regions import Loop, Plan, Region, Sync, all_stmts
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, If, Var


@dataclass(frozen=True)
class Tree:
    """Such a loop."""

    array: Var
    only_first: bool
    """Whether nothing but element 0 is read behind it."""


def tree(loop: Loop, plan: Plan) -> Tree | None:
    """Return what a loop is as a tree over the threads of a block of one row; None where it is none."""
    counter = _doubling(loop, plan)
    parts = [node for node in loop.body if not isinstance(node, Sync)]
    if counter is None or len(parts) != 1 or len(loop.body) < 2 or not isinstance(region := parts[0], Region):
        return None
    *heads, last = region.stmts
    if not isinstance(last, If) or last.other or last.constexpr or len(last.then) != 1 or not all(isinstance(s, Declare) for s in heads):
        return None
    inside = replace(plan, scalars=plan.scalars | {counter})
    place = _sum(last, counter, inside)
    if place is None or place.children[0].var is None:
        return None
    var = plan.variables[place.children[0].var]
    if var.space != "shared" or len(var.dims) != 1 or not _selects(last.cond, place.children[1], counter, inside):
        return None
    return Tree(var, _only_first(loop, var, plan))


def _doubling(loop: Loop, plan: Plan) -> int | None:
    """Return the counter of `for (d = 1; d < blockDim.x; d *= 2)`."""
    if len(loop.init) != 1 or not isinstance(first := loop.init[0], Declare) or first.init is None or literal(first.init) != 1 or loop.reach:
        return None
    key, cond, step = first.var.key, loop.cond, loop.step
    if cond is None or step is None or cond.kind != "binary" or cond.name != "<" or ir.bare(cond.children[0]).var != key:
        return None
    if not _is_width(cond.children[1], plan) or step.kind != "assign" or ir.bare(step.children[0]).var != key:
        return None
    by = step.children[1]
    twice = (step.name == "*=" and literal(by) == 2) or (step.name == "<<=" and literal(by) == 1) or (step.name == "+=" and ir.bare(by).var == key)
    return key if twice else None


def _is_width(expr: Expr, plan: Plan) -> bool:
    whole = expand(expr, plan)
    return whole is not None and (inner := _bare(whole)).kind == "member" and inner.name == "x" and inner.children[0].name == "blockDim"


def _sum(stmt: If, counter: int, plan: Plan) -> Expr | None:
    """Return s[a] of `s[a] += s[a + d]` or `s[a] = s[a] + s[a + d]`."""
    inner = stmt.then[0]
    if not isinstance(inner, Evaluate) or inner.expr.kind != "assign" or inner.expr.name not in ("+=", "="):
        return None
    place, value = inner.expr.children[0], ir.bare(inner.expr.children[1])
    if inner.expr.name == "=":
        if value.kind != "binary" or value.name != "+" or ir.text_of(ir.bare(value.children[0])) != ir.text_of(place):
            return None
        value = ir.bare(value.children[1])
    if place.kind != "index" or value.kind != "index" or place.children[0].kind != "name" or place.children[0].var != value.children[0].var:
        return None
    further = ir.bare(value.children[1])
    if further.kind != "binary" or further.name != "+" or len(further.children) != 2:
        return None
    own = _shown(place.children[1], plan)
    ways = (further.children, further.children[::-1])
    fits = any(ir.bare(one).var == counter and _shown(other, plan) == own for one, other in ways)
    return place if own is not None and fits else None


def _selects(cond: Expr, index: Expr, counter: int, plan: Plan) -> bool:
    """Say whether the condition leaves the threads whose index is a multiple of 2 d, up to the block's width."""
    whole, at = expand(cond, plan), expand(index, plan)
    if whole is None or at is None or len(conjuncts(cond)) != 1:
        return False
    test, place = _bare(whole), _bare(at)
    if test.kind != "binary":
        return False
    if test.name == "<" and _factors(place) == sorted(["2", "x", str(counter)]):
        return _factors(_bare(test.children[0])) == _factors(place) and _is_width(test.children[1], plan)
    rest = _bare(test.children[0])
    if test.name != "==" or literal(test.children[1]) != 0 or rest.kind != "binary" or not is_x(place) or not is_x(_bare(rest.children[0])):
        return False
    by = _bare(rest.children[1])
    if rest.name == "&" and by.kind == "binary" and by.name == "-" and literal(by.children[1]) == 1:
        by = _bare(by.children[0])
    elif rest.name != "%":
        return False
    return _factors(by) == sorted(["2", str(counter)])


def _factors(expr: Expr) -> list[str]:
    """Return the factors of a product, sorted: numbers, keys of variables, and x for the thread's number."""
    inner = _bare(expr)
    if inner.kind == "binary" and inner.name == "*" and len(inner.children) == 2:
        return sorted([f for child in inner.children for f in _factors(child)])
    number = literal(inner)
    return ["x"] if is_x(inner) else [str(number)] if number is not None else [str(inner.var)] if inner.kind == "name" else ["?"]


def _shown(expr: Expr, plan: Plan) -> str | None:
    whole = expand(expr, plan)
    return None if whole is None else ir.text_of(_bare(whole))


def _bare(expr: Expr) -> Expr:
    while expr.kind in ("paren", "cast") and expr.children:
        expr = expr.children[-1]
    return expr


def _only_first(loop: Loop, var: Var, plan: Plan) -> bool:
    """Say whether the kernel reads nothing but element 0 of the array behind the loop, which nothing repeats."""
    at = next((i for i, node in enumerate(plan.nodes) if node is loop), None)
    if at is None:
        return False
    exprs = list(ir.expressions(tuple(all_stmts(plan.nodes))))
    named = sum(e.kind == "name" and e.var == var.key for e in exprs)
    indexed = [e for e in exprs if e.kind == "index" and e.children[0].kind == "name" and e.children[0].var == var.key]
    behind = list(ir.expressions(tuple(all_stmts(plan.nodes[at + 1 :]))))
    later = [e for e in behind if e.kind == "index" and e.children[0].var == var.key]
    stored = any((place := ir.assigned(e)) is not None and (root := ir.target(place)) is not None and root.var == var.key for e in behind)
    return named == len(indexed) and not stored and all(literal(e.children[1]) == 0 for e in later)

