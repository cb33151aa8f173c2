"""A grid-stride loop whose threads each add their sum to one place: vectors of four, shuffles within a block, and one atomic a block.

    for (i = index; i < n; i += all threads) s += x[i]; atomicAdd(place, s / n);
    ->   the same by vectors; s = sum of s over the block; if (t == 0) atomicAdd(place, s / n);

What is added is a multiple of the sums, so that any number of threads gives the same: the grid is as large as the GPU holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import expect
from warpwright.domains.cuda.techniques.strided import THREADS
from warpwright.domains.cuda.techniques.sums.tree import MOST_BLOCKS, multiple
from warpwright.domains.cuda.techniques.wide import WIDTH, below, wide
from warpwright.domains.cuda.unit import Unit
from warpwright.domains.cuda.write import raw
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Stmt
from warpwright.errors import NotApplicable
from warpwright.space import Traits


@dataclass(frozen=True)
class Sums:
    """`index; s = 0; for (i = index; i < n; i += all threads) body; atomicAdd(place, multiple of s)`."""

    unit: Unit
    function: ir.Function
    before: tuple[Stmt, ...]
    """Declarations in front of the loop."""
    loop: For
    counter: ir.Var
    shares: tuple[tuple[Expr, ir.Var, Callable[[Expr], Expr]], ...]
    """Of each atomic: where it adds, the variable that holds the sum, and what of it is added."""


class JoinSums:
    """Sums of a grid-stride loop, added by each thread -> joined over the block, and added once."""

    name = "join_sums"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the widths for each kernel of that kind."""
        for kernel, matched in plan.matching(sums):
            if _by_vectors(matched) is not None:
                yield Action(self.name, kernel, (("wide", WIDTH),))
            yield Action(self.name, kernel, (("wide", 1),))

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with one atomic a block."""
        width = int(dict(action.params).get("wide", 0))
        matched = sums(plan, action.at)
        loops = _by_vectors(matched) if width == WIDTH else [matched.loop]
        expect(width in (1, WIDTH) and loops is not None, f"wide 1, or {WIDTH} where elements lie side by side", str(width))
        assert loops is not None
        kernel = matched.unit.kernels[action.at]
        after: list[Stmt] = []
        needed = {"copies"}
        for place, var, scaled in matched.shares:
            call = helpers.reducer("block", "sum", var.type)
            needed.add(call)
            share = scaled(ir.name_of(var))
            after.append(raw(f"{var.name} = {call}({var.name});"))
            after.append(If(Expr("other", ("threadIdx.x == 0",)), (Evaluate(Expr("other", ("atomicAdd(", place, ", ", share, ")"))),)))
        text = write.kernel(matched.unit.text[kernel.start : kernel.head_end], matched.function, [*matched.before, *loops, *after])
        changes = [Edit(kernel.start, kernel.end, text)]
        for launch in matched.unit.launches_of(action.at):
            grid, block, *rest = launch.configuration
            config = ", ".join([f"dim3({MOST_BLOCKS}, ww_copies({grid}, {block}))", str(THREADS), *rest])
            changes.append(Edit(*launch.inside, config))
        return plan.then(helpers.with_helpers(matched.unit.changed(changes), needed), self.name, action.at)


def _by_vectors(matched: Sums) -> list[Stmt] | None:
    depends = shape.closure((*matched.before, matched.loop), {matched.counter.key})
    try:
        end = below(matched.loop.cond, matched.counter.key, depends)
        [_, _, bound] = end.partition(" : ")
        return wide(matched.counter, matched.loop.body, matched.function).loop(bound, 4)
    except NotApplicable:
        return None


def sums(plan: Plan, name: str) -> Sums:
    """Return a kernel's sums; raise NotApplicable for a kernel that is not of that form from beginning to end."""
    unit = plan.unit
    function = unit.functions.get(name)
    expect(function is not None and name in unit.kernels and bool(unit.launches_of(name)), f"a kernel {name} that is launched")
    expect(not plan.has("join_sums", name), "a kernel whose sums are not joined")
    assert function is not None
    body = function.body
    at = next((number for number, stmt in enumerate(body) if isinstance(stmt, For)), -1)
    expect(at >= 0 and all(isinstance(stmt, Declare) for stmt in body[:at]), "declarations, one loop and atomics")
    before, loop, after = body[:at], body[at], body[at + 1 :]
    assert isinstance(loop, For)
    index = {s.var.key for s in before if isinstance(s, Declare) and s.init is not None and shape.axis_of(s.init) == "x"}
    strides = {s.var.name for s in before if isinstance(s, Declare) and s.init is not None and is_stride(s.init)}
    counter = counter_of(loop, index, strides)
    _expect_plain(unit, before, loop, index, counter)
    parameters = {var.key for var in function.parameters} - shape.changed_by(body)
    zeros = {s.var.key: s.var for s in before if isinstance(s, Declare) and s.init is not None and re.fullmatch(r"0(\.0*)?f?", ir.text_of(s.init))}
    shares = tuple(_share(stmt, zeros, parameters) for stmt in after)
    expect(bool(shares) and len({var.key for _, var, _ in shares}) == len(shares), "atomics, each of a sum of its own")
    _expect_sums(loop, {var.key for _, var, _ in shares}, counter.key)
    arrays = {node.var for place, _, _ in shares for node in place.walk() if node.kind == "name"}
    expect(not any(e.kind == "name" and e.var in arrays and "*" in e.type for e in ir.expressions(loop.body)), "places that the loop does not touch")
    return Sums(unit, function, before, loop, counter, shares)


