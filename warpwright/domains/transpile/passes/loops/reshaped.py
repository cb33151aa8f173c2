"""The threads of a block in another shape: one row of them as rows of a known width, or a sheet with its axes exchanged.

    x = t % 32, y = t / 32; s += a[y * 32 + k] * b[k * 32 + x]   ->   for (y) for (x < 32) s += a[y * 32 + k] * b[k * 32 + x]
    row = threadIdx.x, col = threadIdx.y; c[row * n + col] = ...   ->   for (row) for (col) c[row * n + col] = ...

Threads of a region run in any order, so that it may be the one in which neighbours touch neighbouring memory; the same statements are then looked at
as those of a block of that shape. A region whose statements want different shapes is cut, since each thread keeps its own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.bounds import coefficient, counting, expand, is_x
from warpwright.domains.transpile.analysis.regions import Plan, Region, changed, used
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.passes.vectors.vector_values import affine

GATHER = 8
"""What a load or store counts whose neighbours are not neighbours in memory; one that is the same for all, or moves with the thread, counts 1."""

SCATTER = 24
"""The same of a store: it takes a line of the cache for one number. (A transpose of 1,024 rows, one thread a number: 7.2 ms with scattered stores,
0.6 with gathered loads and blocks in the order of the lines that they store to.)"""

DEEPER = 8
"""How often a loop is taken to run."""

GAIN = 2
"""By how much the other shape has to be cheaper."""

NARROWEST = 8
"""Threads of a row from which a shape pays: a vector of AVX."""


@dataclass(frozen=True)
class Shape:
    """Another shape of the block, and the kernel as it looks in it."""

    condition: str
    """When the block has it, as the output writes it."""
    sizes: tuple[str, str]
    """Its width and height."""
    known: tuple[str, str] | None
    """The same where the compiler knows them if it knows the block's; None where it may not."""
    swapped: bool
    plan: Plan

    def stmts(self, stmts: Sequence[Stmt]) -> list[Stmt]:
        """Return statements as they are in the shape."""
        return [ir.map_expressions(s, self.change) for s in stmts]

    def change(self, expr: Expr) -> Expr | None:
        return _swapped(expr) if self.swapped else _in_rows(expr)


def shape(stmts: Sequence[Stmt], masks: Sequence[Expr], plan: Plan, impure: frozenset[str], constants: frozenset[str]) -> Shape | None:
    """Return the shape in which a region is cheaper, with the plan as it looks there; None where there is none.

    constants: names of what the compiler knows: parameters of the kernel's template.
    """
    looked_at = [*stmts, *map(Evaluate, masks)]
    if plan.by_reference(stmts) - {key for s in stmts for key in changed(s)} or not _may_turn(looked_at, plan, impure):
        return None
    here = cost(stmts, plan)
    if here <= GATHER:  # one place outside of loops does not pay for a second text
        return None
    inits = [d.init for d in _declarations(looked_at, plan) if d.init is not None]
    exprs = [*(e for s in ir.walk(tuple(looked_at)) for e in ir.own_expressions(s)), *inits]
    best: Shape | None = None
    for candidate in _candidates(exprs, plan, constants):
        there = cost(candidate.stmts(stmts), candidate.plan)
        if there * GAIN <= here:
            best, here = candidate, there
    return best


def goes_down(plan: Plan, impure: frozenset[str], constants: frozenset[str]) -> bool:
    """Say whether the kernel has a region without loops that is cheaper with its axes exchanged: what it stores to goes on in the block below."""
    for node in plan.nodes:
        if isinstance(node, Region) and not any(isinstance(s, For | ir.DoWhile) for s in ir.walk(tuple(node.stmts))):
            turned = shape(node.stmts, (), plan, impure, constants)
            if turned is not None and turned.swapped:
                return True
    return False


