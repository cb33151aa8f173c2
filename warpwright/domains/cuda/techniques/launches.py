"""How a grid is laid out over the same work: the block's size, and which axis neighbouring threads run along."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.space import Traits

SIZES = (128, 256, 512)
SHAPES = ((32, 4), (32, 8), (64, 4))


def bounded(plain: Plain, axis: str) -> bool:
    """Does the guard keep out every thread beyond some index along an axis, so that a grid may have more threads there?"""
    keys = {key for key, own in plain.indices.items() if own == axis}
    conditions = [plain.guard] if plain.guard is not None else _alternatives(plain.body)
    return bool(keys and conditions) and all(any(_bounds(term, keys) for term in terms(condition)) for condition in conditions)


def _alternatives(body: tuple[ir.Stmt, ...]) -> list[ir.Expr]:
    """Return the conditions of a body that is `if (a) ... else if (b) ...` and does nothing where none of them holds; nothing for another body."""
    conditions: list[ir.Expr] = []
    while len(body) == 1 and isinstance(only := body[0], ir.If) and not only.constexpr:
        conditions.append(only.cond)
        body = only.other
    return conditions if not body else []


def terms(guard: ir.Expr) -> list[ir.Expr]:
    """Return the conditions that all have to hold for a guard to hold."""
    bare = ir.bare(guard)
    if bare.kind == "binary" and bare.name == "&&":
        return [term for child in bare.children for term in terms(child)]
    return [bare]


def _bounds(term: ir.Expr, keys: set[int]) -> bool:
    if term.kind != "binary" or len(term.children) != 2:
        return False
    left, right = (ir.bare(child) for child in term.children)
    below = (left, right) if term.name in ("<", "<=") else (right, left) if term.name in (">", ">=") else None
    return below is not None and below[0].var in keys and not below[1].keys & keys


class Block:
    """`<<<n / 64, 64>>>` -> `<<<n / 256, 256>>>`: the same threads in blocks of another size, for kernels that know no block."""

    name = "block"
    traits = Traits("S")

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield other sizes for each kernel with one index, and other shapes for each with two."""
        for kernel in plan.unit.kernels:
            axes = _axes(shape.plain(plan, kernel))
            if plan.has(self.name, kernel) or plan.has("team", kernel):
                continue
            if axes == "x":
                yield from (Action(self.name, kernel, (("x", size),)) for size in SIZES)
            elif axes in ("xy", "xyz"):
                yield from (Action(self.name, kernel, (("x", x), ("y", y))) for x, y in SHAPES)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the launches changed."""
        plain = shape.plain(plan, action.at)
        axes = _axes(plain)
        size = dict(action.params)
        expect(plain is not None and axes[:2] == "".join(name for name, _ in action.params) != "", f"a plain kernel with guarded indices {axes}")
        expect(not plan.has(self.name, action.at) and not plan.has("team", action.at), "a kernel whose block was not chosen before")
        assert plain is not None
        x, y = int(size["x"]), int(size.get("y", 1))
        changes = []
        for launch in plan.unit.launches_of(action.at):
            grid, block, *rest = launch.configuration
            new = [f"ww_cover({grid}, {block}, {x}, {y})", f"dim3({x}, {y})", *rest]
            changes.append(Edit(*launch.inside, ", ".join(new)))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"cover"}), self.name, action.at)


def _axes(plain: Plain | None) -> str:
    """Return x, xy or xyz for a kernel whose threads beyond the guard may be any number along x and y; else ""."""
    if plain is None:
        return ""
    axes = "".join(sorted(set(plain.indices.values())))
    return axes if axes in ("x", "xy", "xyz") and all(bounded(plain, axis) for axis in axes[:2]) else ""


def _beside(plain: Plain, axis: str) -> int:
    """Return of how many elements that a kernel touches the place moves by one along an axis."""
    keys = {key for key, own in plain.indices.items() if own == axis}
    depends = shape.closure(plain.all, set(plain.indices))
    places = [node.children[1] for node in ir.expressions(plain.body) if node.kind == "index" and len(node.children) == 2]
    return sum(shape.coefficient(place, key, depends - (plain.indices.keys() - keys)) == "1" for place in places for key in keys)


class Swap:
    """`a[threadIdx.x * columns + threadIdx.y]` -> `a[threadIdx.y * columns + threadIdx.x]`: neighbouring threads touch neighbouring elements."""

    name = "swap_axes"
    traits = Traits("E")

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each plain kernel with two indices, more of whose elements lie side by side along y than along x."""
        for kernel in plan.unit.kernels:
            plain = shape.plain(plan, kernel)
            if not plan.has(self.name, kernel) and _axes(plain) == "xy" and plain is not None and _beside(plain, "y") > _beside(plain, "x"):
                yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with x and y exchanged in the kernel and in its launches."""
        plain = shape.plain(plan, action.at)
        expect(_axes(plain) == "xy" and not plan.has(self.name, action.at), "a plain kernel with two guarded indices")
        assert plain is not None
        kernel = plain.kernel
        body = plain.unit.text[kernel.head_end : kernel.end]
        turned = re.sub(r"\b(threadIdx|blockIdx|blockDim|gridDim)(\s*\.\s*)([xy])\b", lambda m: m[1] + m[2] + ("y" if m[3] == "x" else "x"), body)
        changes = [Edit(kernel.head_end, kernel.end, turned)]
        for launch in plan.unit.launches_of(action.at):
            grid, block, *rest = launch.configuration
            changes.append(Edit(*launch.inside, ", ".join([f"ww_swapped({grid})", f"ww_swapped({block})", *rest])))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"swapped"}), self.name, action.at)
