"""Kernels that count on exactly as many threads as there are elements: with the count as a guard, a grid may have more threads than those."""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.launches import bounded
from warpwright.domains.cuda.techniques.strided import with_parameter
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Expr, If, Stmt
from warpwright.space import Traits

_COUNTS = {"x": "threads", "y": "threads_y"}
"""Axis -> the helper that counts threads along it."""


class Guard:
    """`i = index; body`, launched with n threads -> `i = index; if (i < n) body`: the same threads work, whatever else is launched beside them."""

    name = "guard"
    traits = Traits("E", enabling=True, idle=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each plain kernel with one or two indices that nothing bounds."""
        for kernel in plan.unit.kernels:
            if not plan.has(self.name, kernel) and _unbounded(shape.plain(plan, kernel)):
                yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the counts as parameters."""
        plain = shape.plain(plan, action.at)
        axes = _unbounded(plain)
        expect(bool(axes) and not plan.has(self.name, action.at), "a plain kernel with indices that nothing bounds")
        assert plain is not None
        by_axis = {axis: plain.var(key) for key, axis in plain.indices.items()}
        counts = [f"{by_axis[axis].name} < ({by_axis[axis].type})ww_count_{axis}" for axis in axes]
        body = list(_guarded(plain, " && ".join(counts)))
        head = plain.head
        for axis in axes:
            head = with_parameter(head, f"long long ww_count_{axis}")
        text = write.kernel(head, plain.function, body)
        changes = [Edit(plain.kernel.start, plain.kernel.end, text)]
        for launch in plain.unit.launches_of(action.at):
            grid, block = launch.configuration[:2]
            extents = [f"ww_{_COUNTS[axis]}({grid}, {block})" for axis in axes]
            arguments = ", ".join([*launch.arguments, *extents])
            config = ", ".join(launch.configuration)
            changes.append(Edit(launch.start, launch.end, f"{launch.kernel}<<<{config}>>>({arguments})"))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {_COUNTS[axis] for axis in axes}), self.name, action.at)


def _guarded(plain: Plain, own: str) -> Iterator[Stmt]:
    """Yield a kernel's statements under one guard more: declarations that read memory come behind it."""
    quiet = all(isinstance(stmt, Declare) and (stmt.init is None or ir.is_quiet(stmt.init)) for stmt in plain.prelude)
    if quiet and plain.guard is not None:
        yield from plain.prelude
        yield If(Expr("other", (f"{own} && (", plain.guard, ")")), plain.body)
        return
    indices = [stmt for stmt in plain.prelude if isinstance(stmt, Declare) and stmt.var.key in plain.indices]
    rest = [stmt for stmt in plain.prelude if stmt not in indices]
    yield from indices
    yield If(Expr("other", (own,)), (*rest, *([If(plain.guard, plain.body)] if plain.guard is not None else plain.body)))


def _unbounded(plain: Plain | None) -> str:
    """Return the axes, of x and y, along which nothing bounds a kernel's index; "" for a kernel with others, or with two indices along one axis."""
    if plain is None:
        return ""
    axes = sorted(plain.indices.values())
    return "".join(axis for axis in axes if not bounded(plain, axis)) if axes in (["x"], ["y"], ["x", "y"]) else ""
