"""Tiles in shared memory: a transposition that reads and writes rows, and a product whose threads compute several outputs each.

    out[x * h + y] = f(in[y * w + x])     ->    a tile is read along x, and written along y
    for k: s += g(a[row, k], b[k, col])   ->    tiles of a and b in shared memory; ROWS x COLUMNS sums in registers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.launches import bounded, terms
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.errors import NotApplicable
from warpwright.space import Traits


def two_axes(plan: Plan, name: str) -> tuple[Plain, ir.Var, ir.Var]:
    """Return a plain kernel with guarded indices along x and y, and those two; raise NotApplicable for another."""
    plain = shape.plain(plan, name)
    expect(plain is not None and sorted(plain.indices.values()) == ["x", "y"], f"{name} with one index along x and one along y")
    assert plain is not None
    expect(bounded(plain, "x") and bounded(plain, "y"), "a guard that bounds both indices")
    by_axis = {axis: plain.var(key) for key, axis in plain.indices.items()}
    return plain, by_axis["x"], by_axis["y"]


class TransposeTile:
    """A kernel that reads along one axis and writes along the other -> both along rows, by a tile in shared memory."""

    name = "transpose_tile"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each kernel of that kind."""
        for kernel, _ in plan.matching(_transposing):
            yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the tile."""
        plain, store, read_along, write_along = _transposing(plan, action.at)
        axis = {plain.var(key).key: own for key, own in plain.indices.items()}
        writer = write.Writer(plain.function)
        assign = ir.bare(store.expr)
        value, place = writer.expr(assign.children[1]), writer.expr(assign.children[0])
        guard = writer.expr(plain.guard) if plain.guard is not None else "true"
        kind = _element(assign.children[0].type)
        others = writer.body([s for s in plain.prelude if not (isinstance(s, Declare) and s.var.key in plain.indices)], 2)

        def indices(along: ir.Var, across: ir.Var) -> str:
            first = f"{along.type} {along.name} = blockIdx.{axis[along.key]} * 32 + threadIdx.x;"
            second = f"{across.type} {across.name} = blockIdx.{axis[across.key]} * 32 + threadIdx.y + ww_turn;"
            return f"        {first}\n        {second}\n{others}"

        loop = "    #pragma unroll\n    for (int ww_turn = 0; ww_turn < 32; ww_turn += 8) {\n"
        text = (
            f"{plain.head.rstrip()} {{\n    __shared__ {kind} ww_tile[32][33];\n"
            f"{loop}{indices(read_along, write_along)}        if ({guard}) ww_tile[threadIdx.y + ww_turn][threadIdx.x] = {value};\n    }}\n"
            f"    __syncthreads();\n"
            f"{loop}{indices(write_along, read_along)}        if ({guard}) {place} = ww_tile[threadIdx.x][threadIdx.y + ww_turn];\n    }}\n}}"
        )
        changes = [Edit(plain.kernel.start, plain.kernel.end, text)]
        for launch in plain.unit.launches_of(action.at):
            grid, block, *rest = launch.configuration
            changes.append(Edit(*launch.inside, ", ".join([f"ww_cover({grid}, {block}, 32, 32)", "dim3(32, 8)", *rest])))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"cover"}), self.name, action.at)


def _element(spelled: str) -> str:
    return spelled.replace("const ", "").strip()


def _transposing(plan: Plan, name: str) -> tuple[Plain, Evaluate, ir.Var, ir.Var]:
    """Return the kernel, its one store, and the indices along which it reads and writes rows."""
    plain, x, y = two_axes(plan, name)
    expect(len(plain.body) == 1 and isinstance(plain.body[0], Evaluate), "a kernel of one assignment")
    store = plain.body[0]
    assert isinstance(store, Evaluate)
    assign = ir.bare(store.expr)
    expect(assign.kind == "assign" and assign.name == "=" and ir.bare(assign.children[0]).kind == "index", "an assignment to an element")
    target = ir.bare(assign.children[0])
    root = ir.target(target)
    depends = shape.closure(plain.all, set(plain.indices))
    reads = [node for node in assign.children[1].walk() if node.kind == "index"]
    expect(bool(reads) and root is not None and all(r is None or r.var != root.var for r in map(ir.target, reads)), "an array that is not read")
    expect(not any(node.kind == "call" and node.name.startswith("atomic") for node in store.expr.walk()), "no atomics")
    for written, other in ((x, y), (y, x)):
        if _rows_along(target.children[1], written, other, depends) and any(_rows_along(r.children[1], other, written, depends) for r in reads):
            return plain, store, other, written
    raise NotApplicable(f"expected {name} to read along one axis and to write along the other, saw another")


def _rows_along(place: Expr, var: ir.Var, other: ir.Var, depends: set[int]) -> bool:
    """Does a place move by one along `var`, and by more along `other`?"""
    return shape.coefficient(place, var.key, depends - {other.key}) == "1" and _strided(place, other, var, depends)


def _strided(place: Expr, var: ir.Var, other: ir.Var, depends: set[int]) -> bool:
    """Does a place move by more than one along a variable?"""
    return shape.coefficient(place, var.key, depends - {other.key}) not in ("1", "0")


# --- products -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """`s = start; for (k = from; k < to; ++k) { ... s += g(loads) }; rest`, in a kernel with two indices."""

    plain: Plain
    x: ir.Var
    y: ir.Var
    before: tuple[Stmt, ...]
    """Statements before the loop: the sum's declaration, and what is uniform."""
    loop: For
    counter: ir.Var
    start: Expr
    end: str
    sum: ir.Var
    loads: tuple[Expr, ...]
    """The elements of memory that the loop reads, once each."""
    owners: tuple[str, ...]
    """For each: the index that its place depends on, x or y."""
    after: tuple[Stmt, ...]