def parts(stmts: Sequence[Stmt], plan: Plan) -> list[list[Stmt]]:
    """Return a region cut into runs of statements that share no value of their own: each run is a loop over threads that may have its own shape."""
    declared = [{s.var.key for s in ir.walk((stmt,)) if isinstance(s, Declare)} - plan.arrays - plan.recomputed for stmt in stmts]
    last = {key: at for at, stmt in enumerate(stmts) for key in used([stmt])}
    cut: list[list[Stmt]] = []
    begun = reach = 0
    for at in range(len(stmts)):
        reach = max([reach, *(last[key] for key in declared[at])])
        if reach <= at:
            cut.append(list(stmts[begun : at + 1]))
            begun = at + 1
    return cut


def cost(stmts: Sequence[Stmt], plan: Plan, of_block: bool = True) -> int:
    """Return what a region's loads and stores count, those in loops more; `of_block`: also those of shared memory."""
    counters = {s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, For) for s in s.init if isinstance(s, Declare)}
    with counting(plan, counters):
        places = [place for place in _places(tuple(stmts), 0) if _is_memory(place[1], plan, of_block)]
        return sum(DEEPER**depth * _place_cost(indices, plan, stored) for depth, _, indices, stored in places)


def _is_memory(key: int, plan: Plan, of_block: bool) -> bool:
    var = plan.variables.get(key)
    return var is not None and not (var.space == "local" and var.dims) and (of_block or var.space not in ("shared", "dynamic"))


def _place_cost(indices: Sequence[Expr], plan: Plan, stored: bool) -> int:
    wholes = [expand(index, plan) for index in indices]
    steps = [coefficient(whole) if whole is not None else None for whole in wholes]
    if not any(s != 0 for s in steps[:-1]) and steps[-1] in (0, 1):
        return 1
    return SCATTER if stored and all(whole is not None and affine(whole) for whole in wholes) else GATHER


def _places(stmts: tuple[Stmt, ...], depth: int) -> Iterator[tuple[int, int, tuple[Expr, ...], bool]]:
    """Yield the depth in loops, the array's key and the indices of each element, and whether it is stored to."""
    for stmt in stmts:
        inner = depth + isinstance(stmt, For | ir.DoWhile)
        for expr in ir.own_expressions(stmt):
            inside: set[int] = set()
            stored = {id(target) for node in expr.walk() if (target := ir.assigned(node)) is not None}
            for node in expr.walk():
                if node.kind == "index" and id(node) not in inside:
                    inside |= {id(n) for n in _bases(node)}
                    if (place := tiles.element(node)) is not None:
                        yield inner, place[0], place[1], id(node) in stored
        for body in ir.bodies(stmt):
            yield from _places(body, inner)


def _bases(node: Expr) -> Iterator[Expr]:
    while node.kind == "index":
        node = node.children[0]
        yield node


def _may_turn(stmts: Sequence[Stmt], plan: Plan, impure: frozenset[str]) -> bool:
    """Say whether nothing in a region depends on the order of its threads, or looks at them where that is not seen."""
    for expr in ir.expressions(tuple(stmts)):
        if expr.kind in ("lambda", "lane") or (expr.kind == "call" and (expr.name in impure or expr.name.startswith(("atomic", "printf")))):
            return False
        if expr.kind == "other" and "thread" in ir.text_of(expr):
            return False
        if expr.kind == "name" and expr.name in ("ww_lane", "warpSize"):
            return False
    return not any(isinstance(s, ir.Raw) for s in ir.walk(tuple(stmts)))


def _declarations(stmts: Sequence[Stmt], plan: Plan) -> list[Declare]:
    """Return the declarations of what is recomputed for the statements."""
    keys = plan.closure(used(stmts)) & plan.recomputed
    return [plan.facts.declared[key] for key in keys if key in plan.facts.declared]


