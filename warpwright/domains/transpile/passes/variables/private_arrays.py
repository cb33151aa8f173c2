"""Arrays of a thread that are written whole before they are read move to where that is: they then need no place beyond it.

    float r[8]; for (k...) { for (i < 8) r[i] = a[...]; ... r[i] ... }   ->   for (k...) { float r[8]; for (i < 8) r[i] = a[...]; ... r[i] ... }

A product of matrices keeps a column and a row of its operands in such arrays. Left at the top they live across barriers, so that each thread has
its own in memory, loaded and stored around every step; where they stand, the compiler keeps them in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.ir import Declare, Stmt, Var
from warpwright.domains.transpile.passes.normalise import rename, renamer


def moved(body: Sequence[Stmt], variables: dict[int, Var]) -> tuple[Stmt, ...]:
    """Return the body of a kernel in normal form with each such declaration where its array is written first."""
    stmts = tuple(body)
    for stmt in stmts:
        if isinstance(stmt, Declare) and _fits(stmt, stmts):
            inside = _Mover(stmt, variables).placed(tuple(s for s in stmts if s is not stmt))
            stmts = inside if inside is not None else stmts
    return stmts


def _fits(stmt: Declare, stmts: tuple[Stmt, ...]) -> bool:
    var = stmt.var
    plain = var.space == "local" and bool(var.dims) and not var.reference and not var.const and var.type in tiles.PLAIN
    return plain and tiles.used_by_element([s for s in stmts if s is not stmt], var)


class _Mover:
    """Moves one declaration."""

    def __init__(self, declaration: Declare, variables: dict[int, Var]) -> None:
        self.var, self.variables = declaration.var, variables
        self.declaration = replace(declaration, init=None, direct=False)
        self.places = 0

    def touches(self, stmt: Stmt) -> bool:
        return any(e.var == self.var.key for e in ir.expressions((stmt,)))

    def placed(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
        """Return a list with the declaration in front of what writes the whole array, or in each list inside; None where there is no such place."""
        touching = [at for at, stmt in enumerate(stmts) if self.touches(stmt)]
        if touching and tiles.writes_whole(stmts[touching[0]], self.var):
            return self.declared(stmts, touching[0])
        changed = list(stmts)
        for at in touching:
            inside = self.inside(stmts[at])
            if inside is None:
                return None
            changed[at] = inside
        return tuple(changed)

    def declared(self, stmts: tuple[Stmt, ...], at: int) -> tuple[Stmt, ...]:
        """Return a list with the declaration at a place; an array of its own where another list has it already."""
        self.places += 1
        if self.places == 1:
            return (*stmts[:at], self.declaration, *stmts[at:])
        names = {v.name for v in self.variables.values()}
        name = next(n for i in range(2, 10_000) if (n := f"{self.var.name}_{i}") not in names)
        own = replace(self.var, key=min([0, *self.variables]) - 1, name=name)
        self.variables[own.key] = own
        renamed: dict[int, Var | ir.Expr] = {self.var.key: own}
        change = renamer(renamed, {})
        after = tuple(rename(s, change, renamed) for s in stmts[at:])
        return (*stmts[:at], replace(self.declaration, var=own), *after)

    def inside(self, stmt: Stmt) -> Stmt | None:
        """Return a statement with the declaration in the lists inside it; None where its own head uses the array."""
        if any(e.var == self.var.key for own in ir.own_expressions(stmt) for e in own.walk()):
            return None
        if isinstance(stmt, ir.If):
            then, other = self.placed(stmt.then), self.placed(stmt.other)
            return None if then is None or other is None else replace(stmt, then=then, other=other)
        if isinstance(stmt, ir.For) and any(self.touches(s) for s in stmt.init):
            return None
        if isinstance(stmt, ir.For | ir.Block | ir.DoWhile) and (body := self.placed(stmt.body)) is not None:
            return replace(stmt, body=body)
        return None