def is_stride(expr: Expr) -> bool:
    """Is an expression the number of threads along x?"""
    text = re.sub(r"[\s()]|\blonglong\b|\blong\b|\bint\b|\bsize_t\b", "", ir.text_of(expr))
    return text in ("gridDim.x*blockDim.x", "blockDim.x*gridDim.x")


def counter_of(loop: For, index: set[int], strides: set[str]) -> ir.Var:
    """Return what a loop counts with, from the thread's index by all threads of the grid; raise NotApplicable for another loop."""
    first = loop.init[0] if len(loop.init) == 1 else None
    step = ir.bare(loop.step) if loop.step is not None else None
    if not isinstance(first, Declare) or first.init is None or step is None or step.kind != "assign" or step.name != "+=":
        raise NotApplicable("expected a loop that counts by all threads of the grid, saw another")
    start = ir.bare(first.init)
    expect((start.kind == "name" and start.var in index) or shape.axis_of(first.init) == "x", "a loop that begins at the thread's index")
    by = step.children[1]
    expect(ir.bare(step.children[0]).var == first.var.key and (is_stride(by) or ir.text_of(ir.bare(by)) in strides), "a step over all threads")
    return first.var


def _expect_plain(unit: Unit, before: tuple[Stmt, ...], loop: For, index: set[int], counter: ir.Var) -> None:
    """Threads know themselves by the loop's counter alone, and nothing but sums leaves the loop."""
    depends = shape.closure((*before, loop), {counter.key})
    below(loop.cond, counter.key, depends)
    used = [s for s in before if isinstance(s, Declare) and s.var.key not in index and not (s.init is not None and is_stride(s.init))]
    expect(all(isinstance(s, Declare) and s.var.space == "local" and (s.init is None or ir.is_quiet(s.init)) for s in before), "plain declarations")
    for expr in ir.expressions((*used, *loop.body)):
        asks = expr.kind == "name" and (expr.var in index or (expr.var is None and expr.name in shape.THREAD_WORDS))
        expect(not asks, "no other use of the thread")
        acts = expr.kind == "call" and (shape.SYNCHRONISING.match(expr.name) or expr.name.startswith("atomic") or expr.name in unit.functions)
        expect(not acts, "a loop without atomics, barriers and functions of its own")
    for stmt in ir.walk(loop.body):
        expect(not isinstance(stmt, ir.Raw | ir.Jump | ir.Return), "a loop that is not left")
    expect(counter.key not in shape.changed_by(loop.body) and not any(True for _ in shape.stores(loop.body)), "a loop that writes no memory")


def _share(stmt: Stmt, zeros: dict[int, ir.Var], parameters: set[int]) -> tuple[Expr, ir.Var, Callable[[Expr], Expr]]:
    call = ir.bare(stmt.expr) if isinstance(stmt, Evaluate) else None
    expect(call is not None and call.kind == "call" and call.name == "atomicAdd" and len(call.children) == 3, "atomics behind the loop")
    assert call is not None
    core, scaled = multiple(call.children[2], parameters)
    var = zeros.get(ir.bare(core).var or -1) if ir.bare(core).kind == "name" else None
    expect(var is not None and var.type in helpers.TYPES, "a multiple of a sum that begins at zero")
    assert var is not None
    expect(call.children[1].keys <= parameters, "a place that is the same for all threads")
    return call.children[1], var, scaled


def _expect_sums(loop: For, sums_: set[int], counter: int) -> None:
    """What outlives the loop is added to and nothing else, and nobody looks at it inside."""
    inside = shape.declared_in(loop.body) | {counter}
    expect(shape.changed_by(loop.body) - inside <= sums_, "a loop that changes its sums alone")
    uses = added = 0
    for expr in ir.expressions(loop.body):
        uses += expr.kind == "name" and expr.var in sums_
        if expr.kind == "assign" and ir.bare(expr.children[0]).var in sums_ and ir.bare(expr.children[0]).kind == "name":
            own = sum(node.kind == "name" and node.var in sums_ for node in expr.children[1].walk())
            expect(expr.name == "+=" and not own, "sums that are added to")
            added += 1
    expect(uses == added, "sums that nothing else reads")