TILES = ((8, 8, 16), (4, 4, 16), (8, 8, 8))
"""Rows and columns of a thread, and depth of a step; a block has 16 x 16 threads. The first was the fastest of a product on an H200 (5.7 times the
text as given) and, translated, on a CPU (13 times)."""


class ProductTile:
    """A loop over the inner dimension -> tiles of both operands in shared memory, and a small matrix of sums in each thread's registers."""

    name = "product_tile"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the tiles for each kernel with such a loop."""
        for kernel, _ in plan.matching(product):
            yield from (Action(self.name, kernel, (("rows", rows), ("columns", columns), ("depth", depth))) for rows, columns, depth in TILES)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the tiles."""
        params = dict(action.params)
        rows, columns, depth = (int(params.get(name, 0)) for name in ("rows", "columns", "depth"))
        expect((rows, columns, depth) in TILES, f"a tile of {TILES}", str((rows, columns, depth)))
        matched = product(plan, action.at)
        plain = matched.plain
        changes = [Edit(plain.kernel.start, plain.kernel.end, _ProductText(matched, rows, columns, depth).text())]
        for launch in plain.unit.launches_of(action.at):
            grid, block, *rest = launch.configuration
            changes.append(Edit(*launch.inside, ", ".join([f"ww_cover({grid}, {block}, {16 * columns}, {16 * rows})", "dim3(16, 16)", *rest])))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"cover"}), self.name, action.at)


