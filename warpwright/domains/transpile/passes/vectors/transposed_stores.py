"""Transposed stores: threads that take a float4 apart, and store its numbers to four places that go on from one thread to another.

    const float4 four = p[t]; s[4 * (t % 2)][t / 2] = four.x; s[4 * (t % 2) + 1][t / 2] = four.y; ... .z; ... .w;
    ->   for each 16 threads, here every second one: 16 of p are exchanged in registers and stored as four vectors

That is how products of matrices bring their left factor into shared memory. (128 x 8 of them by 256 threads, AVX-512: 1.6 us by threads, 0.3 so.)
Which threads store side by side depends on numbers that the output's compiler knows: it computes the places of all threads of the block.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import Plan, jumps, used
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.passes.vectors import repeated, thread_places
from warpwright.domains.transpile.printing import Printer

MEMBERS = "xyzw"
LOADS = frozenset(["__ldg", "__ldca", "__ldcg", "__ldcs", "make_float4"])


@dataclass(frozen=True)
class Stores:
    """Four numbers of each thread, and where they go."""

    stmts: tuple[Stmt, ...]
    """As they were: the declaration, if it stands here, and the four stores."""
    four: int
    """Key of the float4."""
    declared: Declare | None
    """Its declaration; None where it lives in an array of all threads."""
    places: tuple[tuple[str, Expr], ...]
    """Member -> where it goes, in the order of the stores."""
    moves: tuple[str, ...]
    """What each place is as a function of threadIdx.x, but for a constant."""
    loop: For | None = None
    """The loop of all threads that they stand in."""
    again: tuple[Declare, ...] = ()
    """Declarations of what the region has computed before and is computed here again."""

    @property
    def whole(self) -> list[Stmt]:
        """The stores as a region."""
        return [*self.again, *self.stmts]

    def apart(self) -> str:
        """Return how many threads apart are those that store side by side, as the output computes it; 0 where none do."""
        return f"ww::stored_apart(BX, {', '.join(map(thread_places.function, self.moves))})"

    def lines(self, plan: Plan, printer: Printer, values: Sequence[str]) -> list[str]:
        """Return the loops over vectors of threads. values: declarations of what is recomputed for a thread."""
        var = plan.variables[self.four]
        value = printer.expr(self.declared.init) if self.declared is not None and self.declared.init is not None else f"{var.name}_t[thread]"
        number = "[[maybe_unused]] const int thread = (thread_z * dim_y + thread_y) * dim_x + thread_x;"
        own = " ".join([number, *values, *(f"{printer.declaration(one)};" for one in self.again)])
        stores = " ".join(f"ww::store(&{printer.expr(place)}, fours[{MEMBERS.index(member)}]);" for member, place in self.places)
        return [
            f"constexpr int apart = {self.apart()};",
            *((printer.loop_head(self.loop),) if self.loop is not None else ()),
            "for (int thread_z = 0; thread_z < dim_z; ++thread_z)",
            "for (int thread_y = 0; thread_y < dim_y; ++thread_y)",
            "for (int first_lane = 0; first_lane < dim_x; first_lane += apart * ww::width)",
            f"for (int nth_lane = 0; nth_lane < apart; ++nth_lane) {{  // line {self.stmts[0].line}",
            "  ww::floats fours[4];",
            f"  ww::load_fours<apart>([&](const int thread_x) -> float4 {{ {own} return {value}; }}, first_lane + nth_lane, fours);",
            f"  [[maybe_unused]] const int thread_x = first_lane + nth_lane; {own}",
            f"  {stores}",
            "}",
        ]


def cut(stmts: Sequence[Stmt], plan: Plan, constants: Set[str]) -> tuple[list[Stmt], Stores, list[Stmt]] | None:
    """Return a region as what comes before four such stores, the stores, and what comes behind; None where it has none, or they hand on values."""
    flat = [one for stmt in stmts for one in _apart(stmt)]
    if any(jumps(s) or isinstance(s, ir.Return | ir.Raw) for s in ir.walk(tuple(flat))):
        return None
    for at, stmt in enumerate(flat):
        if isinstance(stmt, For) and (inside := _in_loop(stmt, plan, constants)) is not None:
            return _between(flat[:at], inside, flat[at + 1 :], plan)
    for at in range(len(flat) - len(MEMBERS) + 1):
        found = _stores(flat, at, plan, constants)
        if found is not None:
            return _between(flat[: at - (found.declared is not None)], found, flat[at + len(MEMBERS) :], plan)
    return None


def _between(before: list[Stmt], stores: Stores, after: list[Stmt], plan: Plan) -> tuple[list[Stmt], Stores, list[Stmt]] | None:
    """Return the parts of a region; None where one hands values of its own to the next, but for what each part can compute again."""
    kept = plan.arrays | plan.recomputed
    if ({stores.four} - kept) & used(after):
        return None
    again = repeated.again([s for s in before if isinstance(s, Declare) and s.var.key not in kept], [*before, *stores.stmts, *after], plan)
    known = {s.var.key for s in again}
    own = {s.var.key for s in ir.walk(tuple(before)) if isinstance(s, Declare)} - kept - known
    if own & used([*stores.stmts, *after]):
        return None
    return before, replace(stores, again=repeated.needed(again, stores.stmts)), [*repeated.needed(again, after), *after]


def _in_loop(loop: For, plan: Plan, constants: Set[str]) -> Stores | None:
    """Return the stores that a loop consists of, where it is one for all threads."""
    flat = [one for stmt in loop.body for one in _apart(stmt)]
    start = loop.init[0] if len(loop.init) == 1 else None
    if (
        len(flat) not in (len(MEMBERS), len(MEMBERS) + 1)
        or not isinstance(start, Declare)
        or start.init is None
        or loop.cond is None
        or loop.step is None
    ):
        return None
    head = [n for expr in (start.init, loop.cond, loop.step) for n in expr.walk()]
    if any(n.kind in ("index", "call", "other", "lambda", "lane") or (n.kind == "name" and n.name == "threadIdx") for n in head):
        return None
    own = plan.facts.varying | plan.arrays | plan.recomputed
    if any(n.var is not None and n.var != start.var.key and n.var in own for n in head) or loop.step.changes != {start.var.key} or loop.cond.changes:
        return None
    found = _stores(flat, len(flat) - len(MEMBERS), plan, constants, frozenset([start.var.key]))
    if found is None or len(found.stmts) != len(flat) or any(start.var.key in e.changes for e in ir.expressions(tuple(flat))):
        return None
    return replace(found, stmts=(loop,), loop=loop)


def _apart(stmt: Stmt) -> list[Stmt]:
    """Return `a = b, c = d;` as two statements, and a block as what is in it: names are the kernel's only ones."""
    if isinstance(stmt, ir.Block):
        return [one for inner in stmt.body for one in _apart(inner)]
    if not isinstance(stmt, Evaluate) or stmt.expr.kind != "binary" or stmt.expr.name != "," or len(stmt.expr.children) != 2:
        return [stmt]
    return [one for child in stmt.expr.children for one in _apart(Evaluate(child, stmt.line))]


