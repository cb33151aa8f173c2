"""What a device function's text means in the place of its call: its names, and what its parameters by reference stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, Expr, Function, Stmt, Var

Hold = Callable[[Expr], Expr]
"""Takes a subscript; returns a variable that has its value from now on."""

_NUMBER = re.compile(r"((un)?signed )?(bool|char|short|int|long|long long|float|double)|unsigned|u?int\d+_t|size_t")


def free_names(function: Function) -> frozenset[str]:
    """Return the names in a function that are none of its own: those of globals, constants and other functions."""
    own = function.variables or {}
    local = {var.name for var in own.values()} | {p.name for p in function.parameters} | set(function.template)
    found = {e.name for e in ir.expressions(function.body) if e.kind in ("name", "call") and e.name and (e.var is None or e.var not in own)}
    sizes = {word for s in ir.walk(function.body) if isinstance(s, Declare) for text in s.var.dims for word in re.findall(r"[A-Za-z_]\w*", text)}
    return frozenset(found | (sizes - local)) - set(function.template)


def reached(kernel: Function, *known: Mapping[str, tuple[Function, ...]]) -> list[Function]:
    """Return the functions, of those known by name, that a kernel calls, and that these call."""
    found: list[Function] = []
    seen, open_functions = {kernel.name}, [kernel]
    while open_functions:
        for name in {e.name for e in ir.expressions(open_functions.pop().body) if e.kind == "call"} - seen:
            seen.add(name)
            more = [function for functions in known for function in functions.get(name, ())]
            found += more
            open_functions += more
    return found


def changeable(parameters: Sequence[Var], arguments: Sequence[Expr]) -> set[int]:
    """Return the variables that a call may change: those given by a reference, or by their address."""
    given = [ir.target(a) for p, a in zip(parameters, arguments, strict=False) if p.reference]
    given += [ir.target(e.children[0]) for a in arguments for e in a.walk() if e.kind == "unary" and e.name == "&" and e.children]
    return {root.var for root in given if root is not None and root.var is not None}


def own(kernel: Function, references: Mapping[str, tuple[int, ...]], stateful: Set[str]) -> set[int]:
    """Return the parameters of a kernel that it changes, whole or in part: each thread has its own, `p.n += 1` is no other thread's.

    references: function -> which arguments it may change. stateful: methods that change their object, for objects of a type that a template leaves
    open.
    """
    keys = {parameter.key for parameter in kernel.parameters}
    places = [place for expr in ir.expressions(kernel.body) for place in [*_changed(expr, references, stateful), *_arrays_in(expr)]]
    for stmt in ir.walk(kernel.body):
        if isinstance(stmt, Declare) and stmt.init is not None:  # `T& r = p.n;`, `T* a = p.rows;`
            array = ir.bare(stmt.init).type.endswith("]") and not stmt.var.type.startswith("const ")
            places += [ir.bare(stmt.init)] if (stmt.var.reference and not stmt.var.const) or array else []
    return keys & {key for place in places if (key := _stored_in(place, "operator[]" in stateful)) is not None}


def _arrays_in(expr: Expr) -> list[Expr]:
    """Return the arrays inside an expression that become pointers in it: through such a one they may be changed."""
    taken = expr.children[1:] if expr.kind in ("index", "member") else expr.children
    return [child for child in taken if child.kind == "member" and child.type.endswith("]")]


def _changed(expr: Expr, references: Mapping[str, tuple[int, ...]], stateful: Set[str]) -> list[Expr]:
    """Return the places that an expression itself may change, or lets be changed: by an address, a reference or a method."""
    if (assigned := ir.assigned(expr)) is not None:
        return [assigned]
    if expr.kind == "unary" and expr.name == "&":
        return [expr.children[0]]
    if expr.kind != "call" or not expr.children:
        return []
    by_reference = [a for at, a in enumerate(expr.children[1:]) if expr.name == "swap" or at in references.get(expr.name, ())]
    head = expr.children[0]
    method = head.kind == "member" or expr.name.startswith("operator") or (head.kind == "name" and head.var is not None)
    if not method or expr.pure:
        return by_reference
    called = ir.text_of(head).rpartition(".")[2].strip() if head.kind == "member" else "operator()"
    if "dependent" in expr.type and called not in stateful:
        return by_reference
    return [*by_reference, head.children[0] if head.kind == "member" and "->" not in "".join(p for p in head.parts if isinstance(p, str)) else head]


def _stored_in(place: Expr, elements: bool) -> int | None:
    """Return the variable that a place is, or is a part of: `p` of `p.n`, `p.rows[1]`; None for what a pointer in it points to. elements: what
    `p[1]` names, of a type that a template leaves open, may be in p."""
    while place.kind != "name":
        if not place.children or (place.kind == "member" and any("->" in part for part in place.parts if isinstance(part, str))):
            return None
        base = place.children[0]
        array = base.type.endswith("]") or (base.kind == "member" and "dependent" in base.type)
        array = array or (elements and base.kind == "name" and "dependent" in place.type and "*" not in base.type)
        own_element = place.kind == "call" and place.name == "operator[]" and not place.pure
        if place.kind not in ("paren", "member") and not (place.kind == "index" and array) and not own_element:
            return None
        place = base
    return place.var


def same_place(argument: Expr, changed: set[int], variables: Mapping[int, Var], hold: Hold) -> Expr:
    """Return an expression that names, all through a call, the place that the argument names before it.

    Raises DoesNotApply for a place that no subscript names.
    """
    root = variables.get(argument.var) if argument.kind == "name" and argument.var is not None else None
    if argument.kind == "name":
        if root is not None and "*" in root.type and not root.dims and root.key in changed:
            raise DoesNotApply(argument.line, f"a reference to a place by {root.name}, which may be moved")
        return argument
    if argument.kind in ("paren", "member"):
        return argument.with_children([same_place(argument.children[0], changed, variables, hold), *argument.children[1:]])
    if argument.kind == "index":
        base, at = argument.children
        steady = at.kind == "literal" or (
            all(n.kind in ("name", "literal", "binary", "paren", "member") for n in at.walk()) and not (at.keys & changed)
        )
        return argument.with_children([same_place(base, changed, variables, hold), at if steady and _private(at, variables) else hold(at)])
    if argument.kind == "unary" and argument.name == "*":
        inner = ir.bare(argument.children[0])
        if inner.kind == "name" and inner.var is not None:
            return argument.with_children([ir.paren(same_place(inner, changed, variables, hold))])
    raise DoesNotApply(argument.line, f"a reference to `{ir.text_of(argument)}` for a function that synchronises")


def _private(at: Expr, variables: Mapping[int, Var]) -> bool:
    """Say whether no other thread changes what a subscript names, nor another name of it."""
    named = [variables[key] for key in at.keys if key in variables]
    return all(var.space in ("local", "parameter") and not var.reference for var in named)


def is_copied(parameter: Var, argument: Expr, kind: str, given: str) -> bool:
    """Say whether a parameter by const reference is a number of its own: a value, or one converted. `kind`, `given`: their types."""
    if argument.kind not in ("name", "index", "member", "paren", "unary") or (argument.kind == "unary" and argument.name != "*"):
        return True
    return bool(given) and kind != given and all(_NUMBER.fullmatch(one) for one in (kind, given))


def shared_once(stmts: Sequence[Stmt], known: set[int]) -> list[Stmt]:
    """Return statements without the declarations of shared arrays that there are already: those of a function called before."""

    def kept(one: Stmt) -> Stmt:
        if isinstance(one, Declare) and one.var.key in known:
            return ir.Block((), one.line)
        if isinstance(one, ir.Block | ir.DoWhile | ir.For):
            return replace(one, body=tuple(kept(s) for s in one.body))
        if isinstance(one, ir.If):
            return replace(one, then=tuple(kept(s) for s in one.then), other=tuple(kept(s) for s in one.other))
        return one

    return [kept(stmt) for stmt in stmts]