def product(plan: Plan, name: str) -> Product:
    """Return a kernel's product; raise NotApplicable for a kernel that has none."""
    plain, x, y = two_axes(plan, name)
    assert plain.guard is not None
    for term in terms(plain.guard):
        expect(not (x.key in term.keys and y.key in term.keys), "a guard with a term for each index")
    loops = [stmt for stmt in plain.body if isinstance(stmt, For)]
    expect(len(loops) == 1, "one loop", str(len(loops)))
    [loop] = loops
    at = plain.body.index(loop)
    before, after = plain.body[:at], plain.body[at + 1 :]
    head = shape.counted(loop)
    expect(head is not None, "a loop that counts by one")
    assert head is not None
    indices = {x.key, y.key}
    depends = shape.closure(plain.all, indices)
    expect(not (head.start.keys | head.end.keys) & depends, "a loop of the same length in all threads")
    for stmt in (*plain.prelude, *before):
        own = isinstance(stmt, Declare) and (stmt.var.key in indices or stmt.init is None or not stmt.init.keys & depends)
        expect(own, "declarations in front of the loop that are the same in all threads")
    declared = [s.var for s in before if isinstance(s, Declare)]
    sums = _summed(loop, {var.key for var in declared})
    gathered = next(var for var in declared if var.key == sums)
    expect(gathered.type in ("float", "double", "int") and not gathered.dims, "a sum of numbers")
    for stmt in loop.body:
        expect(isinstance(stmt, Declare | Evaluate), "a loop of declarations and one sum")
    loads, owners = _loads(loop, x, y, head.counter, depends)
    expect(set(owners) == {"x", "y"}, "operands that depend on one index each")
    arrays = {root.var for store in shape.stores(after) if (root := ir.target(store)) is not None}
    expect(not any(r is not None and r.var in arrays for r in map(ir.target, loads)), "a loop that does not read what is written")
    for stmt in ir.walk(after):
        expect(isinstance(stmt, Declare | Evaluate | ir.If), "assignments behind the loop")
    end = ir.text_of(head.end) if not head.closed else f"({ir.text_of(head.end)}) + 1"
    return Product(plain, x, y, before, loop, head.counter, head.start, end, gathered, loads, owners, after)


def _summed(loop: For, declared: set[int]) -> int:
    """Return the one variable from outside that a loop adds to, in its last statement."""
    inside = shape.declared_in(loop.body)
    outer = shape.changed_by(loop.body) - inside
    expect(len(outer) == 1 and outer <= declared, "a loop with one sum")
    [key] = outer
    last = loop.body[-1]
    assign = ir.bare(last.expr) if isinstance(last, Evaluate) else None
    expect(assign is not None and assign.kind == "assign" and ir.bare(assign.children[0]).var == key, "a sum at the end of the loop")
    assert assign is not None
    uses = [n for s in loop.body for e in ir.own_expressions(s) for n in e.walk() if n.kind == "name" and n.var == key]
    expect((assign.name == "+=" and len(uses) == 1) or (assign.name == "=" and len(uses) == 2), "a sum that nothing else reads")
    return key


def _loads(loop: For, x: ir.Var, y: ir.Var, counter: ir.Var, depends: set[int]) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
    loads: dict[str, Expr] = {}
    owners: dict[str, str] = {}
    inside = shape.declared_in(loop.body)
    within: set[int] = set()
    for stmt in loop.body:
        for whole in ir.own_expressions(stmt):
            for node in whole.walk():
                if node.kind == "unary" and node.name in ("*", "&"):
                    raise NotApplicable("expected elements a[i] in the loop, saw a pointer")
                if node.kind == "index" and id(node) not in within:
                    place = node.children[1]
                    named = ir.bare(node.children[0]).kind == "name"
                    expect(named and not place.keys & inside, "elements of arrays at places that follow from the indices")
                    expect(not any(n.kind == "index" for n in place.walk()), "places that are not read from memory")
                    own = [axis for axis, var in (("x", x), ("y", y)) if var.key in place.keys]
                    expect(len(own) == 1 and counter.key in place.keys, "elements that depend on the counter and on one index")
                    others = {key for key in place.keys if key in depends} - {x.key, y.key}
                    expect(not others, "places that follow from the indices alone")
                    text = ir.text_of(node)
                    loads[text], owners[text] = node, own[0]
                    within |= {id(n) for n in node.walk()}
    for stmt in loop.body:  # outside the loads, the loop knows neither index
        for whole in ir.own_expressions(stmt):
            for node in whole.walk():
                if node.kind == "name" and node.var in (x.key, y.key, counter.key):
                    expect(id(node) in within, "indices in the places of elements only")
    expect(1 < len(loads) <= 4, "two to four operands", str(len(loads)))
    return tuple(loads.values()), tuple(owners[text] for text in loads)