def _stores(stmts: Sequence[Stmt], at: int, plan: Plan, constants: Set[str], counters: Set[int] = frozenset()) -> Stores | None:
    """Return the stores of a float4 that begin at a statement."""
    read = [_store(stmt, plan) for stmt in stmts[at : at + len(MEMBERS)]]
    kept = [one for one in read if one is not None]
    if len(kept) != len(MEMBERS) or len({key for key, _, _ in kept}) != 1 or {member for _, member, _ in kept} != set(MEMBERS):
        return None
    four = kept[0][0]
    before = stmts[at - 1] if at else None
    declared = before if isinstance(before, Declare) and before.var.key == four and four not in plan.arrays else None
    if (declared is None) == (four not in plan.arrays) or (declared is not None and (declared.init is None or declared.direct)):
        return None
    if four in plan.facts.addressed or (declared is not None and declared.init is not None and not _may_repeat(declared.init)):
        return None
    try:
        moves = tuple(thread_places.of_thread(place, plan, constants, counters) for _, _, place in kept)
    except DoesNotApply:
        return None
    whole = (*((declared,) if declared is not None else ()), *stmts[at : at + len(MEMBERS)])
    return Stores(whole, four, declared, tuple((member, place) for _, member, place in kept), moves)


def _may_repeat(value: Expr) -> bool:
    """Say whether a value is a read of memory and nothing else."""
    effects = ("assign", "lambda", "lane", "other")
    nodes = list(value.walk())
    calls = {n.name for n in nodes if n.kind == "call"}
    return calls <= LOADS and not any(n.kind in effects or (n.kind == "unary" and n.name in ("++", "--")) for n in nodes)


def _store(stmt: Stmt, plan: Plan) -> tuple[int, str, Expr] | None:
    """Return the key of a float4, the member that is stored, and where to; None for another statement."""
    if not isinstance(stmt, Evaluate) or stmt.expr.kind != "assign" or stmt.expr.name != "=":
        return None
    place, value = stmt.expr.children
    value = ir.bare(value)
    if value.kind != "member" or value.name not in MEMBERS or len(value.children) != 1:
        return None
    name = value.children[0]
    if name.kind != "name" or name.var is None or place.kind != "index":
        return None
    var = plan.variables.get(name.var)
    if var is None or var.type.removeprefix("const ") != "float4" or var.dims or var.space != "local" or var.reference:
        return None
    return name.var, value.name, place
