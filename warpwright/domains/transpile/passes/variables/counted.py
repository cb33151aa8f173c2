"""Loops that count with a variable from outside become `for` loops with one of their own, which is the form that strided loops are known by.

    int i = start; while (i < n) { body; i += s; }          for (int i = start; i < n; i += s) body
    int i = start; rest; while (i < n) { body; i += s; }    int i = start; rest; for (int i_2 = i; i_2 < n; i_2 += s) body
    i = start; while (i < n) { body; i = i + s; }           for (int i_2 = start; i_2 < n; i_2 += s) body

and so with `for (; i < n; i += s)` and `for (i = start; i < n; i += s)`. Nothing may look at i after the loop, nothing else in the body change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED
from warpwright.domains.transpile.ir import Barrier, Collective, Declare, Evaluate, Expr, For, If, Jump, Stmt, Var

Rename = Callable[[Sequence[Stmt], Var, Var], tuple[Stmt, ...]]
"""Returns statements with the second variable in place of the first."""


@dataclass(frozen=True)
class _Counting:
    """A loop that counts, as `for (; cond; step) body`, and where its counter starts."""

    key: int
    loop: For
    start: Expr | None
    """None where the counter was declared further up."""
    declared: bool = False
    """Whether it is declared right in front of the loop."""


def loops(body: tuple[Stmt, ...], variables: Mapping[int, Var], fresh: Callable[[Var], Var], renamed: Rename) -> tuple[Stmt, ...]:
    """Return a kernel's body with such loops as `for` loops. `fresh`: makes a variable like the one that is given."""
    return _Counted(body, variables, fresh, renamed).block(body)


