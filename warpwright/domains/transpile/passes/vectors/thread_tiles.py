"""Tiles of threads: where each thread adds up products in a tile of its own, the rows of neighbouring threads' tiles are one vector.

    for (k...) { for (i < 8) left[i] = a[k * 128 + y * 8 + i]; for (i < 8) right[i] = b[k * 128 + x * 8 + i];
                 for (m < 8) for (n < 8) sums[m][n] += left[m] * right[n]; }

With x and x + 1 of two threads side by side, and y the same, 16 numbers of `right` are one load and 16 sums one register, each product with one
number of `left`. One thread's vectors have 8 numbers, and a load for each product. (128 x 128 x 8 at a time, AVX-512: 60 GFLOP/s by threads, 108 by
two.) Where the registers hold more sums, the next vectors of threads with the same `left` go with them, and a number of it is read once for all. What
has to hold for neighbours depends on numbers that the output's compiler knows: it computes the places of all threads of the block.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.regions import Plan, used
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.passes.vectors import repeated, thread_places
from warpwright.domains.transpile.printing import INDENT, Printer

UNROLL = "#pragma GCC unroll 16"
NUMBER = "const int thread = (thread_z * dim_y + thread_y) * dim_x + thread_x;"
EACH_VECTOR = (UNROLL, "for (int nth_vector = 0; nth_vector < vectors_at_once; ++nth_vector)")


@dataclass(frozen=True)
class Tiles:
    """A loop of products into tiles, and what it takes to write it for several threads at once."""

    loop: For
    sums: int
    """Key of the threads' tiles."""
    length: str
    """Numbers in a row of a tile, as it is written."""
    vectors: frozenset[int]
    """Keys of local arrays that hold rows of the right factor."""
    right: tuple[str, ...]
    """Places of the right factors of a row's first number, as far as they depend on threadIdx.x."""
    left: tuple[str, ...]
    """The same of the left factors, which neighbours share."""
    again: tuple[Declare, ...] = ()
    """Declarations in front of the loop, of what it needs."""

    def condition(self, plan: Plan) -> str:
        """Return when the compiler finds that neighbouring threads' rows are vectors."""
        size = " * ".join(f"({dim})" for dim in plan.variables[self.sums].dims)
        places = [f"ww::next_in_tiles(BX, {self.length}, {thread_places.function(text)})" for text in self.right]
        places += [f"ww::same_in_tiles(BX, {self.length}, {thread_places.function(text)})" for text in self.left]
        return " && ".join(["BX", f"ww::fits_tiles(BX, {self.length}, {size})", *dict.fromkeys(places)])

    def joined(self, plan: Plan, back: bool = False) -> str:
        """Return the call that puts the tiles of neighbouring threads row by row beside each other, as vectors, or back."""
        var = plan.variables[self.sums]
        size = " * ".join(f"({dim})" for dim in var.dims)
        return f"ww::{'part' if back else 'join'}_tiles<{self.length}, {size}>((float*){var.name}_t, dim_x * dim_y * dim_z);"

    def is_alone(self, stmts: Sequence[Stmt], plan: Plan) -> bool:
        """Say whether the threads' tiles appear in the statements nowhere but in the loop, and have no other name that may: `float* p = sums;`."""
        every = [*regions.all_stmts(plan.nodes), *plan.hoisted, *(s for key, s in plan.facts.declared.items() if key in plan.recomputed)]
        if not tiles.used_by_element([s for s in every if not (isinstance(s, Declare) and s.var.key == self.sums)], plan.variables[self.sums]):
            return False
        names = [sum(e.var == self.sums for e in ir.expressions(tuple(part))) for part in (stmts, (self.loop,))]
        return names[0] == names[1] and not any(isinstance(s, Declare) and s.var.key == self.sums for s in ir.walk(tuple(stmts)))

    def lines(self, plan: Plan, printer: Printer, values: Sequence[str], joined: bool = False) -> list[str]:
        """Return the loops over groups of threads.

        values: declarations of what is recomputed, for a group's first thread; joined: the rows of neighbours lie beside each other.
        """
        var = plan.variables[self.sums]
        size = " * ".join(f"({dim})" for dim in var.dims)
        shared = "".join(f", {thread_places.function(text)}" for text in dict.fromkeys(self.left))
        each = [*EACH_VECTOR, UNROLL, "for (int nth = 0; nth < rows_at_once; ++nth)"]
        tiles = f"(float*)&{var.name}_t[thread + nth_vector * threads_at_once] + (nth_part * rows_at_once + nth) * "
        place = f"{tiles}ww::width" if joined else f"{tiles}({self.length}), {size}"
        whole = "" if joined else f"_tile<{self.length}>"
        values = [*values, *(f"{printer.declaration(one)};" for one in self.again)]
        writer = _Writer(self, plan, printer, values)
        return [
            f"constexpr int rows_at_once = ww::rows_of_tiles({size} / ({self.length}));",
            f"constexpr int vectors_at_once = ww::vectors_of_tiles(BX, {self.length}, {size}{shared});",
            f"constexpr int threads_at_once = ww::width / ({self.length});",
            "for (int thread_z = 0; thread_z < dim_z; ++thread_z)",
            "for (int thread_y = 0; thread_y < dim_y; ++thread_y)",
            f"for (int first_lane = 0; first_lane < dim_x; first_lane += threads_at_once * vectors_at_once) {{  // line {self.loop.line}",
            f"  ww::each_part<{size} / ({self.length}) / rows_at_once>([&](auto nth_part) __attribute__((always_inline)) {{",
            *(f"    {line}" for line in (
                "[[maybe_unused]] const int thread_x = first_lane;",
                NUMBER, *values,
                f"ww::floats {var.name}_v[vectors_at_once][rows_at_once];",
                *each, f"  {var.name}_v[nth_vector][nth] = ww::load{whole}({place});",
                f"{printer.loop_head(self.loop)} {{", *(f"  {line}" for stmt in self.loop.body for line in writer.statement(stmt)), "}",
                *each, f"  ww::store{whole}({place}, {var.name}_v[nth_vector][nth]);",
            )),
            "  });",
            "}",
        ]  # fmt: skip