class _ProductText:
    """Writes the kernel."""

    def __init__(self, product: Product, rows: int, columns: int, depth: int) -> None:
        self.product, self.depth = product, depth
        self.each = {"x": columns, "y": rows}
        self.wide = {"x": 16 * columns, "y": 16 * rows}
        self.plain = product.plain

    def writer(self, instead: Mapping[int, str]) -> write.Writer:
        return write.Writer(self.plain.function, instead)

    def guard(self, axis: str, index: str) -> str:
        """Return the terms of the guard for one index."""
        var = self.product.x if axis == "x" else self.product.y
        assert self.plain.guard is not None
        other = self.product.y if axis == "x" else self.product.x
        own = [self.writer({var.key: index}).expr(term) for term in terms(self.plain.guard) if other.key not in term.keys]
        return " && ".join(f"({text})" for text in own)

    def text(self) -> str:
        product, plain = self.product, self.plain
        others = [s for s in plain.prelude if not (isinstance(s, Declare) and s.var.key in plain.indices)]
        uniform = [s for s in product.before if not (isinstance(s, Declare) and s.var.key == product.sum.key)]
        shared = "".join(
            f"    __shared__ {_element(load.type)} ww_tile_{n}[{self.depth}][{self.wide[axis] + 4}];\n" for n, load, axis in self.operands()
        )
        rows, columns = self.each["y"], self.each["x"]
        start = next(s for s in product.before if isinstance(s, Declare) and s.var.key == product.sum.key)
        first = self.writer({}).expr(start.init) if start.init is not None else "0"
        kind = product.sum.type
        return (
            f"{self.head()} {{\n{self.writer({}).body(others)}{self.writer({}).body(uniform)}{shared}"
            f"    {kind} ww_sums[{rows}][{columns}];\n"
            f"    #pragma unroll\n    for (int ww_r = 0; ww_r < {rows}; ++ww_r)\n        #pragma unroll\n"
            f"        for (int ww_c = 0; ww_c < {columns}; ++ww_c) ww_sums[ww_r][ww_c] = {first};\n"
            f"    const int ww_thread = threadIdx.y * 16 + threadIdx.x;\n"
            f"    const int ww_end = {self.writer({}).expr(Expr('other', (product.end,)))};\n"
            f"    for (int ww_step = {self.writer({}).expr(product.start)}; ww_step < ww_end; ww_step += {self.depth}) {{\n"
            f"{self.stage()}        __syncthreads();\n"
            f"        if (ww_step + {self.depth} <= ww_end) {{\n            #pragma unroll\n"
            f"            for (int ww_k = 0; ww_k < {self.depth}; ++ww_k) {{\n{self.compute()}            }}\n"
            f"        }} else {{\n            for (int ww_k = 0; ww_k < ww_end - ww_step; ++ww_k) {{\n{self.compute()}            }}\n        }}\n"
            f"        __syncthreads();\n    }}\n{self.finish()}}}"
        )

    def head(self) -> str:
        bounds = "__launch_bounds__(256) "
        head = self.plain.head.rstrip()
        return head if "__launch_bounds__" in head else head.replace("void ", f"void {bounds}", 1)

    def operands(self) -> list[tuple[int, Expr, str]]:
        return [(n, load, axis) for n, (load, axis) in enumerate(zip(self.product.loads, self.product.owners, strict=True))]

    def stage(self) -> str:
        """Return the loops that copy a step's tiles, neighbouring threads along neighbouring elements."""
        lines = ""
        product = self.product
        for number, load, axis in self.operands():
            var, wide = (product.x if axis == "x" else product.y), self.wide[axis]
            depends = {var.key, product.counter.key}
            along_k = shape.coefficient(load.children[1], product.counter.key, depends - {var.key}) == "1"
            split = (f"ww_at % {self.depth}", f"ww_at / {self.depth}") if along_k else (f"ww_at / {wide}", f"ww_at % {wide}")
            element = self.writer({var.key: "ww_place", product.counter.key: "(ww_step + ww_deep)"}).expr(load)
            lines += (
                f"        #pragma unroll\n        for (int ww_at = ww_thread; ww_at < {self.depth * wide}; ww_at += 256) {{\n"
                f"            const int ww_deep = {split[0]}, ww_wide = {split[1]};\n"
                f"            const {var.type} ww_place = blockIdx.{axis} * {wide} + ww_wide;\n"
                f"            ww_tile_{number}[ww_deep][ww_wide] = ww_step + ww_deep < ww_end && {self.guard(axis, 'ww_place')} ? {element} : 0;\n"
                f"        }}\n"
            )
        return lines

    def compute(self) -> str:
        """Return one turn of the loop for all sums of a thread: its operands in registers, then every pair."""
        pad = " " * 16
        lines = ""
        for number, load, axis in self.operands():
            own, each = f"ww_own_{number}", self.each[axis]
            lines += (
                f"{pad}{_element(load.type)} {own}[{each}];\n{pad}#pragma unroll\n{pad}for (int ww_e = 0; ww_e < {each}; ++ww_e) "
                f"{own}[ww_e] = ww_tile_{number}[ww_k][{self.within(axis, 'ww_e')}];\n"
            )
        texts = {ir.text_of(load): f"ww_own_{number}[{'ww_c' if axis == 'x' else 'ww_r'}]" for number, load, axis in self.operands()}

        def use(expr: Expr) -> Expr | None:
            text = texts.get(ir.text_of(expr)) if expr.kind == "index" else None
            return Expr("other", (text,), expr.line, "", None, expr.type) if text is not None else None

        body = tuple(ir.map_expressions(stmt, use) for stmt in self.product.loop.body)
        inner = self.writer({self.product.sum.key: "ww_sums[ww_r][ww_c]"}).body(body, 6)
        rows, columns = self.each["y"], self.each["x"]
        return (
            f"{lines}{pad}#pragma unroll\n{pad}for (int ww_r = 0; ww_r < {rows}; ++ww_r)\n{pad}    #pragma unroll\n"
            f"{pad}    for (int ww_c = 0; ww_c < {columns}; ++ww_c) {{\n{inner}{pad}    }}\n"
        )

    def within(self, axis: str, number: str) -> str:
        """Return the place in a tile of a thread's operand: in quads, so that neighbouring threads write whole segments."""
        return f"({number} / 4) * 64 + threadIdx.{axis} * 4 + {number} % 4"

    def finish(self) -> str:
        product = self.product
        rows, columns = self.each["y"], self.each["x"]
        x, y = product.x, product.y
        assert self.plain.guard is not None
        body = self.writer({product.sum.key: "ww_sums[ww_r][ww_c]"}).body(product.after, 4)
        guard = self.writer({}).expr(self.plain.guard)
        return (
            f"    #pragma unroll\n    for (int ww_r = 0; ww_r < {rows}; ++ww_r)\n        #pragma unroll\n"
            f"        for (int ww_c = 0; ww_c < {columns}; ++ww_c) {{\n"
            f"            const {y.type} {y.name} = blockIdx.y * {self.wide['y']} + {self.within('y', 'ww_r')};\n"
            f"            const {x.type} {x.name} = blockIdx.x * {self.wide['x']} + {self.within('x', 'ww_c')};\n"
            f"            if ({guard}) {{\n{body}            }}\n        }}\n"
        )


__all__ = ["ProductTile", "TransposeTile"]
