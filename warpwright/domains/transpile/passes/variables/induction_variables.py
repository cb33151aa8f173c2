"""Whole numbers that each thread sets for itself and all threads then move alike: a value that stays, and a distance that all share.

    int at = y * w + x; for (...) { at += sheet; __syncthreads(); ... in[at - 1] ... }
    ->  const int at = y * w + x; long at_moved = 0; for (...) { at_moved += sheet; __syncthreads(); ... in[at + at_moved - 1] ... }

What lives across a barrier and changes is kept in an array with a number for each thread, and a place that is read from an array is not known to
follow its neighbour's: loads become gathers. What stays is computed anew, and what all threads share is one number. The distance has 64 bits: it is
exact wherever the variable itself did not overflow, and no amount that it moves by is negated in fewer. Pointers that go along in a loop are parted
so too, with a barrier or without: `h = *g * h + *x; g += n; x += n` then reads `g[g_moved]`, beside what the next thread reads. (Seven points of
32 sheets of 256 x 256 floats, by sheets in shared memory: 15.6 ms before, 4.1 after; 512 columns of 4 x 256 steps by pointers: 3.4 and 0.18 ms; on a
busy machine.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import uniform
from warpwright.domains.transpile.analysis.callees import Callees
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED
from warpwright.domains.transpile.ir import Barrier, Declare, Evaluate, Expr, For, Stmt, Var
from warpwright.domains.transpile.passes.variables.versions import looked_at_elsewhere

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_SIGNED = ("int", "long", "long long")
_FIXED = ("name", "member", "literal", "paren", "binary")


def apart(body: Sequence[Stmt], variables: dict[int, Var], callees: Callees) -> tuple[Stmt, ...]:
    """Return the body of a kernel in normal form with such variables as a value and a distance."""
    stmts = tuple(body)
    moved = _moved(stmts, variables)
    if not moved:
        return stmts
    facts = uniform.analyse(stmts, variables, frozenset(), callees.impure, callees.references)
    elsewhere = looked_at_elsewhere(stmts, callees.references)
    for key in sorted(moved & facts.declared.keys() - elsewhere - facts.addressed, key=lambda key: variables[key].name):
        if not _suits(variables[key], facts.declared[key], facts, variables):
            continue
        known = dict(variables)
        distance = _distance(variables[key], known)
        made = _Apart(variables[key], distance).stmts(stmts)
        if made is None:
            continue
        again = uniform.analyse(made, known, frozenset(), callees.impure, callees.references)
        if distance.key not in again.varying and key in again.declared and not again.assigned.get(key):
            variables[distance.key] = distance
            stmts = made
    return stmts


def _moved(stmts: tuple[Stmt, ...], variables: Mapping[int, Var]) -> set[int]:
    """Return the keys of what changes in a loop with a barrier of the block inside, and of pointers that change in any."""
    keys: set[int] = set()
    for stmt in ir.walk(stmts):
        if isinstance(stmt, For):
            met = any(isinstance(s, Barrier) and s.scope == "block" for s in ir.walk(stmt.body))
            changed = {key for expr in ir.expressions((stmt,)) for key in _set(expr) if key in variables}
            keys |= {key for key in changed if met or _is_pointer(variables[key])}
    return keys


def _is_pointer(var: Var) -> bool:
    return var.type.endswith("*") and "volatile" not in var.type


def _set(expr: Expr) -> set[int]:
    place = ir.assigned(expr)
    return {place.var} if place is not None and place.kind == "name" and place.var is not None else set()


def _suits(var: Var, declaration: Declare, facts: uniform.Facts, variables: Mapping[int, Var]) -> bool:
    """Is this an int, or a pointer, that differs between threads, and begins as what can be computed anew anywhere?"""
    init = declaration.init
    plain = (var.type == "int" or _is_pointer(var)) and not (var.dims or var.reference or var.const or declaration.direct)
    if not plain or var.space != "local" or init is None:
        return False
    if var.key not in facts.varying or any(n.kind not in _FIXED for n in init.walk()):
        return False
    return all(n.var is None or (n.var in variables and not facts.assigned.get(n.var) and not variables[n.var].dims) for n in init.walk())


def _distance(var: Var, variables: dict[int, Var]) -> Var:
    """Return the variable for how far all threads have moved, noted in `variables`."""
    names = {v.name for v in variables.values()}
    name = next(n for i in range(1, 10_000) if (n := f"{var.name}_moved{i if i > 1 else ''}") not in names)
    made = Var(min([0, *variables]) - 1, name, "long", (), "local", var.line)
    variables[made.key] = made
    return made


class _Refused(Exception):
    """The variable is changed in another way."""


class _Apart:
    """Writes one variable as a value and a distance."""

    def __init__(self, var: Var, distance: Var) -> None:
        self.var, self.distance, self.points = var, distance, _is_pointer(var)

    def stmts(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
        """Return the statements; None where something moves the variable by what is no int, or sets it."""
        try:
            return self.list(stmts)
        except _Refused:
            return None

    def list(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in stmts for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Declare) and stmt.var.key == self.var.key:
            zero = Expr("literal", ("0l",), stmt.line, "", None, "long")
            return (replace(stmt, var=replace(stmt.var, const=not self.points)), Declare(self.distance, zero, False, stmt.line))
        if not any(e.var == self.var.key for e in ir.expressions((stmt,))):
            return (stmt,)
        if isinstance(stmt, Evaluate):
            return (replace(stmt, expr=self.effect(stmt.expr)),)
        if isinstance(stmt, Declare):
            return (replace(stmt, init=self.value(stmt.init)),)
        if isinstance(stmt, ir.If):
            return (replace(stmt, cond=self.value(stmt.cond), then=self.list(stmt.then), other=self.list(stmt.other)),)
        if isinstance(stmt, ir.Block):
            return (replace(stmt, body=self.list(stmt.body)),)
        if isinstance(stmt, ir.DoWhile):
            return (replace(stmt, body=self.list(stmt.body), cond=self.value(stmt.cond)),)
        if isinstance(stmt, For):
            if any(isinstance(s, Declare) and s.var.key == self.var.key for s in stmt.init):
                raise _Refused  # the counter of a loop that threads leave at different times
            cond = self.value(stmt.cond) if stmt.cond is not None else None
            step = self.effect(stmt.step) if stmt.step is not None else None
            return (replace(stmt, init=self.list(stmt.init), cond=cond, step=step, body=self.list(stmt.body)),)
        raise _Refused

    def effect(self, expr: Expr) -> Expr:
        """Return an expression whose value nobody reads."""
        if expr.kind == "binary" and expr.name == ",":
            return expr.with_children([self.effect(child) for child in expr.children])
        if self.var.key not in _set(expr):
            return self.value(expr)
        if expr.kind == "unary":
            operator = f"{expr.name[0]}="
            return Expr("assign", (ir.name_of(self.distance), f" {operator} ", ir.number(1, expr.line)), expr.line, operator, None, "long")
        amount = expr.children[1]
        kinds = (*SIGNED, *UNSIGNED) if self.points else ("int",)
        whole = amount.type.removeprefix("const ") in kinds and ir.is_quiet(amount) and all(n.var != self.var.key for n in amount.walk())
        if expr.name not in ("+=", "-=") or not whole:
            raise _Refused
        wide = Expr("cast", ("(long)", ir.paren(amount)), expr.line, "", None, "long")  # -2^31 has no opposite among the ints
        return Expr("assign", (ir.name_of(self.distance), f" {expr.name} ", wide), expr.line, expr.name, None, "long")

    def value(self, expr: Expr | None) -> Expr:
        """Return an expression with the sum of value and distance for the variable: of 64 bits where that is the same, else cut to an int."""
        assert expr is not None
        return expr.map(self.changed)

    def changed(self, node: Expr) -> Expr | None:
        if self.var.key in _set(node):
            raise _Refused
        if self.points:
            return self.pointed(node)
        if node.kind == "index" and len(node.children) == 2:
            base, index = node.children
            wide = self.wide(index)
            return node.with_children([base.map(self.changed), wide if wide is not None else index.map(self.changed)])
        if node.kind == "binary" and node.name in _COMPARISONS and all(c.type.removeprefix("const ") in _SIGNED for c in node.children):
            wides = [self.wide(child) for child in node.children]
            return node.with_children([w if w is not None else c.map(self.changed) for w, c in zip(wides, node.children, strict=True)])
        if node.kind == "name" and node.var == self.var.key:
            return Expr("cast", ("(int)", self.sum(node)), node.line, "", None, "int")
        return None

    def pointed(self, node: Expr) -> Expr | None:
        """Return `*p` and `p[i]` as elements behind the pointer that stays, and the pointer elsewhere as a sum."""
        first = ir.bare(node.children[0]) if node.children else node
        at_start = node.kind == "unary" and node.name == "*"
        if (at_start or node.kind == "index") and first.kind == "name" and first.var == self.var.key:
            distance = ir.name_of(self.distance, node.line)
            if at_start:
                return Expr("index", (first, "[", distance, "]"), node.line, "", None, node.type)
            index = node.children[1].map(self.changed)
            whole = Expr("binary", (distance, " + ", ir.paren(index)), node.line, "+", None, "long")
            return Expr("index", (first, "[", whole, "]"), node.line, "", None, node.type)
        if node.kind == "name" and node.var == self.var.key:
            return replace(self.sum(node), type=self.var.type)
        return None

    def wide(self, expr: Expr) -> Expr | None:
        """Return sums, differences and products of ints with the variable in 64 bits: the same number where the ints did not overflow."""
        if expr.type.removeprefix("const ") != "int" or all(n.var != self.var.key for n in expr.walk()):
            return None
        if expr.kind == "name":
            return self.sum(expr)
        if expr.kind == "paren" and len(expr.children) == 1:
            inner = self.wide(expr.children[0])
            return replace(expr, parts=("(", inner, ")"), type="long") if inner is not None else None
        if expr.kind == "binary" and expr.name in ("+", "-", "*") and all(c.type.removeprefix("const ") == "int" for c in expr.children):
            children = [w if (w := self.wide(c)) is not None else c.map(self.changed) for c in expr.children]
            return replace(expr.with_children(children), type="long")
        return None

    def sum(self, name: Expr) -> Expr:
        whole = Expr("binary", (name, " + ", ir.name_of(self.distance, name.line)), name.line, "+", None, "long")
        return replace(ir.paren(whole), type="long")
