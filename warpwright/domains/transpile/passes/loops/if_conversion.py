"""Swaps in memory without a branch: `if (a > b) { s[t] = b; s[u] = a; }` stores both in any case, what they were or what they become.

A vectorised loop would mask the stores, which is slow, or stay scalar and mispredict half of its branches. What the thread has read of shared memory
in the same region, no other thread changes there (that would be a race), so that it may be written back; the places have to follow from the thread's
number. In global memory that is so for arrays that threads touch by their number in the grid alone (`arrays/own_places.py`); a step of a sort of
1 Mi numbers takes 0.15 ms so, and 2.5 with the branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import conjuncts, expand, mentions_x
from warpwright.domains.transpile.analysis.regions import Plan, changed
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.ir import Block, Declare, Evaluate, Expr, For, If, Stmt, Var

_LAZY = ("&&", "||")
_CHOSEN = Expr("name", ("ww::chosen",), 0, "ww::chosen")


def without_branches(stmts: Sequence[Stmt], plan: Plan) -> list[Stmt]:
    """Return the statements of a region with their exchanges written without branches."""
    read: set[str] = set()
    converted: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, Declare | Evaluate) or (isinstance(stmt, If) and not stmt.constexpr):
            for expr in ir.own_expressions(stmt):
                read |= _places(expr, plan)
        one = _exchanged(stmt, read, plan) if isinstance(stmt, If) and not stmt.constexpr and not stmt.other else None
        converted.append(_inside(stmt, plan) if one is None else one)
        read = read if isinstance(stmt, Declare | Evaluate) or one is not None else set()
    return converted


def is_exchange(stmt: If, plan: Plan) -> bool:
    """Is this `if (s[t] > s[u]) { swap }`, which is written without a branch?"""
    return not stmt.constexpr and not stmt.other and _exchanged(stmt, _places(stmt.cond, plan), plan) is not None


def guards_apart(stmts: list[Stmt], plan: Plan) -> list[Stmt]:
    """Return a last `if (u > t && s[t] > s[u]) { swap }` as `if (u > t) if (s[t] > s[u]) { swap }`; other statements as they are."""
    *head, last = stmts
    if not isinstance(last, If) or last.constexpr or last.other:
        return stmts
    *guards, condition = conjuncts(last.cond)
    inner = replace(last, cond=condition, exits=False)
    wholes = [expand(guard, plan) for guard in guards]
    if not guards or not is_exchange(inner, plan) or not all(whole is not None and mentions_x(whole) for whole in wholes):
        return stmts
    outer: Stmt = inner
    for guard in reversed(guards):
        outer = replace(last, cond=guard, then=(outer,), exits=False)
    return [*head, outer]


def guard_around(stmts: Sequence[Stmt], plan: Plan) -> list[Stmt]:
    """Return `value; loop; if (c) { store }` as `if (c) { value; loop; store }`, where what is computed before serves the guarded part alone.

    The guard can then be a bound of the loop over threads, and threads outside compute nothing.
    """
    *head, last = stmts
    if not isinstance(last, If) or last.other or last.constexpr or not ir.is_quiet(last.cond) or not any(isinstance(s, For | Evaluate) for s in head):
        return list(stmts)
    own = {s.var.key for s in head if isinstance(s, Declare)} - plan.arrays - plan.lane_arrays
    inner = {s.var.key for s in ir.walk(tuple(head)) if isinstance(s, Declare)}
    if any(isinstance(s, Declare) and (s.direct or s.var.key not in own) for s in head) or not all(_is_local(s, inner) for s in head):
        return list(stmts)
    touched = {key for s in head for key in changed(s)}
    fixed = [s for s in head if isinstance(s, Declare) and s.init is not None and ir.is_quiet(s.init) and not plan.facts.assigned.get(s.var.key)]
    ready = {s.var.key for s in fixed}
    if any(key in touched and key not in ready for e in (*(s.init for s in fixed if s.init is not None), last.cond) for key in e.keys):
        return list(stmts)
    return [*fixed, replace(last, then=(*(s for s in head if s not in fixed), *last.then))]


def _is_local(stmt: Stmt, own: set[int]) -> bool:
    """Does a statement compute values of the thread alone: no store, no jump, no call with an effect?"""
    for one in ir.walk((stmt,)):
        if not isinstance(one, Declare | Evaluate | For | If | Block):
            return False
        for expr in ir.own_expressions(one):
            for node in expr.walk():
                place = ir.assigned(node)
                if place is not None and not (place.kind == "name" and place.var in own):
                    return False
                if node.kind in ("lambda", "other", "lane") or (node.kind == "call" and node.name not in PURE_CALLS):
                    return False
    return True


def _inside(stmt: Stmt, plan: Plan) -> Stmt:
    """Return the statement with the exchanges in its body written without branches."""
    if isinstance(stmt, If) and not stmt.constexpr:
        return replace(stmt, then=tuple(without_branches(stmt.then, plan)), other=tuple(without_branches(stmt.other, plan)))
    return replace(stmt, body=tuple(without_branches(stmt.body, plan))) if isinstance(stmt, For | Block) else stmt


def _places(expr: Expr, plan: Plan) -> set[str]:
    """Return the places that are read whenever the expression is, as text."""
    if expr.kind in ("conditional", "lambda", "other", "call") or (expr.kind == "binary" and expr.name in _LAZY):
        return _places(expr.children[0], plan) if expr.kind == "binary" else set()
    if expr.kind == "index":
        return {ir.text_of(expr)} if _is_own(expr, plan) else set()
    return {place for child in expr.children for place in _places(child, plan)}


def _is_own(expr: Expr, plan: Plan) -> bool:
    """Is this s[i] or s[i][j] of shared memory, with places that follow from the thread's number, or a place of the thread's own in global memory?"""
    if expr.children[0].var in plan.own:
        return True
    root, indices = expr, []
    while root.kind == "index":
        root, index = root.children[0], root.children[1]
        whole = expand(index, plan)
        if whole is None:
            return False
        indices.append(whole)
    known = root.kind == "name" and root.var is not None and root.var in plan.variables
    return known and plan.variables[root.var or 0].space in ("shared", "dynamic") and any(mentions_x(index) for index in indices)


def _exchanged(stmt: If, read: set[str], plan: Plan) -> Stmt | None:
    """Return `if (c) { place = value; ... }` without a branch; None where it has another form."""
    if not all(_is_quiet_value(inner, read) or _is_swap(inner, read) for inner in stmt.then) or not any(_is_swap(inner, read) for inner in stmt.then):
        return None
    names = {var.name for var in plan.variables.values()}
    name = next(n for i in range(1, 10_000) if (n := f"taken{i if i > 1 else ''}") not in names)
    taken = Var(min([0, *plan.variables]) - 1, name, "bool", (), "local", stmt.line, const=True)
    converted: list[Stmt] = [Declare(taken, Expr("cast", ("(bool)", ir.paren(stmt.cond)), stmt.line, "", None, "bool"), False, stmt.line)]
    for inner in stmt.then:
        if isinstance(inner, Evaluate):
            place, value = inner.expr.children
            parts = (_CHOSEN, "(", ir.name_of(taken), ", ", value, ", ", place, ")")
            chosen = Expr("call", parts, inner.line, _CHOSEN.name, None, place.type)
            inner = replace(inner, expr=replace(inner.expr, parts=(place, " = ", chosen)))
        converted.append(inner)
    return Block(tuple(converted), stmt.line)


def _is_quiet_value(stmt: Stmt, read: set[str]) -> bool:
    """Does a statement only name a value that may be computed in any case?"""
    return isinstance(stmt, Declare) and stmt.init is not None and not stmt.var.dims and not stmt.var.reference and _is_ready(stmt.init, read)


def _is_swap(stmt: Stmt, read: set[str]) -> bool:
    """Does a statement store a ready value to a place that was read anyway?"""
    if not isinstance(stmt, Evaluate) or stmt.expr.kind != "assign" or stmt.expr.name != "=":
        return False
    place, value = stmt.expr.children
    return ir.text_of(place) in read and bool(place.type) and place.type == value.type.removeprefix("const ") and _is_ready(value, read)


def _is_ready(expr: Expr, read: set[str]) -> bool:
    """Is the value made of names and of what was read anyway, without an effect?"""
    if expr.kind == "index":
        return ir.text_of(expr) in read
    if expr.kind in ("call", "assign", "lane", "lambda", "other") or (expr.kind == "unary" and expr.name in ("*", "++", "--")):
        return False
    if expr.kind == "binary" and expr.name in ("/", "%"):
        return False
    return all(_is_ready(child, read) for child in expr.children)
