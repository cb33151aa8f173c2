"""Memory in which a thread accumulates becomes a local value: `y[i] = 0; for (k...) y[i] += a[...];` loads and stores y[i] once.

It may when y is a `__restrict__` parameter, i is the same all along, and nothing else touches y on the way: no thread may look at y[i] before the
next barrier. With the sum in a register, the loop over threads around it can be vectorised.

Before that, `for (k...) if (c) ...` with a c that the loop does not change becomes `if (c) for (k...) ...`, and neighbours under the same c share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import changed, jumps
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.ir import Barrier, Collective, Declare, Evaluate, Expr, For, If, Stmt, Var

_TYPES = ("float", "double", "int", "unsigned int")


def kept(body: Sequence[Stmt], variables: dict[int, Var]) -> tuple[Stmt, ...]:
    """Return the body of a kernel in normal form with such places kept in new variables."""
    return _Keeper(variables).stmts(_guards_outside(tuple(body)))


# --- guards ---------------------------------------------------------------------------------------------------------------------------


def _guards_outside(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements with unchanging guards around loops, and neighbours under one guard together."""
    hoisted: list[Stmt] = []
    for stmt in stmts:
        inner = _hoisted(stmt)
        last = hoisted[-1] if hoisted else None
        if isinstance(inner, If) and isinstance(last, If) and _same_guard(last, inner):
            hoisted[-1] = replace(last, then=_guards_outside((*last.then, *inner.then)))
        else:
            hoisted.append(inner)
    return tuple(hoisted)


def _hoisted(stmt: Stmt) -> Stmt:
    if isinstance(stmt, If):
        return replace(stmt, then=_guards_outside(stmt.then), other=_guards_outside(stmt.other))
    if not isinstance(stmt, For):
        return stmt
    loop = replace(stmt, body=_guards_outside(stmt.body))
    if len(loop.body) != 1 or not isinstance(guard := loop.body[0], If) or not _is_plain(guard) or not _is_quiet(loop):
        return loop
    if {n.var for n in guard.cond.walk()} & changed(loop):
        return loop
    return replace(guard, then=(_hoisted(replace(loop, body=guard.then)),), line=guard.line, comment="")


def _is_plain(guard: If) -> bool:
    """Is this an `if` without else, whose condition reads no memory?"""
    return not (guard.other or guard.constexpr or guard.exits or guard.comment) and _is_pure(guard.cond)


def _is_pure(expr: Expr) -> bool:
    return ir.is_quiet(expr) and not any(n.kind == "other" for n in expr.walk())


def _is_quiet(loop: For) -> bool:
    """Does the loop's head change nothing but its own counter, and read no memory?"""
    if len(loop.init) != 1 or not isinstance(counter := loop.init[0], Declare) or counter.init is None or loop.cond is None or loop.step is None:
        return False
    if not _is_pure(counter.init) or not _is_pure(loop.cond) or not loop.step.children or loop.step.children[0].var != counter.var.key:
        return False
    return all(_is_pure(c) for c in loop.step.children) and not any(jumps(s) for s in loop.body)


def _same_guard(one: If, other: If) -> bool:
    if not (_is_plain(one) and _is_plain(other)) or ir.text_of(one.cond) != ir.text_of(other.cond):
        return False
    if [n.var for n in one.cond.walk()] != [n.var for n in other.cond.walk()]:
        return False
    return not {n.var for n in one.cond.walk()} & {key for s in one.then for key in changed(s)}


# --- places ---------------------------------------------------------------------------------------------------------------------------