class _Counted:
    def __init__(self, body: tuple[Stmt, ...], variables: Mapping[int, Var], fresh: Callable[[Var], Var], renamed: Rename) -> None:
        self.variables = variables
        self.fresh = fresh
        self.renamed = renamed
        self.mentioned = _mentioned(body)
        self.fixed = _looked_at_elsewhere(body)
        inside: Counter[int] = Counter()
        for stmts in _lists(body):
            for index in range(len(stmts)):
                if (one := self.counting(stmts, index)) is not None and one.start is not None:
                    inside[one.key] += _mentioned(stmts[index : index + 1])[one.key] + (not one.declared and not _assigns_in_head(stmts[index]))
        self.own = {key for key, count in inside.items() if count == self.mentioned[key]}
        """Variables that nothing but such loops with their starts looks at."""

    def block(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        counted: list[Stmt] = []
        for index, stmt in enumerate(stmts):
            one = self.counting(stmts, index)
            if isinstance(stmt, Declare) and stmt.init is None and stmt.var.key in self.own:
                continue
            if one is None or not (one.key in self.own or self.is_last_use(one, stmts, index)):
                counted.append(self.inner(stmt))
                continue
            start = counted.pop() if one.start is not None and one.key in self.own and not _assigns_in_head(stmt) else stmt
            counted.append(replace(self.loop(one), comment=stmt.comment or start.comment))
        return tuple(counted)

    def inner(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, ir.Block | ir.DoWhile | For):
            return replace(stmt, body=self.block(stmt.body))
        return replace(stmt, then=self.block(stmt.then), other=self.block(stmt.other)) if isinstance(stmt, If) else stmt

    def loop(self, one: _Counting) -> For:
        var = self.variables[one.key]
        start = one.start if one.start is not None and one.key in self.own else ir.name_of(var, one.loop.line)
        own = var if one.declared and one.key in self.own else self.fresh(var)
        (loop,) = self.renamed([one.loop], var, own) if own is not var else (one.loop,)
        assert isinstance(loop, For)
        return replace(loop, init=(Declare(own, start, False, loop.line),), body=self.block(loop.body))

    def counting(self, stmts: Sequence[Stmt], index: int) -> _Counting | None:
        """Return what is known of the statement at the index if it is such a loop."""
        stmt = stmts[index]
        if not isinstance(stmt, For) or (loop := _with_step(stmt)) is None:
            return None
        key = _counter(loop)
        if key is None or key in self.fixed or (var := self.variables.get(key)) is None or var.space != "local" or var.dims or var.reference:
            return None
        meets = any(isinstance(s, Barrier | Collective) for s in ir.walk(loop.body))
        if var.type not in (*SIGNED, *UNSIGNED) or key in _assigned(loop.body) or meets:
            return None
        before = loop.init[0] if loop.init else stmts[index - 1] if index else None
        declared = isinstance(before, Declare) and before.var.key == key and before.init is not None and not before.direct
        if declared and not loop.init:
            assert isinstance(before, Declare)
            return _Counting(key, loop, before.init, True)
        start = _set_to(before, key)
        if loop.init and start is None:
            return None
        return _Counting(key, replace(loop, init=()), start)

    def is_last_use(self, one: _Counting, stmts: Sequence[Stmt], index: int) -> bool:
        """Say whether the counter is declared in the same block further up, and not mentioned further down."""
        declared = any(isinstance(s, Declare) and s.var.key == one.key and s.init is not None for s in stmts[:index])
        alone = _assigned([*stmts[:index], *stmts[index + 1 :]])
        return declared and not _assigns_in_head(stmts[index]) and one.key not in alone and not _mentioned(stmts[index + 1 :])[one.key]


def _with_step(stmt: For) -> For | None:
    """Return a loop as one with a step; None where it has none at the end of its body, or `continue` would go past it."""
    if stmt.step is not None:
        step, body = stmt.step, stmt.body
    elif not stmt.body or not isinstance(last := stmt.body[-1], Evaluate) or _continues(stmt):
        return None
    else:
        step, body = last.expr, stmt.body[:-1]
    added = _added(step)
    return replace(stmt, step=added, body=body) if added is not None else None


def _continues(stmt: For) -> bool:
    return any(isinstance(s, Jump) and s.word == "continue" for s in ir.walk(stmt.body))


def _added(step: Expr) -> Expr | None:
    """Return `i += s`, also for `i = i + s`."""
    if step.kind != "assign" or step.children[0].kind != "name":
        return None
    if step.name == "+=":
        return step
    name, total = step.children
    total = ir.bare(total)
    if step.name != "=" or total.kind != "binary" or total.name != "+" or len(total.children) != 2 or ir.bare(total.children[0]).var != name.var:
        return None
    by = total.children[1]
    return None if name.var in {n.var for n in by.walk()} else replace(step, parts=(name, " += ", by), name="+=")


def _counter(loop: For) -> int | None:
    cond, step = loop.cond, loop.step
    if cond is None or step is None or cond.kind != "binary" or cond.name not in ("<", "<=") or cond.children[0].kind != "name":
        return None
    return cond.children[0].var if cond.children[0].var == step.children[0].var else None


def _set_to(stmt: Stmt | None, key: int) -> Expr | None:
    """Return what a statement sets the variable to."""
    if not isinstance(stmt, Evaluate) or stmt.expr.kind != "assign" or stmt.expr.name != "=" or stmt.expr.children[0].var != key:
        return None
    start = stmt.expr.children[1]
    return None if stmt.expr.children[0].kind != "name" or key in {n.var for n in start.walk()} else start


def _assigns_in_head(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and bool(stmt.init)


def _mentioned(stmts: Iterable[Stmt]) -> Counter[int]:
    return Counter(e.var for e in ir.expressions(tuple(stmts)) if e.kind == "name" and e.var is not None)


def _assigned(stmts: Iterable[Stmt]) -> set[int]:
    targets = (ir.assigned(e) for e in ir.expressions(tuple(stmts)))
    return {name.var for one in targets if one is not None and (name := ir.target(one)) is not None and name.var is not None}


def _looked_at_elsewhere(body: tuple[Stmt, ...]) -> set[int]:
    """Return the variables that have a second name: by their address, by a reference or in a lambda."""
    elsewhere: set[int] = set()
    for stmt in ir.walk(body):
        if isinstance(stmt, Declare) and stmt.var.reference and stmt.init is not None:
            elsewhere |= {n.var for n in stmt.init.walk() if n.var is not None}
    for expr in ir.expressions(body):
        if expr.kind in ("lambda", "other") or (expr.kind == "unary" and expr.name == "&"):
            elsewhere |= {n.var for n in expr.walk() if n.var is not None}
    return elsewhere


def _lists(body: tuple[Stmt, ...]) -> Iterable[tuple[Stmt, ...]]:
    """Yield the lists of statements, outer before inner, without the heads of loops."""
    yield body
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Block | ir.DoWhile | For):
            yield stmt.body
        elif isinstance(stmt, If):
            yield stmt.then
            yield stmt.other