def cut(stmts: Sequence[Stmt], plan: Plan) -> tuple[list[Stmt], list[Stmt]] | None:
    """Return a region as what comes before its last loop, and that loop with the declarations that it needs.

    None where it does not end with one, where other values are handed to it, and where there is nothing to cut off.
    """
    *before, last = stmts
    declared = [s for s in before if isinstance(s, Declare)]
    if not isinstance(last, For) or any(s.var.key in plan.arrays for s in declared):
        return None
    shared = {s.var.key: of for s in declared if (of := _other_name(s, plan)) is not None}
    if len(declared) == len(before) and not shared:
        return None
    loop = ir.map_expressions(last, lambda e: shared.get(e.var) if e.kind == "name" and e.var is not None else None)
    kept = repeated.needed(repeated.again(declared, stmts, plan), [loop])
    handed = {s.var.key for s in ir.walk(tuple(before)) if isinstance(s, Declare)} - {s.var.key for s in kept}
    return None if handed & used([*kept, loop]) else (before, [*kept, loop])


def _other_name(stmt: Declare, plan: Plan) -> Expr | None:
    """Return the shared array that a pointer of one thread is another name of, as a function that was opened has it."""
    of = ir.bare(stmt.init) if stmt.init is not None else None
    var = plan.variables.get(of.var) if of is not None and of.kind == "name" and of.var is not None else None
    if var is None or var.space not in ("shared", "dynamic") or len(var.dims) != 1 or stmt.var.dims or stmt.var.reference or stmt.direct:
        return None
    plain = stmt.var.type.replace("const ", "").replace(" ", "").replace("__restrict__", "") == f"{var.type}*"
    return of if plain and not plan.facts.assigned.get(stmt.var.key) and stmt.var.key not in plan.facts.addressed else None


def suits(stmts: Sequence[Stmt], plan: Plan, constants: Set[str]) -> Tiles | None:
    """Return a loop, and declarations of what it needs, as tiles; None for another. constants: names of what the compiler of the output knows."""
    *before, loop = stmts
    declared = [s for s in before if isinstance(s, Declare)]
    if not isinstance(loop, For) or len(repeated.again(declared, stmts, plan)) < len(before):
        return None
    try:
        return replace(_Reader(loop, plan, constants).tiles(), again=tuple(declared))
    except DoesNotApply:
        return None


