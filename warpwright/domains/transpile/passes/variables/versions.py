"""Whole numbers that straight code sets again get a variable for each value, so that what later code computes from them is known.

    int rest = i % a; h = rest / b; rest = rest % b; n = rest / c;   ->   int rest = i % a; h = rest / b; int rest_2 = rest % b; n = rest_2 / c;

Index arithmetic of several dimensions is written so. With one value a name, quotients and rests are cut into stretches (`segments.py`), guards
become bounds, and neighbouring threads are seen to touch neighbouring memory. (Heads split out of 1,024 rows of 1,152 floats: 1.8 ms with divisions
for each thread, 0.2 without.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Stmt, Var
from warpwright.domains.transpile.passes.normalise import rename, renamer


def apart(body: Sequence[Stmt], variables: dict[int, Var], references: Mapping[str, tuple[int, ...]]) -> tuple[Stmt, ...]:
    """Return the body of a kernel in normal form with such values apart. `references`: function -> which arguments it takes by reference."""
    sets = Counter(key for expr in ir.expressions(tuple(body)) for key in _set(expr))
    fixed = looked_at_elsewhere(body, references)
    return _Versions(variables, sets, fixed).stmts(tuple(body))


class _Versions:
    def __init__(self, variables: dict[int, Var], sets: Mapping[int, int], fixed: set[int]) -> None:
        self.variables, self.sets, self.fixed = variables, sets, fixed

    def stmts(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return a list of statements, and the lists inside, with the values of what is declared in it apart."""
        for stmt in stmts:
            if isinstance(stmt, Declare) and self.may_part(stmt, stmts):
                stmts = self.parted(stmts, stmt)
        return tuple(map(self.inside, stmts))

    def inside(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, ir.If):
            return replace(stmt, then=self.stmts(stmt.then), other=self.stmts(stmt.other))
        return replace(stmt, body=self.stmts(stmt.body)) if isinstance(stmt, ir.For | ir.Block | ir.DoWhile) else stmt

    def may_part(self, stmt: Declare, stmts: tuple[Stmt, ...]) -> bool:
        """Say whether all that sets the variable after its declaration are statements of the same list."""
        var = stmt.var
        if var.type not in (*SIGNED, *UNSIGNED) or var.dims or var.reference or var.space != "local" or stmt.direct or var.key in self.fixed:
            return False
        here = sum(_value(one, var) is not None for one in stmts)
        return stmt.init is not None and here > 0 and self.sets[var.key] == here

    def parted(self, stmts: tuple[Stmt, ...], declaration: Declare) -> tuple[Stmt, ...]:
        """Return the list with a new variable at each place that sets the declared one."""
        var, now = declaration.var, declaration.var
        rebuilt: list[Stmt] = []
        for stmt in stmts:
            value = _value(stmt, var)
            if value is None:
                rebuilt.append(_with(stmt, var, now))
                continue
            new = self.fresh(var)
            rebuilt.append(Declare(new, _renamed(value, var, now), False, stmt.line, stmt.comment))  # type: ignore[union-attr]
            now = new
        return tuple(rebuilt)

    def fresh(self, var: Var) -> Var:
        names = {v.name for v in self.variables.values()}
        name = next(n for i in range(2, 10_000) if (n := f"{var.name}_{i}") not in names)
        own = replace(var, key=min([0, *self.variables]) - 1, name=name)
        self.variables[own.key] = own
        return own


def _set(expr: Expr) -> list[int]:
    """Return the key of the variable that this node of an expression assigns to."""
    root = ir.target(changed) if (changed := ir.assigned(expr)) is not None else None
    return [root.var] if root is not None and root.var is not None else []


def _value(stmt: Stmt, var: Var) -> Expr | None:
    """Return the value of `x = value;`, `x += value;` or `++x;` for this variable; None for another statement."""
    if not isinstance(stmt, Evaluate) or (place := ir.assigned(stmt.expr)) is None or place.kind != "name" or place.var != var.key:
        return None
    expr = stmt.expr
    if expr.kind == "unary":
        return Expr("binary", (place, f" {expr.name[0]} ", ir.number(1, expr.line)), expr.line, expr.name[0], None, var.type)
    value = expr.children[1]
    if any(_set(node) for node in value.walk()):
        return None
    if expr.name == "=":
        return value
    operator = expr.name.removesuffix("=")
    return Expr("binary", (place, f" {operator} ", ir.paren(value)), expr.line, operator, None, _joined(var.type, value.type))


def _joined(kind: str, other: str) -> str:
    """Return the type of an operation on the variable and a value: its own where they agree, else unknown."""
    return kind if other.removeprefix("const ") in (kind, "int") else ""


def _renamed(expr: Expr, var: Var, now: Var) -> Expr:
    stmt = _with(Evaluate(expr), var, now)
    assert isinstance(stmt, Evaluate)
    return stmt.expr


def _with(stmt: Stmt, var: Var, now: Var) -> Stmt:
    """Return a statement with the variable's present name."""
    if now is var or not any(e.var == var.key for e in ir.expressions((stmt,))):
        return stmt
    names: dict[int, Var | Expr] = {var.key: now}
    return rename(stmt, renamer(names, {}), names)


def looked_at_elsewhere(body: Sequence[Stmt], references: Mapping[str, tuple[int, ...]]) -> set[int]:
    """Return the keys of variables that are referred to, captured, or named where the compiler does not see what happens to them."""
    keys: set[int] = set()
    for stmt in ir.walk(tuple(body)):
        if isinstance(stmt, Declare) and stmt.var.reference and stmt.init is not None:
            keys |= stmt.init.keys
        if isinstance(stmt, ir.Raw):
            keys |= stmt.expr.keys
        if isinstance(stmt, ir.Collective):
            keys |= {stmt.var.key, stmt.offered.key}
        for expr in ir.own_expressions(stmt):
            for node in expr.walk():
                if node.kind in ("lambda", "other", "lane") or (node.kind == "unary" and node.name == "&"):
                    keys |= {n.var for n in node.walk() if n.var is not None}
                elif node.kind == "call":
                    taken = [c for i, c in enumerate(node.children[1:]) if i in references.get(node.name, ())]
                    keys |= {n.var for c in (*taken, *node.children[:1]) for n in c.walk() if n.var is not None}
    return keys
