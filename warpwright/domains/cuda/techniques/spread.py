"""A grid-stride loop over elements -> a thread for each, in as many blocks as that takes: a form that others read.

    for (i = index; i < n; i += all threads) body   ->   i = index; if (i < n) body
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import expect
from warpwright.domains.cuda.techniques.strided import THREADS
from warpwright.domains.cuda.techniques.sums.grid_stride import counter_of, is_stride
from warpwright.domains.cuda.techniques.wide import below
from warpwright.domains.cuda.unit import Unit
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Stmt
from warpwright.space import Traits


class Spread:
    """A kernel that is one grid-stride loop whose turns know nothing of one another -> one turn a thread."""

    name = "spread"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each kernel of that kind."""
        for kernel, _ in plan.matching(_loop):
            yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text without the loop, in launches that have a thread for each turn."""
        unit, function, before, counter, bound, body = _loop(plan, action.at)
        kernel = unit.kernels[action.at]
        index = Declare(counter, Expr("other", (f"({counter.type})(blockIdx.x * blockDim.x + threadIdx.x)",)))
        plain = Declare(counter, Expr("other", ("blockIdx.x * blockDim.x + threadIdx.x",)))
        text = write.kernel(
            unit.text[kernel.start : kernel.head_end], function, [plain if counter.type == "int" else index, *before, If(bound, body)]
        )
        changes = [Edit(kernel.start, kernel.end, text)]
        names = {var.key: at for at, var in enumerate(function.parameters)}
        right = ir.bare(bound).children[1]
        for launch in unit.launches_of(action.at):
            old, block, *rest = launch.configuration

            def argument(expr: Expr, arguments: tuple[str, ...] = launch.arguments) -> Expr | None:
                named = expr.kind == "name" and expr.var in names
                return Expr("other", (f"({arguments[names[expr.var]]})",)) if named else None  # type: ignore[index]

            grid = f"dim3(ww_blocks((long long)({ir.text_of(right.map(argument))}), {THREADS}), ww_copies({old}, {block}))"
            changes.append(Edit(*launch.inside, ", ".join([grid, str(THREADS), *rest])))
        return plan.then(helpers.with_helpers(unit.changed(changes), {"blocks", "copies"}), self.name, action.at)


def _loop(plan: Plan, name: str) -> tuple[Unit, ir.Function, tuple[Stmt, ...], ir.Var, Expr, tuple[Stmt, ...]]:
    """Return a kernel's other declarations, its counter, its bound and its body; raise NotApplicable for a kernel of another form."""
    unit = plan.unit
    function = unit.functions.get(name)
    expect(function is not None and name in unit.kernels and bool(unit.launches_of(name)), f"a kernel {name} that is launched")
    assert function is not None
    body = function.body
    expect(bool(body) and isinstance(body[-1], For) and all(isinstance(s, Declare) for s in body[:-1]), "declarations and one loop")
    loop = body[-1]
    assert isinstance(loop, For) and loop.cond is not None
    declared = [s for s in body[:-1] if isinstance(s, Declare)]
    index = {s.var.key for s in declared if s.init is not None and shape.axis_of(s.init) == "x"}
    stride = {s.var.key: s.var.name for s in declared if s.init is not None and is_stride(s.init)}
    loop, moved = _counting(loop, declared, index, stride)
    counter = counter_of(loop, index, set(stride.values()))
    assert loop.cond is not None
    others = tuple(s for s in declared if s.var.key not in index and s.var.key not in stride and s.var.key != moved)
    depends = shape.closure((*others, loop), {counter.key})
    below(loop.cond, counter.key, depends)
    parameters = {var.key for var in function.parameters} - shape.changed_by(body)
    resolved = _of_parameters(loop.cond, {s.var.key: s.init for s in others if s.init is not None}, parameters)
    for expr in ir.expressions((*others, *loop.body)):
        known = expr.var in index - {counter.key} or expr.var in stride or (expr.var is None and expr.name in shape.THREAD_WORDS)
        expect(not (expr.kind == "name" and known), "no other use of the thread")
        acts = expr.kind == "call" and (shape.SYNCHRONISING.match(expr.name) or expr.name in unit.functions)
        expect(not acts, "a body without barriers and functions of its own")
    for stmt in ir.walk(loop.body):
        expect(not isinstance(stmt, ir.Raw | ir.Jump | ir.Return), "a body that is not left")
        expect(not isinstance(stmt, Declare) or stmt.var.space == "local", "variables of the thread's own")
    changed = shape.changed_by(loop.body) - shape.declared_in(loop.body)
    outer = {s.var.key for s in others} | {var.key for var in function.parameters if "*" not in var.type}
    expect(counter.key not in changed and not changed & outer, "turns that leave nothing to one another but in memory")
    expect(all(s.init is not None and ir.is_quiet(s.init) for s in others), "declarations that read no memory")
    return unit, function, others, counter, resolved, loop.body


def _counting(loop: For, declared: list[Declare], index: set[int], stride: dict[int, str]) -> tuple[For, int]:
    """Return `while (i < n) { ...; i += stride; }`, where i is the thread's index, as a loop that counts; another loop as it is."""
    if loop.init or loop.step is not None or not loop.body:
        return loop, -1
    last = loop.body[-1]
    step = ir.bare(last.expr) if isinstance(last, Evaluate) else None
    if step is None or step.kind != "assign" or step.name != "+=":
        return loop, -1
    key = ir.bare(step.children[0]).var
    first = next((s for s in declared if s.var.key == key and s.var.key in index), None)
    if first is None:
        return loop, -1
    index.discard(first.var.key)
    return replace(loop, init=(first,), step=step, body=loop.body[:-1]), first.var.key


def _of_parameters(cond: Expr, known: dict[int, Expr], parameters: set[int]) -> Expr:
    """Return `i < bound` with the bound in terms of the kernel's parameters, as a launch can say it; raise NotApplicable where it cannot."""
    bare = ir.bare(cond)
    expect(bare.name == "<" and len(bare.children) == 2, "an index below a bound")
    right = bare.children[1]
    for _ in range(4):
        right = right.map(lambda expr: ir.paren(known[expr.var]) if expr.kind == "name" and expr.var in known else None)
    plain = ("name", "literal", "binary", "paren", "cast", "type")
    expect(all(node.kind in plain and (node.kind != "name" or node.var in parameters) for node in right.walk()), "a bound made of parameters")
    expect(not any("*" in node.type for node in right.walk()) and re.search(r"[A-Za-z_]", ir.text_of(right)) is not None, "numbers")
    return bare.with_children([bare.children[0], right])