def _candidates(exprs: Sequence[Expr], plan: Plan, constants: frozenset[str]) -> Iterator[Shape]:
    width = _width(exprs, plan)
    if width is not None:
        text = tiles.written(width)
        condition = f"one_row && {NARROWEST} <= ({text}) && dim_x % ({text}) == 0"
        names = {n.name for n in width.walk() if n.kind == "name"}
        fixed = all(n.kind in ("literal", "name", "binary", "paren") for n in width.walk()) and names <= constants
        yield Shape(condition, (f"(int)({text})", f"dim_x / (int)({text})"), (f"({text})", f"(BX ? BX / ({text}) : 1)") if fixed else None, False,
                    _planned(plan, _in_rows))  # fmt: skip
    if any(_is_axis(n, "threadIdx", "y") for e in exprs for n in e.walk()):
        yield Shape(f"dim_y >= {NARROWEST}", ("dim_y", "dim_x"), ("BY", "BX"), True, _planned(plan, _swapped))


def _planned(plan: Plan, change: object) -> Plan:
    """Return the plan with what its values are computed from changed."""
    assert callable(change)
    declared = {key: replace(d, init=d.init.map(change)) if d.init is not None else d for key, d in plan.facts.declared.items()}
    return replace(plan, facts=replace(plan.facts, declared=declared))


def _width(exprs: Sequence[Expr], plan: Plan) -> Expr | None:
    """Return w where threads look at themselves as t % w and t / w only."""
    widths: dict[str, Expr] = {}
    for expr in exprs:
        if not _only_in_rows(expr, widths):
            return None
    if len(widths) != 1:
        return None
    (width,) = widths.values()
    hoisted = {s.var.key for s in plan.hoisted if isinstance(s, Declare)}
    if any(n.kind not in ("literal", "name", "binary", "paren", "cast", "type") or (n.var is not None and n.var not in hoisted) for n in width.walk()):  # noqa: E501
        return None
    return width if not any(n.name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for n in width.walk()) else None


def _only_in_rows(expr: Expr, widths: dict[str, Expr]) -> bool:
    form = _row_form(expr)
    if form is not None:
        widths.setdefault(tiles.written(form[1]), form[1])
        return True
    if _is_thread(expr):
        return False
    return all(_only_in_rows(child, widths) for child in expr.children)


def _row_form(expr: Expr) -> tuple[str, Expr] | None:
    """Return the axis and w of t % w, t / w, t & (w - 1) and t >> log2(w)."""
    if expr.kind != "binary" or len(expr.children) != 2 or not is_x(_index(expr.children[0])):
        return None
    right = ir.bare(expr.children[1])
    number = literal(right)
    if expr.name in ("%", "/") and number != 0:
        return ("x" if expr.name == "%" else "y"), right
    if expr.name == "&" and number is not None and number & (number + 1) == 0:
        return "x", ir.number(number + 1, expr.line)
    if expr.name == ">>" and number is not None and number < 11:
        return "y", ir.number(1 << number, expr.line)
    return None


def _index(expr: Expr) -> Expr:
    while (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and expr.type in ("int", "unsigned int", "uint")):
        expr = expr.children[-1]
    return expr


def _is_thread(expr: Expr) -> bool:
    return expr.kind == "name" and expr.name in ("threadIdx", "blockDim") and expr.var is None


def _is_axis(expr: Expr, name: str, axis: str) -> bool:
    return expr.kind == "member" and expr.name == axis and bool(expr.children) and expr.children[0].name == name and expr.children[0].var is None


def along(name: str, axis: str, line: int) -> Expr:
    """Return `threadIdx.y` or the like."""
    base = Expr("name", (name,), line, name)
    return Expr("member", (base, f".{axis}"), line, axis, None, "unsigned int")


def _in_rows(expr: Expr) -> Expr | None:
    form = _row_form(expr)
    return along("threadIdx", form[0], expr.line) if form is not None else None


def _swapped(expr: Expr) -> Expr | None:
    for name in ("threadIdx", "blockDim"):
        for axis, other in (("x", "y"), ("y", "x")):
            if _is_axis(expr, name, axis):
                return along(name, other, expr.line)
    return None
