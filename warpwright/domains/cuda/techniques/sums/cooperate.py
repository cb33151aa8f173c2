"""One thread for a row -> the threads of a warp, or of a block, for a row: they take turns in its loops and join what they found.

    for (j = 0; j < n; ++j) s += x[i * n + j];     ->     for (j = lane; j < n; j += 32) part += x[i * n + j];  s += sum of the lanes' parts;

Neighbouring threads then read neighbouring elements, and there are as many times more threads. Sums are formed in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Raw, Stmt
from warpwright.errors import NotApplicable
from warpwright.space import Traits

TEAMS = (32, 128, 512)
"""Threads for a row: a warp, or a block of so many."""


class Cooperate:
    """A kernel with one thread a row -> a warp or a block a row."""

    name = "cooperate"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the team sizes for each kernel that has a loop to share out."""
        for kernel, _ in plan.matching(lambda plan, kernel: _rewritten(plan, kernel, 32)):
            yield from (Action(self.name, kernel, (("threads", team),)) for team in TEAMS)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with a team for each row."""
        team = dict(action.params).get("threads")
        expect(team in TEAMS, f"threads of {TEAMS}", str(team))
        return plan.then(_rewritten(plan, action.at, int(team)), self.name, action.at)  # type: ignore[arg-type]


def _rewritten(plan: Plan, name: str, team: int) -> str:
    plain = shape.plain(plan, name)
    expect(plain is not None and set(plain.indices.values()) == {"x"} and len(plain.indices) == 1, f"{name} with one index along x")
    assert plain is not None
    worker = _Team(plain, team)
    body = worker.block(plain.body)
    expect(worker.shared_out > 0, "a loop whose turns may be shared out")
    [index] = plain.indices
    var = plain.var(index)
    prelude: list[Stmt] = []
    for stmt in plain.prelude:
        if isinstance(stmt, Declare) and stmt.var.key == index:
            init = "blockIdx.x" if team > 32 else "(blockIdx.x * blockDim.x + threadIdx.x) / 32"
            prelude.append(replace(stmt, init=Expr("other", (init,))))
            prelude.append(_raw(f"const int ww_lane = threadIdx.x{' % 32' if team == 32 else ''};"))
        else:
            prelude.append(stmt)
    guarded = [If(plain.guard, tuple(body))] if plain.guard is not None else list(body)
    text = write.kernel(plain.head, plain.function, [*prelude, *guarded])
    changes = [Edit(plain.kernel.start, plain.kernel.end, text), *_launches(plain, team)]
    del var
    return helpers.with_helpers(plain.unit.changed(changes), worker.needed)


def _launches(plain: Plain, team: int) -> list[Edit]:
    """Return edits that launch a team in place of each thread."""
    changes = []
    for launch in plain.unit.launches_of(plain.kernel.name):
        grid, block, *rest = launch.configuration
        threads = f"ww_threads({grid}, {block})"
        blocks = f"(unsigned)(({threads} * 32 + 255) / 256)" if team == 32 else f"(unsigned){threads}"
        new = f"dim3({blocks}, ww_copies({grid}, {block})), {256 if team == 32 else team}"
        changes.append(Edit(*launch.inside, ", ".join([new, *rest])))
    return changes


def _raw(text: str) -> Raw:
    return Raw(Expr("other", (text,)))


@dataclass
class _Sum:
    """How a variable gathers the turns of a loop."""

    var: ir.Var
    operation: str
    """sum, max, min or product."""


class _Team:
    """Shares the loops of a row's statements out."""

    def __init__(self, plain: Plain, team: int) -> None:
        self.plain, self.team = plain, team
        self.needed: set[str] = {"threads", "copies"}
        self.shared_out = 0
        self.parts = 0

    @property
    def meet(self) -> str:
        """What stands behind a write that others of the team may read."""
        return "__syncwarp();" if self.team == 32 else "__syncthreads();"

    def block(self, stmts: tuple[Stmt, ...]) -> list[Stmt]:
        written: list[Stmt] = []
        for number, stmt in enumerate(stmts):
            replacement, stores = self.statement(stmt)
            written += replacement
            if stores and number + 1 < len(stmts):
                written.append(_raw(self.meet))
        return written

    def statement(self, stmt: Stmt) -> tuple[list[Stmt], bool]:
        """Return a row's statement as a team does it, and whether it writes memory that later statements may read."""
        if isinstance(stmt, Declare):
            expect(not stmt.init or not any(shape.stores([Evaluate(stmt.init)])), "declarations without effect")
            return [stmt], False
        if isinstance(stmt, Evaluate):
            return self.once(stmt)
        if isinstance(stmt, If):
            then, other = self.block(stmt.then), self.block(stmt.other)
            writes = any(True for _ in shape.stores([stmt]))
            return [replace(stmt, then=tuple(then), other=tuple(other))], writes
        if isinstance(stmt, ir.Block):
            return [replace(stmt, body=tuple(self.block(stmt.body)))], any(True for _ in shape.stores([stmt]))
        if isinstance(stmt, For):
            return self.loop(stmt)
        raise NotApplicable(f"expected declarations, assignments, branches and loops, saw a {type(stmt).__name__}")

    def once(self, stmt: Evaluate) -> tuple[list[Stmt], bool]:
        """What touches memory is done by the first of the team alone; what changes local values by all of it."""
        writes = any(True for _ in shape.stores([stmt])) or any(e.kind == "call" and e.name.startswith("atomic") for e in stmt.expr.walk())
        if not writes:
            return [stmt], False
        changed = [c for e in stmt.expr.walk() if (c := ir.assigned(e)) is not None]
        expect(not any(map(shape.is_local, changed)), "stores that change no local variable besides")
        first = Expr("other", ("ww_lane == 0",))
        return [If(first, (stmt,))], True

    def loop(self, stmt: For) -> tuple[list[Stmt], bool]:
        sums = gathered(stmt, self.plain)
        if sums is None:  # each of the team runs the whole loop, on its own copies; inside may be loops that can be shared out
            writes = any(True for _ in shape.stores([stmt]))
            expect(not writes or shape.counted(stmt) is not None, "a loop that can be shared out, or writes no memory")
            inner = self.block(stmt.body)
            return [replace(stmt, body=(*inner, *([_raw(self.meet)] if writes else [])))], writes
        self.shared_out += 1
        head = shape.counted(stmt)
        assert head is not None
        before: list[Stmt] = []
        after: list[Stmt] = []
        renamed: dict[int, ir.Var] = {}
        for one in sums:
            kind, scope = one.var.type, "warp" if self.team == 32 else "block"
            call = helpers.reducer(scope, one.operation, kind)
            self.needed.add(call)
            if one.operation in ("max", "min"):
                after.append(_raw(f"{one.var.name} = {call}({one.var.name});"))
                continue
            part = replace(one.var, name=f"ww_part{self.parts or ''}_{one.var.name}", key=-1000 - self.parts)
            self.parts += 1
            renamed[one.var.key] = part
            before.append(_raw(f"{kind} {part.name} = {'1' if one.operation == 'product' else '0'};"))
            sign = "*" if one.operation == "product" else "+"
            after.append(_raw(f"{one.var.name} = {one.var.name} {sign} {call}({part.name});"))

        def rename(expr: Expr) -> Expr | None:
            part = renamed.get(expr.var) if expr.kind == "name" and expr.var is not None else None
            return Expr("other", (part.name,), expr.line, "", None, expr.type) if part is not None else None

        body = tuple(ir.map_expressions(s, rename) for s in stmt.body)
        first = stmt.init[0]
        assert isinstance(first, Declare)
        start = replace(first, init=Expr("other", (head.start, " + ww_lane")))
        step = Expr("other", (f"{head.counter.name} += {self.team}",))
        shared = replace(stmt, init=(start,), step=step, body=body)
        return [*before, shared, *after], any(True for _ in shape.stores([stmt]))


