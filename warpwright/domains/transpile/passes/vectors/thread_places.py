"""How the place of an element depends on threadIdx.x, as a text that the output's compiler can compute for all threads of a block."""

from __future__ import annotations

from collections.abc import Set

from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.bounds import is_x, linear, mentions_x
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, Expr
from warpwright.domains.transpile.printing import Printer


def function(text: str) -> str:
    """Return the text as a function of the thread."""
    return f"[](const int thread_x) {{ return (int)({text}); }}"


def of_thread(place: Expr, plan: Plan, constants: Set[str], counters: Set[int] = frozenset()) -> str:
    """Return what an element of a shared array of floats adds to its place for threadIdx.x, without what loops or the launch add.

    constants: names of what the compiler of the output knows; counters: of the loops around. Raises DoesNotApply for what is no such element.
    """
    element = tiles.element(place)
    var = plan.variables.get(element[0]) if element is not None else None
    if element is None or var is None or var.space not in ("shared", "dynamic") or place.type.removeprefix("const ") != "float":
        raise DoesNotApply
    if len(element[1]) != max(1, len(var.dims)):
        raise DoesNotApply
    terms = []
    for at, index in enumerate(element[1]):
        text = _part(linear(index, plan, counters), plan, constants)
        if text != "0":
            terms.append(" * ".join([text, *(f"({dim})" for dim in var.dims[at + 1 :])]))
    return " + ".join(terms) or "0"


def _part(expr: Expr, plan: Plan, constants: Set[str]) -> str:
    """Return the part of a sum of products that depends on threadIdx.x."""
    if not mentions_x(expr):
        return "0"
    if _is_known(expr, plan, constants):
        return Printer(plan.variables).expr(expr)
    if expr.kind in ("paren", "cast"):
        return _part(expr.children[-1], plan, constants)
    if expr.kind == "binary" and expr.name in ("+", "-"):
        return f"({_part(expr.children[0], plan, constants)} {expr.name} {_part(expr.children[1], plan, constants)})"
    if expr.kind == "binary" and expr.name == "*":
        for factor, other in (expr.children, expr.children[::-1]):
            if _is_known(factor, plan, constants) and not mentions_x(factor):
                return f"({_part(other, plan, constants)} * {Printer(plan.variables).expr(factor)})"
    raise DoesNotApply


def _is_known(expr: Expr, plan: Plan, constants: Set[str]) -> bool:
    """Is an expression made of threadIdx.x and of numbers that the compiler of the output knows?"""
    hoisted = {s.var.key for s in plan.hoisted if isinstance(s, Declare) and s.init is not None and not s.var.dims}
    for node in expr.walk():
        if is_x(node) or (node.kind == "name" and node.name == "threadIdx"):
            continue
        if node.kind == "name" and (node.var in hoisted if node.var is not None else node.name in constants):
            continue
        if node.kind not in ("literal", "binary", "paren", "cast", "type"):
            return False
    return True