class _Reader:
    """Reads the parts of a loop over k: rows of the factors, and products into a tile."""

    def __init__(self, loop: For, plan: Plan, constants: Set[str]) -> None:
        self.loop, self.plan, self.constants = loop, plan, constants
        self.filled: dict[int, list[tuple[Expr, Expr, tuple[For, ...]]]] = {}
        """Key of a local array -> what fills it: its element, what is stored, the loops around."""
        self.counters = {s.var.key for f in ir.walk((loop,)) if isinstance(f, For) for s in f.init if isinstance(s, Declare)}

    def tiles(self) -> Tiles:
        if tiles.counter(self.loop) is None or self.loop.cond is None:
            raise DoesNotApply
        if any(n.var in self.plan.facts.varying and n.var not in self.counters for n in self.loop.cond.walk()):
            raise DoesNotApply
        sums: list[tuple[Expr, Expr, tuple[For, ...]]] = []
        for stmt in self.loop.body:
            if isinstance(stmt, Declare):
                if stmt.init is not None or len(stmt.var.dims) != 1 or stmt.var.type != "float" or stmt.var.key in self.plan.facts.addressed:
                    raise DoesNotApply
                self.filled[stmt.var.key] = []
                continue
            loops, inner = _nest(stmt)
            place, value = inner.expr.children if inner.expr.kind == "assign" else (None, None)
            element = tiles.element(place) if place is not None else None
            if place is None or value is None or element is None:
                raise DoesNotApply
            if element[0] in self.filled and inner.expr.name == "=" and not sums:
                self.filled[element[0]].append((place, value, loops))
            elif element[0] in self.plan.arrays and inner.expr.name == "+=" and not sums:
                sums.append((place, value, loops))
            else:
                raise DoesNotApply
        if len(sums) != 1:
            raise DoesNotApply
        return self.products(*sums[0])

    def products(self, place: Expr, value: Expr, loops: tuple[For, ...]) -> Tiles:
        value = ir.bare(value)
        element = tiles.element(place)
        count = tiles.counter(loops[-1])
        if element is None or count is None or value.kind != "binary" or value.name != "*" or len(loops) < 2:
            raise DoesNotApply
        var = self.plan.variables[element[0]]
        moves = [tiles.step(index, count.key) for index in element[1]]
        if var.type != "float" or len(element[1]) != len(var.dims) or any(moves[:-1]) or moves[-1] != 1 or var.key in self.plan.facts.addressed:
            raise DoesNotApply
        if (len(var.dims) > 1 and tiles.written(var.dims[-1]) != count.end) or not _begins_rows(element[1][-1], count):
            raise DoesNotApply
        factors = [ir.bare(child) for child in value.children]
        right = [f for f in factors if any(n.var == count.key for n in f.walk())]
        left = [f for f in factors if f not in right]
        if len(right) != 1 or len(left) != 1:
            raise DoesNotApply
        vectors: set[int] = set()
        ahead = self.sources(right[0], count.key, count.end, vectors)
        shared = self.sources(left[0], None, "", set())
        return Tiles(self.loop, var.key, count.end, frozenset(vectors), tuple(ahead), tuple(shared))

    def sources(self, factor: Expr, along: int | None, length: str, vectors: set[int]) -> list[str]:
        """Return the places in memory that a factor comes from, as far as they depend on threadIdx.x."""
        element = tiles.element(factor)
        if element is None or factor.type.removeprefix("const ") != "float":
            raise DoesNotApply
        if along is not None and (any(tiles.step(i, along) for i in element[1][:-1]) or tiles.step(element[1][-1], along) != 1):
            raise DoesNotApply
        if element[0] not in self.filled:
            return [thread_places.of_thread(factor, self.plan, self.constants, self.counters)]
        if along is not None and not _begins_rows(element[1][-1], tiles.Counter(along, length)):
            raise DoesNotApply
        fills = self.filled[element[0]]
        if not fills or any(n.kind == "member" for n in factor.walk()):
            raise DoesNotApply
        texts: list[str] = []
        for place, value, loops in fills:
            inner = tiles.counter(loops[-1])
            source, target = tiles.element(ir.bare(value)), tiles.element(place)
            if inner is None or source is None or target is None or source[0] in self.filled or source[0] in self.plan.arrays:
                raise DoesNotApply
            if along is not None:
                steps = [tiles.step(index, inner.key) for index in (*source[1], *target[1])]
                if inner.end != length or any(steps[: len(source[1]) - 1]) or steps[len(source[1]) - 1] != 1 or steps[-1] != 1:
                    raise DoesNotApply
                if not _begins_rows(target[1][-1], inner):
                    raise DoesNotApply
                vectors.add(element[0])
            texts.append(thread_places.of_thread(ir.bare(value), self.plan, self.constants, self.counters))
        return texts


def _begins_rows(index: Expr, count: tiles.Counter) -> bool:
    """Is an index the counter and multiples of its end? Else rows overlap: `sums[i + j]`."""
    index = ir.bare(index)
    if index.kind == "cast":
        return _begins_rows(index.children[-1], count)
    if index.kind == "binary" and index.name == "+":
        return any(_begins_rows(one, count) and _is_multiple(other, count.end) for one, other in (index.children, index.children[::-1]))
    return index.kind == "name" and index.var == count.key


def _is_multiple(expr: Expr, size: str) -> bool:
    """Is a sum of products known to be a multiple of a size?"""
    expr = ir.bare(expr)
    number = literal(expr)
    if number is not None:
        return number == 0 or (size.isdigit() and int(size) > 0 and number % int(size) == 0) or tiles.written(expr) == size
    if expr.kind == "cast":
        return _is_multiple(expr.children[-1], size)
    if expr.kind == "binary" and expr.name in ("+", "-", "*"):
        return (any if expr.name == "*" else all)(_is_multiple(child, size) for child in expr.children)
    return tiles.written(expr) == size