def gathered(loop: For, plain: Plain) -> list[_Sum] | None:
    """Return the variables that gather a loop's turns, where the turns are independent otherwise; None where they are not."""
    head = shape.counted(loop)
    if head is None:
        return None
    inside = shape.declared_in(loop.body)
    depends = shape.closure(loop.body, {head.counter.key})
    sums: dict[int, _Sum] = {}
    gathering: set[int] = set()
    for stmt in ir.walk(loop.body):
        if isinstance(stmt, If) and (one := _extreme(stmt, inside)) is not None:
            if not _joined(sums, one):
                return None
            gathering |= {id(e) for e in (*stmt.cond.walk(), *(n for s in stmt.then for x in ir.own_expressions(s) for n in x.walk()))}
            continue
        for whole in ir.own_expressions(stmt):
            for node in whole.walk():
                changed = ir.assigned(node)
                if node.kind == "call" and node.name.startswith("atomic"):
                    continue
                if changed is None or id(node) in gathering:
                    continue
                root = ir.target(changed)
                if root is None or root.var is None:
                    return None
                if shape.is_local(changed):
                    if root.var in inside or root.var == head.counter.key:
                        continue
                    one = _gathers(node, changed)
                    if one is None or not _joined(sums, one):
                        return None
                    gathering |= {id(n) for n in (changed, *_own_uses(node, root.var))}
                elif not _own_place(changed, head, depends, loop, root.var):
                    return None
    for stmt in ir.walk(loop.body):  # what gathers is not looked at before the loop has ended
        for whole in ir.own_expressions(stmt):
            for node in whole.walk():
                if node.kind == "name" and node.var in sums and id(node) not in gathering:
                    return None
    return list(sums.values())


