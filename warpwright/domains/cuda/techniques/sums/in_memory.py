"""Loops that add to one element of memory, turn by turn: a local variable gathers instead, and the element is written once.

    c[i] = 0; for (k...) c[i] += e;     ->     float sum = 0; for (k...) sum += e; c[i] = sum;

No compiler does that by itself, since the operands might lie where the element does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from warpwright.base import Action
from warpwright.domains.cuda import shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.qualifiers import lie_apart
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Block, Evaluate, Expr, For, If, Stmt
from warpwright.space import Traits

TYPES = frozenset({"float", "double", "int", "unsigned int", "unsigned", "long long", "unsigned long long", "long", "unsigned long"})


@dataclass(frozen=True)
class LocalSum:
    """`for (k...) c[i] += e` -> a sum in a register that c[i] is given afterwards: a load and a store less each turn, and a form that others read.

    Legal in a plain kernel where no other pointer can lead to the element: every launch gives the pointers different names.
    """

    idle: bool = False
    """On a CPU it is for what it makes legal: a loop over threads that adds to neighbouring elements is as fast, or faster (1.4 times, once)."""

    name: ClassVar[str] = "local_sum"

    @property
    def traits(self) -> Traits:
        """What a search may know of it."""
        return Traits("E", enabling=True, idle=self.idle)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each kernel with such a loop."""
        for kernel in plan.unit.kernels:
            plain = shape.plain(plan, kernel)
            if plain is not None and not plan.has(self.name, kernel) and _changed(plain) is not None:
                yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with local sums."""
        plain = shape.plain(plan, action.at)
        body = _changed(plain) if plain is not None and not plan.has(self.name, action.at) else None
        expect(body is not None, "a plain kernel with a loop that adds to one element of memory")
        assert plain is not None and body is not None
        whole = [*plain.prelude, *([If(plain.guard, body)] if plain.guard is not None else body)]
        text = write.kernel(plain.head, plain.function, whole)
        return plan.then(plain.unit.changed([Edit(plain.kernel.start, plain.kernel.end, text)]), self.name, action.at)


@dataclass
class _Count:
    """How many sums there are so far."""

    value: int = 0


def _changed(plain: Plain) -> tuple[Stmt, ...] | None:
    """Return a kernel's body with its local sums; None where it has none."""
    if not lie_apart(plain.unit, plain.kernel.name):
        return None
    count = _Count()
    body = _within(plain, plain.body, count)
    return body if count.value else None


def _within(plain: Plain, stmts: Sequence[Stmt], count: _Count) -> tuple[Stmt, ...]:
    new: list[Stmt] = []
    for stmt in stmts:
        element = _element(plain, stmt) if isinstance(stmt, For) else None
        if element is None:
            if isinstance(stmt, If):
                stmt = replace(stmt, then=_within(plain, stmt.then, count), other=_within(plain, stmt.other, count))
            elif isinstance(stmt, For | Block):
                stmt = replace(stmt, body=_within(plain, stmt.body, count))
            new.append(stmt)
            continue
        name, kind, spelled = f"ww_sum_{count.value}", _kind(element), ir.text_of(element)
        count.value += 1
        start: Expr = element
        start_value = _assigned(new[-1], spelled) if new else None
        if start_value is not None:
            new.pop()
            start = start_value
        new.append(ir.Raw(Expr("other", (f"{kind} {name} = ", start, ";"))))
        new.append(ir.map_expressions(stmt, lambda e, s=spelled, n=name: Expr("other", (n,)) if e.kind == "index" and ir.text_of(e) == s else None))  # type: ignore[misc]
        new.append(Evaluate(Expr("other", (element, f" = {name}"))))
    return tuple(new)


def _kind(element: Expr) -> str:
    return element.type.replace("const ", "").strip()


def _assigned(stmt: Stmt, spelled: str) -> Expr | None:
    """Return what a statement in front of the loop gives the element, without reading its array; None for another statement."""
    assign = ir.bare(stmt.expr) if isinstance(stmt, Evaluate) else None
    if assign is None or assign.kind != "assign" or assign.name != "=" or ir.text_of(assign.children[0]) != spelled:
        return None
    root = ir.target(assign.children[0])
    return None if root is None or root.var in assign.children[1].keys or assign.children[1].changes else assign.children[1]


def _element(plain: Plain, loop: For) -> Expr | None:
    """Return the one element of memory that a loop changes by what it was, at a place that stays; None where there is none such."""
    changed = [e for expr in ir.expressions((loop,)) if (e := ir.assigned(expr)) is not None and not shape.is_local(e)]
    bare = [ir.bare(e) for e in changed]
    if not bare or bare[0].kind != "index" or len({ir.text_of(e) for e in bare}) != 1:
        return None
    element = bare[0]
    array, place = (ir.bare(child) for child in element.children)
    parameters = {var.key for var in plain.function.parameters}
    if array.kind != "name" or array.var not in parameters or _kind(element) not in TYPES:
        return None
    moving = shape.changed_by((loop,)) | shape.declared_in((loop,))
    depends = shape.closure(plain.all, set(plain.indices))
    if place.keys & moving or not place.keys & depends or any(node.kind in ("index", "call") for node in place.walk()):
        return None
    spelled, inside = ir.text_of(element), set[int]()
    read = False
    for stmt in ir.walk((loop,)):
        for whole in ir.own_expressions(stmt):
            for node in whole.walk():
                if node.kind == "call" and node.name.startswith("atomic"):
                    return None
                if node.kind == "index" and ir.text_of(node) == spelled:
                    inside |= {id(inner) for inner in node.walk()}
                if node.kind == "name" and node.var == array.var and id(node) not in inside:
                    return None
                if node.kind == "assign" and ir.text_of(node.children[0]) == spelled:
                    read |= node.name != "=" or array.var in node.children[1].keys
    return element if read else None
