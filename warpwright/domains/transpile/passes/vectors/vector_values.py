"""What threads of a row read in a loop, as values of vectors of neighbouring threads: one number for all, neighbours, or a row for each thread."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.bounds import coefficient, is_x, linear, mentions_x
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED
from warpwright.domains.transpile.ir import Expr, Var
from warpwright.domains.transpile.printing import Printer
from warpwright.domains.transpile.vmath import BY_LANES, CHOICES

ROWS = "rows_at_once"
"""Rows of threads at once (`ww::thread_rows`), where what neighbours read is the same for each row: it is read once for all of them. With one row of
32 threads there are two sums of 16 numbers on AVX-512, which wait for each other. (A product of 512 rows, one thread an element: 10.7 ms by one row,
2.9 by four on one processor; 6.6 by four and 2.8 by eight on another, whose MKL takes 3.0. Its second operand by rows: 8.6 and 2.8.)"""

_MEMBERS = {"float2": "xy", "float3": "xyz", "float4": "xyzw"}

_NULL = ("NULL", "nullptr", "__null")

NUMBERS = ("INFINITY", "FLT_MAX", "FLT_MIN", "CUDART_INF_F", "HUGE_VALF")
"""Names of floats."""


class VectorValues:
    """Prints expressions for a number of vectors of threads."""

    def __init__(self, plan: Plan, printer: Printer, values: Sequence[str], count: int | str, left: str = "", rows: bool = False) -> None:
        self.plan, self.printer, self.values, self.across = plan, printer, values, count
        self.count = f"{count} * {ROWS}" if rows else str(count)
        """Vectors at once, as it is written."""
        self.in_rows = rows
        """Vectors of one row of threads."""
        self.left = f", {left}" if left else ""
        """How many lanes of the vector are threads, as an argument; nothing where all are."""
        self.sums: set[int] = set()
        self.doubles: set[int] = set()
        """Keys of sums of doubles."""
        self.numbers: set[int] = set()
        """Keys of whole numbers that each thread has for itself."""
        self.kept: set[int] = set()
        """Keys of float values that do not change, kept as vectors."""
        self.fixed: set[int] = set()
        """Keys of float values that do not change; each may be one number or a vector."""
        self.declared: list[str] = []
        """Declarations of whole numbers inside the region, which each vector repeats."""
        self.repeated: list[str] = []
        """Declarations of floats inside a loop, which stores nothing: they are repeated too."""
        self.counters: set[int] = set()
        self.counter = 0
        """Of the innermost loop."""
        self.of_rows: set[int] = set()
        """Keys of whole numbers that are read from memory, one for a row of threads."""
        self.moved: set[int] = set()
        """Keys of whole numbers that change, and are one for all threads."""
        self.rows: dict[str, str] = {}
        """Address of a row's element -> name of the vectors that it is read into; only while a loop over whole rows is written."""
        self.by_rows = False
        self.found_rows = False
        self.has_rows = False
        self.has_stores_to_rows = False
        self.same_in_rows = False
        """Whether neighbours are read in a loop that are the same for each row of threads, ..."""
        self.apart_in_rows = False
        """... and something that is not."""
        self.starts_along_y = False
        """Whether a loop begins elsewhere for each row of threads."""
        self.rows_apart = False
        """Whether rows of the threads' own differ between rows of threads."""
        self.storing = False
        """Whether the loop around stores to memory."""
        self.sum_loops = 0
        self.before: dict[str, str] = {}
        """Value that a loop's steps do not change -> name of the vectors that it is read into before the innermost loop."""

    def wide(self, expr: Expr) -> str:
        """Return a number, or a float, as doubles."""
        if expr.kind == "literal" and ir.text_of(expr).replace(".", "", 1).isdigit():
            return f"(ww::doubles{{}} + (double){ir.text_of(expr)})"
        if expr.type.removeprefix("const ") != "float":
            raise DoesNotApply
        return f"ww::widened(({self.value(expr)}) - ww::floats{{}})"

    def value(self, expr: Expr) -> str:
        if expr.kind == "cast" and expr.type == "float" and (inner := ir.bare(expr.children[-1])).kind == "name" and inner.var in self.doubles:
            return f"ww::narrowed({inner.name}_r[nth])"
        if expr.kind == "paren":
            return f"({self.value(expr.children[0])})"
        if expr.kind in ("binary", "unary") and expr.type.removeprefix("const ") in (*SIGNED, *UNSIGNED, "bool"):
            raise DoesNotApply  # `m / 2` of whole numbers is not that of floats
        if expr.kind == "binary" and expr.name in ("+", "-", "*", "/") and len(expr.children) == 2:
            return f"{self.value(expr.children[0])} {expr.name} {self.value(expr.children[1])}"
        if expr.kind == "unary" and expr.name == "-":
            return f"-({self.value(expr.children[0])})"
        if expr.kind == "conditional" and len(expr.children) == 3:
            return self.choice(expr)
        if expr.kind == "call":
            return self.call(expr)
        if expr.kind == "literal" and (ir.text_of(expr).endswith(("f", "F")) or ir.text_of(expr).isdigit()):
            return f"(float){ir.text_of(expr)}"
        if ir.text_of(expr) in NUMBERS:
            return f"(float){ir.text_of(expr)}"
        if expr.kind == "name" and expr.var is not None:
            return self.name(expr.var)
        if expr.kind == "index" and expr.type.removeprefix("const ") == "float":
            return self.element(expr)
        if self.is_member(expr):
            return self.member(expr)
        raise DoesNotApply

    def call(self, expr: Expr) -> str:
        """Return a function of floats. (The largest of each of 1,024 columns of 1,024 rows, a thread a column: 3.4 ms one by one, 0.13 so.)"""
        given = expr.children[1:]
        floats = [f"({self.value(e)}) - ww::floats{{}}" for e in given]
        if expr.name in BY_LANES and len(given) == 1:
            return f"ww::each_lane([](const float v) {{ return {BY_LANES[expr.name]}(v); }}, {floats[0]})"
        chooses = expr.name.startswith("f") or all(e.type.removeprefix("const ") == "float" for e in given)  # max and min of whole numbers are not
        if expr.name in CHOICES and len(given) == 2 and chooses:
            return f"{CHOICES[expr.name]}({', '.join(floats)})"
        raise DoesNotApply

    def is_member(self, expr: Expr) -> bool:
        """Is this `a[i].x` of an array of float2, float3 or float4?"""
        inner = expr.children[0] if expr.kind == "member" and len(expr.children) == 1 else None
        return inner is not None and inner.kind == "index" and expr.name in _MEMBERS.get(inner.type.removeprefix("const "), "")

    def member(self, expr: Expr) -> str:
        """Return one number of an array's element: one for all threads, or one of each thread's own element."""
        _, whole = self.place(expr.children[0])
        text = self.printer.expr(expr)
        if not mentions_x(whole):
            return text
        if not affine(whole):
            raise DoesNotApply
        inside = " ".join([*self.values, *self.declared])
        gathered = f"ww::gathered([&](const int thread_x) {{ {inside} return {text}; }}, thread_x{self.left})"
        if not self.counters:
            return gathered
        if any(node.var in self.counters | self.of_rows or node.kind == "index" for node in whole.walk()):
            raise DoesNotApply
        return f"{self.before.setdefault(gathered, f'before_{len(self.before) + 1}')}[nth]"

    def name(self, key: int) -> str:
        var = self.plan.variables.get(key)
        if var is None:
            raise DoesNotApply
        if key in self.sums | self.kept:
            return f"{var.name}_r[nth]"
        kind, same = var.type.removeprefix("const "), not var.dims and (var.space == "parameter" or key in self.plan.scalars)
        if key in self.fixed or (kind == "float" and same):
            return var.name
        if kind == "int" and same:
            return f"(float){var.name}"
        raise DoesNotApply

    def choice(self, expr: Expr) -> str:
        """Return `c ? a : b` where all threads agree on c."""
        cond, one, other = expr.children
        names = [n for n in cond.walk() if n.var is not None]
        same = all(n.var in self.plan.scalars or self.plan.variables[n.var or 0].space == "parameter" for n in names)
        if not same or not ir.is_quiet(cond) or any(n.name == "threadIdx" or (n.kind == "other" and ir.text_of(n) not in _NULL) for n in cond.walk()):
            raise DoesNotApply
        return f"(({self.printer.expr(cond)}) ? ({self.value(one)}) - ww::floats{{}} : ({self.value(other)}) - ww::floats{{}})"

    def offset(self, base: Expr) -> tuple[Var, Expr | None] | None:
        """Return the array that a pointer points into, and how far behind its start; None where that is not known."""
        whole: Expr | None = None
        inner = ir.bare(base)
        for _ in range(8):
            var = self.plan.variables.get(inner.var) if inner.kind == "name" and inner.var is not None else None
            if var is None or var.dims:
                return None
            if var.space == "parameter" or var.key in self.plan.scalars:
                return var, whole
            declaration = self.plan.facts.declared.get(var.key)
            if declaration is None or declaration.init is None or self.plan.facts.assigned.get(var.key) or var.key in self.plan.facts.addressed:
                return None
            inner = ir.bare(declaration.init)
            while inner.kind == "binary" and inner.name == "+" and len(inner.children) == 2:
                inner, more = ir.bare(inner.children[0]), inner.children[1]
                whole = more if whole is None else Expr("binary", (ir.paren(more), " + ", whole), more.line, "+", None, "long")
        return None

    def element(self, expr: Expr) -> str:
        """Return an array element: one for all threads, as many as a vector holds, or one of each thread's row."""
        _, whole = self.place(expr)
        text = self.printer.expr(expr)
        along_y = any(n.kind == "member" and n.name == "y" and n.children[0].name == "threadIdx" for n in whole.walk() if n.children)
        if self.counter:
            self.apart_in_rows |= along_y
            self.same_in_rows |= not along_y and coefficient(whole) == 1
        if not mentions_x(whole):
            return text
        if coefficient(whole) == 1:
            return f"ww::load(&{text}{self.left})"
        if any(n.var in self.of_rows for n in whole.walk()) or not affine(whole) or (self.counter and tiles.step(whole, self.counter) != 1):
            raise DoesNotApply
        if self.counter:
            self.found_rows = self.has_rows = True
            self.rows_apart |= along_y
            self.same_in_rows |= not along_y
        if not self.by_rows:
            inside = " ".join([*self.values, *self.declared])
            return f"ww::gathered([&](const int thread_x) {{ {inside} return {text}; }}, thread_x{self.left})"
        row = self.rows.setdefault(f"&{text}", f"row_{len(self.rows) + 1}")
        return f"{row}[nth{f' % {self.across}' if self.in_rows else ''}][nth_step]"

    def number(self, expr: Expr) -> str:
        """Return a whole number that is one for a row of threads as a vector."""
        if any(n.kind == "index" for n in expr.walk()) or expr.type.removeprefix("const ") != "int":
            raise DoesNotApply
        with_counters = expr if expr.kind == "name" and expr.var in self.counters else self.of_row(expr)
        return f"ww::spread<ww::ints>((int)({self.printer.expr(with_counters)}))"

    def stored_number(self, place: Expr, name: str, operator: str) -> str:
        """Return the store of each thread's whole number to neighbouring places."""
        if operator != "=" or place.kind != "index" or place.type != "int" or coefficient(self.place(place)[1]) != 1:
            raise DoesNotApply
        left = f", ww::from_lane(0) < {self.left.removeprefix(', ')}" if self.left else ""
        return f"ww::store_lanes(&{self.printer.expr(place)}, {name}_r[nth]{left});"

    def place(self, expr: Expr) -> tuple[Var, Expr]:
        """Return the array of an element, and its index with local values replaced."""
        base, index = expr.children
        if base.kind == "name" and (behind := self.offset(base)) is not None and behind[1] is not None:
            base, index = ir.name_of(behind[0]), Expr("binary", (ir.paren(behind[1]), " + ", index), index.line, "+", None, index.type)
        whole = self.linear(index)
        while base.kind == "index":
            if mentions_x(self.linear(base.children[1])):
                raise DoesNotApply
            base = base.children[0]
        var = self.plan.variables.get(base.var) if base.kind == "name" and base.var is not None else None
        if var is None or (var.space == "local" and (var.dims or var.key not in self.plan.scalars)):
            raise DoesNotApply
        return var, whole

    def linear(self, index: Expr) -> Expr:
        """Return an index with local values replaced; the loops' counters stay, and so does what is read from memory, one for a row of threads."""
        read: dict[str, Expr] = {}

        def hidden(node: Expr) -> Expr | None:
            if node.kind != "index":
                return None
            name = f"ww_read_{len(read)}"
            read[name] = self.of_row(node)
            return Expr("name", (name,), node.line, name, None, node.type)

        whole = linear(index.map(hidden), self.plan, self.counters | self.of_rows)
        return whole.map(lambda node: read.get(node.name) if node.kind == "name" else None) if read else whole

    def of_row(self, expr: Expr, counter: int | None = None) -> Expr:
        """Return an expression that is one for a row of threads, with local values replaced; it may read memory. Raises DoesNotApply for others."""
        if expr.kind in ("call", "lambda", "other", "lane", "assign", "conditional") or is_x(expr):
            raise DoesNotApply
        if expr.kind == "unary" and expr.name in ("*", "&", "++", "--"):
            raise DoesNotApply
        if expr.kind == "index":
            base, index = expr.children
            var = self.plan.variables.get(base.var) if base.kind == "name" and base.var is not None else None
            if var is None or not (var.space in ("parameter", "constant", "shared", "dynamic") or var.key in self.plan.scalars):
                raise DoesNotApply
            return expr.with_children([base, self.of_row(index, counter)])
        if expr.kind == "name" and expr.var is not None and expr.var != counter:
            whole = self.linear(expr)
            if mentions_x(whole):
                raise DoesNotApply
            return whole
        if expr.kind == "member":
            base = expr.children[0] if expr.children else expr
            same = base.var is None or base.var in self.plan.scalars or self.plan.variables[base.var].space == "parameter"
            if base.kind != "name" or not same:
                raise DoesNotApply
            return expr
        return expr.with_children([self.of_row(child, counter) for child in expr.children])


def affine(expr: Expr) -> bool:
    """Say whether an expanded expression moves by the same from thread to thread along x."""
    if is_x(expr) or not mentions_x(expr):
        return True
    if (expr.kind == "paren" and len(expr.children) == 1) or expr.kind == "cast":
        return affine(expr.children[-1])
    if expr.kind == "binary" and expr.name in ("+", "-"):
        return all(map(affine, expr.children))
    if expr.kind == "binary" and expr.name == "*":
        return any(not mentions_x(one) and affine(other) for one, other in (expr.children, expr.children[::-1]))
    return False