def _joined(sums: dict[int, _Sum], one: _Sum) -> bool:
    """Add a sum; False where its variable gathers in another way already."""
    if one.var.key in sums and sums[one.var.key].operation != one.operation:
        return False
    sums[one.var.key] = one
    return one.var.type in helpers.TYPES and not one.var.dims


def _own_uses(node: Expr, key: int) -> list[Expr]:
    return [n for n in node.walk() if n.kind == "name" and n.var == key]


def _gathers(node: Expr, changed: Expr) -> _Sum | None:
    """Return what `s += e`, `s = s + e`, `s = fmaxf(s, e)` and the like gather."""
    bare = ir.bare(changed)
    if bare.kind != "name" or bare.var is None or node.kind != "assign":
        return None
    var = ir.Var(bare.var, bare.name, _scalar(bare.type))
    value = ir.bare(node.children[1])
    uses = _own_uses(node.children[1], bare.var)
    if node.name in ("+=", "-=") and not uses:
        return _Sum(var, "sum")
    if node.name == "*=" and not uses:
        return _Sum(var, "product")
    if node.name != "=" or len(uses) != 1:
        return None
    if value.kind == "binary" and value.name in ("+", "*") and any(ir.bare(c).var == bare.var for c in value.children):
        return _Sum(var, "sum" if value.name == "+" else "product")
    extreme = value.kind == "call" and value.name in ("fmaxf", "fmax", "max", "fminf", "fmin", "min")
    if extreme and any(ir.bare(c).var == bare.var for c in value.children[1:]):
        return _Sum(var, "max" if "max" in value.name else "min")
    if value.kind == "call" and value.name in ("fmaf", "fma") and len(value.children) == 4 and ir.bare(value.children[3]).var == bare.var:
        return _Sum(var, "sum")
    return None


def _extreme(stmt: If, inside: set[int]) -> _Sum | None:
    """Return what `if (e > m) m = e;` gathers."""
    cond = ir.bare(stmt.cond)
    if stmt.other or len(stmt.then) != 1 or not isinstance(then := stmt.then[0], Evaluate) or cond.kind != "binary" or cond.name not in "<>":
        return None
    assign = ir.bare(then.expr)
    if assign.kind != "assign" or assign.name != "=" or ir.bare(assign.children[0]).kind != "name":
        return None
    name, value = ir.bare(assign.children[0]), assign.children[1]
    left, right = cond.children
    if name.var is None or name.var in inside or name.var in value.keys:
        return None
    if ir.bare(right).var == name.var and ir.text_of(left) == ir.text_of(value):
        operation = "max" if cond.name == ">" else "min"
    elif ir.bare(left).var == name.var and ir.text_of(right) == ir.text_of(value):
        operation = "max" if cond.name == "<" else "min"
    else:
        return None
    return _Sum(ir.Var(name.var, name.name, _scalar(name.type)), operation)


def _scalar(spelled: str) -> str:
    return spelled.removeprefix("const ").strip()


def _own_place(changed: Expr, head: shape.Counted, depends: set[int], loop: For, array: int) -> bool:
    """Is an element that a turn writes its own: does its place move with the counter, and does no turn touch another place of that array?"""
    bare = ir.bare(changed)
    if bare.kind != "index":
        return False
    place = ir.text_of(bare.children[1])
    if not moves(bare.children[1], head.counter.key, depends):
        return False
    for stmt in ir.walk(loop.body):
        for whole in ir.own_expressions(stmt):
            for node in whole.walk():
                if node.kind == "index" and (root := ir.target(node)) is not None and root.var == array and ir.text_of(node.children[1]) != place:
                    return False
                if node.kind == "name" and node.var == array and not any(
                    n.kind == "index" and n.children[0] is not None and node in n.children[0].walk() for n in whole.walk()
                ):
                    return False
    return True


def moves(place: Expr, counter: int, depends: set[int]) -> bool:
    """Is a place `a + j` or `a + j * b`, with a and b the same in all turns, so that no two turns have the same?"""
    place = ir.bare(place)
    if place.kind == "name":
        return place.var == counter
    if place.kind == "cast":
        return moves(place.children[-1], counter, depends)
    if place.kind != "binary" or len(place.children) != 2:
        return False
    left, right = place.children
    fixed = [not (side.keys & depends) and counter not in side.keys for side in (left, right)]
    if place.name == "+" and any(fixed):
        return moves(right if fixed[0] else left, counter, depends)
    if place.name == "-" and fixed[1]:
        return moves(left, counter, depends)
    if place.name == "*" and any(fixed):  # by a stride: sizes are not zero where there is more than one turn
        return moves(right if fixed[0] else left, counter, depends)
    return False
