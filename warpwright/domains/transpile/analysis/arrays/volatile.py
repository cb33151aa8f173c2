"""Shared memory that is volatile, though barriers stand wherever threads read what others write: it is then memory like any other.

`volatile` in shared memory is as a rule a sign of code that relies on warps in lockstep (lockstep.py), which only fibers can run, step by
step. Programs also write it beside barriers. What is between two barriers is looked at here: where no thread reads, at another index than it
wrote itself, what is written there, and none writes, at another index, what is read there, no order of the threads can be seen, and
`volatile` is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.synchronisation import BLOCK_VOTES
from warpwright.domains.transpile.ir import Expr, Function, Stmt, Var

_BARRIERS = frozenset(["__syncthreads", "__syncwarp", *BLOCK_VOTES])
_POINTERS = -1
"""The array that all pointers of the parameters may point to."""


class _Relies(Exception):
    """The function may count on an order that no barrier gives."""


@dataclass(frozen=True)
class _Place:
    """An element of an array, as it is written, with the variables in it. Without a text: any."""

    array: int
    text: str
    keys: frozenset[int]


@dataclass(frozen=True)
class _Seen:
    """What has happened since the last barrier, on any way to here."""

    reads: frozenset[_Place] = frozenset()
    writes: frozenset[_Place] = frozenset()
    own: frozenset[_Place] = frozenset()
    """What this thread wrote last in each array, on all ways."""

    def __or__(self, other: _Seen) -> _Seen:
        return _Seen(self.reads | other.reads, self.writes | other.writes, self.own & other.own)


def ordered(function: Function) -> Function:
    """Return a function whose volatile shared memory is not volatile any more where barriers order all that threads exchange; else itself."""
    variables = function.variables or {}
    volatile = [var for var in variables.values() if "volatile" in var.type and (var.space in ("shared", "dynamic") or "*" in var.type)]
    parameters = {var.key for var in function.parameters}
    if not volatile or function.problem or any(var.space not in ("shared", "dynamic") and var.key not in parameters for var in volatile):
        return function
    arrays = {var.key: var.key if var.space in ("shared", "dynamic") else _POINTERS for var in volatile}
    anything = _Place(_POINTERS, "", frozenset())
    entry = _Seen(writes=frozenset([anything])) if _POINTERS in arrays.values() else _Seen()  # by the caller
    try:
        _Walk(arrays).through(function.body, entry)
    except _Relies:
        return function
    plain = {key: _plain(var) if key in arrays else var for key, var in variables.items()}
    return replace(
        function, variables=plain, parameters=tuple(plain.get(var.key, var) for var in function.parameters), body=_declared(function.body, plain)
    )


def _plain(var: Var) -> Var:
    return replace(var, type=" ".join(var.type.replace("volatile", " ").split()))


def _declared(stmts: Sequence[Stmt], variables: dict[int, Var]) -> tuple[Stmt, ...]:
    """Return the statements with the variables that they declare as they are now."""
    return tuple(_redeclared(stmt, variables) for stmt in stmts)


def _redeclared(stmt: Stmt, variables: dict[int, Var]) -> Stmt:
    if isinstance(stmt, ir.Declare):
        return replace(stmt, var=variables.get(stmt.var.key, stmt.var))
    if isinstance(stmt, ir.If):
        return replace(stmt, then=_declared(stmt.then, variables), other=_declared(stmt.other, variables))
    if isinstance(stmt, ir.For):
        return replace(stmt, init=_declared(stmt.init, variables), body=_declared(stmt.body, variables))
    return replace(stmt, body=_declared(stmt.body, variables)) if isinstance(stmt, ir.Block | ir.DoWhile) else stmt


class _Walk:
    """Goes through a function, statement by statement, as a thread does."""

    def __init__(self, arrays: dict[int, int]) -> None:
        self.arrays = arrays
        self.left: list[_Seen] = []
        """What was seen where a thread leaves a loop before its end."""

    def through(self, stmts: Iterable[Stmt], seen: _Seen) -> _Seen:
        for stmt in stmts:
            seen = self.statement(stmt, seen)
        return seen

    def statement(self, stmt: Stmt, seen: _Seen) -> _Seen:
        if isinstance(stmt, ir.If):
            seen = self.expression(stmt.cond, seen)
            return self.through(stmt.then, seen) | self.through(stmt.other, seen)
        if isinstance(stmt, ir.For | ir.DoWhile):
            return self.loop(stmt, seen)
        if isinstance(stmt, ir.Block):
            return self.through(stmt.body, seen)
        if isinstance(stmt, ir.Jump | ir.Return):
            for expr in ir.own_expressions(stmt):
                seen = self.expression(expr, seen)
            self.left.append(seen)
            return seen
        if isinstance(stmt, ir.Raw) and any(node.var in self.arrays for node in stmt.expr.walk()):
            raise _Relies
        for expr in ir.own_expressions(stmt):
            seen = self.expression(expr, seen)
        return self.changed(seen, frozenset([stmt.var.key])) if isinstance(stmt, ir.Declare) else seen

    def loop(self, loop: ir.For | ir.DoWhile, seen: _Seen) -> _Seen:
        """Go through a loop twice: what happens in a turn may meet what happens in the next."""
        if loop.cond is not None and any(node.var in self.arrays for node in loop.cond.walk()):
            raise _Relies  # it may wait for another thread
        outside, self.left = self.left, []
        if isinstance(loop, ir.For):
            seen = self.through(loop.init, seen)
        for _ in range(2):
            before = seen
            parts = [loop.cond] if isinstance(loop, ir.For) else []
            for expr in parts:
                seen = self.expression(expr, seen) if expr is not None else seen
            seen = self.through(loop.body, seen)
            for expr in (loop.step if isinstance(loop, ir.For) else loop.cond,):
                seen = self.expression(expr, seen) if expr is not None else seen
            for one in self.left:
                seen |= one
            seen |= before
        self.left = [*outside, *self.left]
        return seen

    def expression(self, expr: Expr, seen: _Seen) -> _Seen:
        """Take what an expression reads, then what it writes, then the variables that it changes."""
        if any(node.kind == "call" and node.name in _BARRIERS for node in expr.walk()):
            if any(node.var in self.arrays for node in expr.walk()):
                raise _Relies
            return _Seen()
        arrays = frozenset(self.arrays[key] for node in expr.walk() if node.kind == "call" for key in self.handed(node))
        if arrays:
            return self.called(expr, arrays, seen)
        reads: list[_Place] = []
        writes: list[_Place] = []
        self.accesses(expr, reads, writes)
        for place in reads:
            if place not in seen.own and any(other.array == place.array for other in seen.writes):
                raise _Relies
        seen = replace(seen, reads=seen.reads | frozenset(reads))
        for place in writes:
            if not place.text or any(other.array == place.array and other != place for other in seen.reads):
                raise _Relies
            own = frozenset(other for other in seen.own if other.array != place.array) | {place}
            seen = replace(seen, writes=seen.writes | {place}, own=own)
        return self.changed(seen, expr.changes)

    def handed(self, call: Expr) -> list[int]:
        """Return the arrays that a call hands on."""
        return [bare.var for child in call.children if (bare := ir.bare(child)).kind == "name" and bare.var in self.arrays and bare.var is not None]

    def called(self, expr: Expr, arrays: frozenset[int], seen: _Seen) -> _Seen:
        """Take a call of a function that is looked at by itself, as if its arrays had been written before."""
        if any(node.var in self.arrays and self.arrays[node.var] not in arrays for node in expr.walk() if node.var is not None):
            raise _Relies
        if sum(node.var in self.arrays for node in expr.walk()) > len(arrays) or any(place.array in arrays for place in seen.reads):
            raise _Relies
        anything = frozenset(_Place(array, "", frozenset()) for array in arrays)
        own = frozenset(place for place in seen.own if place.array not in arrays)
        return self.changed(_Seen(seen.reads | anything, seen.writes | anything, own), expr.changes)

    def changed(self, seen: _Seen, keys: frozenset[int]) -> _Seen:
        """Forget which elements are meant by an index whose variables change."""
        loose = lambda places: frozenset(_Place(p.array, "", frozenset()) if p.keys & keys else p for p in places)  # noqa: E731
        return _Seen(loose(seen.reads), loose(seen.writes), frozenset(p for p in seen.own if not p.keys & keys)) if keys else seen

    def accesses(self, expr: Expr, reads: list[_Place], writes: list[_Place]) -> None:
        """Collect the elements that an expression reads and writes."""
        changed = ir.assigned(expr)
        if changed is not None and (place := self.place(changed)) is not None:
            self.inside(changed, reads, writes)
            if expr.name != "=":
                reads.append(place)
            writes.append(place)
            for child in expr.children[1:]:
                self.accesses(child, reads, writes)
        elif (place := self.place(expr)) is not None:
            self.inside(expr, reads, writes)
            reads.append(place)
        elif expr.kind == "name" and expr.var in self.arrays:
            raise _Relies  # its address goes somewhere
        else:
            for child in expr.children:
                self.accesses(child, reads, writes)

    def place(self, expr: Expr) -> _Place | None:
        """Return the element that an expression is, if it is one of such an array."""
        if expr.kind not in ("index", "member") or (root := ir.target(expr)) is None or root.var is None or root.var not in self.arrays:
            return None
        return _Place(self.arrays[root.var], ir.text_of(expr), frozenset(node.var for node in expr.walk() if node.var is not None) - {root.var})

    def inside(self, place: Expr, reads: list[_Place], writes: list[_Place]) -> None:
        """Collect what the indices of an element read."""
        if place.kind == "index":
            self.accesses(place.children[-1], reads, writes)
        if place.kind in ("index", "member", "paren") and place.children and place.children[0].kind != "name":
            self.inside(place.children[0], reads, writes)