def _nest(stmt: Stmt) -> tuple[tuple[For, ...], Evaluate]:
    """Return loops of one statement each, and what is inside the last one."""
    loops: list[For] = []
    while isinstance(stmt, For) and len(stmt.body) == 1 and tiles.counter(stmt) is not None:
        loops.append(stmt)
        stmt = stmt.body[0]
    if not loops or not isinstance(stmt, Evaluate):
        raise DoesNotApply
    return tuple(loops), stmt


class _Writer:
    """Writes the body of the loop over k for several threads."""

    def __init__(self, of: Tiles, plan: Plan, printer: Printer, values: Sequence[str]) -> None:
        self.of, self.plan, self.printer, self.values = of, plan, printer, values

    def statement(self, stmt: Stmt) -> list[str]:
        if isinstance(stmt, Declare):
            name = stmt.var.name
            return [
                f"ww::floats {name}_v[vectors_at_once][({stmt.var.dims[0]}) / ({self.of.length})];"
                if stmt.var.key in self.of.vectors
                else f"float {name}[{stmt.var.dims[0]}];"
            ]
        loops, inner = _nest(stmt)
        place, value = inner.expr.children
        element = tiles.element(place)
        assert element is not None
        if element[0] in self.of.vectors:
            return self.around(loops, f"{self.vector(place)} = ww::load(&{self.printer.expr(ir.bare(value))});")
        if element[0] != self.of.sums:
            return self.numbers(loops, place, ir.bare(value))
        count = tiles.counter(loops[-1])
        assert count is not None
        factors = [ir.bare(child) for child in ir.bare(value).children]
        texts = [self.factor(f, any(n.var == count.key for n in f.walk())) for f in factors]
        row = f"({self.flat(place)}) / ({self.of.length})"
        sums = f"{self.plan.variables[element[0]].name}_v[nth_vector][({row}) % rows_at_once]"
        return self.around(loops, f"if (({row}) / rows_at_once == nth_part) {sums} += {' * '.join(texts)};")

    def numbers(self, loops: Sequence[For], place: Expr, value: Expr) -> list[str]:
        """Return a statement that reads numbers one by one: from one address on, where they follow one another."""
        heads = [[UNROLL, self.printer.loop_head(loop)] for loop in loops]
        source, count = tiles.element(value), tiles.counter(loops[-1])
        if source is None or count is None or tiles.step(source[1][-1], count.key) != 1 or any(tiles.step(i, count.key) != 0 for i in source[1][:-1]):
            return [line for head in heads for line in head] + [f"{INDENT}{self.printer.expr(place)} = {self.printer.expr(value)};"]
        first = loops[-1].init[0]
        assert isinstance(first, Declare)
        start = self.printer.expr(value.map(lambda n: ir.number(0) if n.var == count.key else None))
        outer = [line for head in heads[:-1] for line in head]
        return [
            *outer,
            "{",
            f"  const float* const row_from = &{start};",
            *heads[-1],
            f"  {self.printer.expr(place)} = row_from[{first.var.name}];",
            "}",
        ]

    def factor(self, factor: Expr, along: bool) -> str:
        element = tiles.element(factor)
        assert element is not None
        if not along:
            return self.printer.expr(factor)
        return self.vector(factor) if element[0] in self.of.vectors else f"ww::load(&{self.printer.expr(factor)})"

    def vector(self, place: Expr) -> str:
        """Return the vector that an element of a row begins."""
        element = tiles.element(place)
        assert element is not None
        return f"{self.plan.variables[element[0]].name}_v[nth_vector][({self.flat(place)}) / ({self.of.length})]"

    def flat(self, place: Expr) -> str:
        """Return the number of an element in its array."""
        element = tiles.element(place)
        assert element is not None
        var = self.plan.variables[element[0]]
        flat = self.printer.expr(element[1][0])
        for dim, index in zip(var.dims[1:], element[1][1:], strict=True):
            flat = f"({flat}) * ({dim}) + {self.printer.expr(index)}"
        return flat

    def around(self, loops: Sequence[For], text: str) -> list[str]:
        """Return a statement on whole rows inside all loops but the last, whose counter is 0, for each vector of threads."""
        first = loops[-1].init[0]
        assert isinstance(first, Declare)
        heads = [line for loop in loops[:-1] for line in (UNROLL, self.printer.loop_head(loop))]
        own = " ".join(
            ["[[maybe_unused]] const int thread_x = first_lane + nth_vector * threads_at_once;", f"[[maybe_unused]] {NUMBER}", *self.values]
        )
        return [*heads, *EACH_VECTOR, f"{{ {own} constexpr {first.var.type} {first.var.name} = 0; {text} }}"]