class _Keeper:
    def __init__(self, variables: dict[int, Var]) -> None:
        self.variables = variables

    def stmts(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements of one list, cut where threads meet or something unknown is called."""
        replaced: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in stmts:
            if _is_known(stmt):
                run.append(stmt)
                continue
            replaced += [*self.run(run), self.inside(stmt)]
            run = []
        return (*replaced, *self.run(run))

    def inside(self, stmt: Stmt) -> Stmt:
        """Return a statement with the lists inside it changed."""
        if isinstance(stmt, If):
            return replace(stmt, then=self.stmts(stmt.then), other=self.stmts(stmt.other))
        return replace(stmt, body=self.stmts(stmt.body)) if isinstance(stmt, For | ir.Block) else stmt

    def run(self, stmts: list[Stmt]) -> list[Stmt]:
        for place in self.places(stmts):
            stmts = self.replaced(stmts, place)
        return [self.inside(s) for s in stmts]

    def places(self, stmts: list[Stmt]) -> list[Expr]:
        """Return the places that are stored to by a statement of the list, and again in a loop after it."""
        stored: dict[int, Expr] = {}
        for at, stmt in enumerate(stmts):
            place = _stored(stmt)
            if place is None or (key := place.children[0].var) is None or key in stored or not self.fits(place):
                continue
            after = [inner for later in stmts[at + 1 :] if isinstance(later, For) for inner in ir.walk((later,))]
            if any(_stores(inner, key) for inner in after) and _only(stmts, place, at):
                stored[key] = place
        return list(stored.values())

    def fits(self, place: Expr) -> bool:
        base, index = place.children
        var = self.variables.get(base.var or 0)
        return var is not None and var.space == "parameter" and "__restrict" in var.type and place.type in _TYPES and _is_pure(index)

    def replaced(self, stmts: list[Stmt], place: Expr) -> list[Stmt]:
        key = place.children[0].var or 0
        var = self.fresh(place)
        name = ir.name_of(var, place.line)
        change: Callable[[Expr], Expr | None] = lambda node: name if node.kind == "index" and node.children[0].var == key else None  # noqa: E731
        first = next(i for i, s in enumerate(stmts) if (p := _stored(s)) is not None and p.children[0].var == key)
        last = max(i for i, s in enumerate(stmts) if any(n.var == key for n in ir.expressions((s,))))
        begun = stmts[first]
        assert isinstance(begun, Evaluate)
        start = Declare(var, begun.expr.children[1], False, begun.line, begun.comment)
        back = Evaluate(Expr("assign", (place, " = ", name), place.line, "=", None, place.type), stmts[last].line)
        return [*stmts[:first], start, *(ir.map_expressions(s, change) for s in stmts[first + 1 : last + 1]), back, *stmts[last + 1 :]]

    def fresh(self, place: Expr) -> Var:
        names = {v.name for v in self.variables.values()}
        base = f"{self.variables[place.children[0].var or 0].name}_kept"
        name = next(n for i in range(1, 10_000) if (n := f"{base}{i if i > 1 else ''}") not in names)
        var = Var(min([0, *self.variables]) - 1, name, place.type, (), "local", place.line)
        self.variables[var.key] = var
        return var


def _is_known(stmt: Stmt) -> bool:
    """Say whether a statement neither meets other threads, nor leaves, nor calls what may touch memory."""
    if any(isinstance(s, Barrier | Collective | ir.Raw | ir.Return | ir.Jump) for s in ir.walk((stmt,))):
        return False
    return all(
        e.kind not in ("lambda", "other", "lane") and (e.kind != "call" or e.name in PURE_CALLS or e.name.startswith("make_"))
        for e in ir.expressions((stmt,))
    )


def _stored(stmt: Stmt) -> Expr | None:
    """Return the `y[i]` of `y[i] = value;`."""
    if not isinstance(stmt, Evaluate) or stmt.expr.kind != "assign" or stmt.expr.name != "=":
        return None
    place = stmt.expr.children[0]
    return place if place.kind == "index" and len(place.children) == 2 and place.children[0].kind == "name" else None


def _stores(stmt: Stmt, key: int) -> bool:
    place = _stored(stmt)
    if place is None and isinstance(stmt, Evaluate) and (target := ir.assigned(stmt.expr)) is not None and target.kind == "index":
        place = target
    return place is not None and place.children[0].var == key


def _only(stmts: list[Stmt], place: Expr, at: int) -> bool:
    """Say whether the array is touched at this place only, from the statement `at` on, which does not read it, and the place stays the same."""
    key, text = place.children[0].var, ir.text_of(place.children[1])
    names = [n.var for n in place.children[1].walk()]
    for position, stmt in enumerate(stmts):
        if position < at and any(e.var == key for e in ir.expressions((stmt,))):
            return False
        uses = [e for e in ir.expressions((stmt,)) if e.kind == "index" and e.children[0].var == key]
        if len(uses) != sum(e.var == key for e in ir.expressions((stmt,))) or (position == at and len(uses) != 1):
            return False
        if any(ir.text_of(e.children[1]) != text or [n.var for n in e.children[1].walk()] != names for e in uses):
            return False
    return not {n for n in names if n is not None} & {k for s in stmts[at:] for k in changed(s)}
