"""A grid over rows and columns whose threads know themselves by `row * columns + column` alone -> a grid over the elements, in their order.

    if (row < rows && column < columns) f(a[row * columns + column])   ->   if (i < rows * columns) f(a[i])

Where a launch covers less than all elements, or there are too many for an int, the kernel as given is launched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.launches import terms
from warpwright.domains.cuda.techniques.strided import THREADS
from warpwright.domains.cuda.techniques.tiles import two_axes
from warpwright.domains.cuda.write import raw
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Expr, If
from warpwright.errors import NotApplicable
from warpwright.space import Traits

INDEX = "ww_element"


@dataclass(frozen=True)
class Grid:
    """A kernel over rows and columns."""

    plain: Plain
    bounds: dict[str, ir.Var]
    """Axis -> the parameter that bounds its index."""
    body: tuple[ir.Stmt, ...]
    """With one index in place of two."""


class Flatten:
    """Two indices -> one, where elements lie in the order of rows."""

    name = "flatten"
    traits = Traits("E", enabling=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each kernel of that kind."""
        for kernel, _ in plan.matching(_grid):
            yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with a second kernel, and launches that choose."""
        grid = _grid(plan, action.at)
        plain, own = grid.plain, f"{action.at}_flat"
        head = re.sub(rf"\b{action.at}(\s*\()", rf"{own}\1", plain.head)
        bound = " * ".join(var.name for var in grid.bounds.values())
        index = raw(f"int {INDEX} = blockIdx.x * blockDim.x + threadIdx.x;")
        text = write.kernel(head, plain.function, [index, If(Expr("other", (f"{INDEX} < {bound}",)), grid.body)])
        changes = [Edit(plain.kernel.end, plain.kernel.end, f"\n\n{text}\n")]
        places = {axis: [v.key for v in plain.function.parameters].index(var.key) for axis, var in grid.bounds.items()}
        for launch in plain.unit.launches_of(action.at):
            shape_, block, *rest = launch.configuration
            sides = {axis: launch.arguments[place] for axis, place in places.items()}
            covered = f"ww_covered({shape_}, {block}, {sides['x']}, {sides['y']})"
            total = f"(long long)({sides['x']}) * ({sides['y']})"
            config = ", ".join([f"(unsigned)(({total} + {THREADS - 1}) / {THREADS})", str(THREADS), *rest])
            old = plain.unit.text[launch.start : launch.end]
            changes.append(Edit(launch.start, launch.end, f"if ({covered}) {{ {own}<<<{config}>>>({', '.join(launch.arguments)}); }} else {old}"))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"covered"}), self.name, action.at)


def _grid(plan: Plan, name: str) -> Grid:
    """Return a kernel over rows and columns; raise NotApplicable for another."""
    plain, x, y = two_axes(plan, name)
    expect(not plan.has("flatten", name) and f"{name}_flat" not in plain.unit.functions, "a kernel without a flat form")
    expect(all(isinstance(s, Declare) and s.var.key in plain.indices for s in plain.prelude), "nothing but the indices in front of the guard")
    assert plain.guard is not None
    parameters = {var.key: var for var in plain.function.parameters}
    bounds: dict[str, ir.Var] = {}
    for term in terms(plain.guard):
        left, right = (ir.bare(child) for child in term.children) if len(term.children) == 2 else (term, term)
        if term.name == ">":
            left, right = right, left
        expect(term.name in ("<", ">") and right.kind == "name" and right.var in parameters, "indices below parameters")
        axis = {x.key: "x", y.key: "y"}.get(left.var if left.kind == "name" and left.var is not None else -1, "")
        expect(bool(axis) and axis not in bounds, "one bound for each index")
        bounds[axis] = parameters[right.var]  # type: ignore[index]
    expect(set(bounds) == {"x", "y"} and all(var.type in ("int", "const int") for var in bounds.values()), "a bound for each index, an int")
    expect(not {var.key for var in bounds.values()} & shape.changed_by(plain.all), "bounds that stay")
    for minor, major, wide in ((x, y, bounds["x"]), (y, x, bounds["y"])):
        body = tuple(ir.map_expressions(stmt, _in_order(minor, major, wide)) for stmt in plain.body)
        if not any(e.kind == "name" and e.var in (x.key, y.key) for e in ir.expressions(body)):
            return Grid(plain, bounds, body)
    raise NotApplicable("expected a kernel that knows its indices by row * columns + column alone, saw other uses")


def _in_order(minor: ir.Var, major: ir.Var, wide: ir.Var) -> Callable[[Expr], Expr | None]:
    """Return what replaces `major * wide + minor` by the one index."""

    def is_var(expr: Expr, var: ir.Var) -> bool:
        return ir.bare(expr).kind == "name" and ir.bare(expr).var == var.key

    def change(expr: Expr) -> Expr | None:
        bare = ir.bare(expr)
        if bare.kind != "binary" or bare.name != "+" or len(bare.children) != 2:
            return None
        for product, rest in (bare.children, bare.children[::-1]):
            inner = ir.bare(product)
            if is_var(rest, minor) and inner.kind == "binary" and inner.name == "*" and len(inner.children) == 2:
                one, other = inner.children
                if (is_var(one, major) and is_var(other, wide)) or (is_var(other, major) and is_var(one, wide)):
                    return Expr("other", (INDEX,), expr.line, "", None, "int")
        return None

    return change
