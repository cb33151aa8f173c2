"""Accumulators: threads that each add up in a loop, from a start to a store, as explicit vectors of neighbouring threads.

    float s = 0; for (k...) s += a[row * n + k] * b[k * n + x]; c[row * n + x] = s;   ->   the same with s four vectors, of 4, 8 or 16 threads each

Compilers leave such loops scalar, or vectorise the inner one, which reads a column. What neighbouring threads read is one for all, lies side by
side, or
is a row for each thread (`k[x * n + i]`): rows are read 4, 8 or 16 elements at a time and exchanged in registers. The order of each sum stays.
(A product of matrices of 512 rows, one thread an element: 366 ms as compilers leave it.)
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.bounds import coefficient
from warpwright.domains.transpile.analysis.regions import Plan, used
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Stmt
from warpwright.domains.transpile.passes.vectors.distribution import distributed, stores
from warpwright.domains.transpile.passes.vectors.vector_values import VectorValues
from warpwright.domains.transpile.printing import Printer

AT_ONCE = 4
"""Vectors at once: as many sums as hide the time of a product; of a row that is known to be shorter, those it has. (Rows of 32 by AVX-512, weight
gradients of 1024 x 768, where each vector by itself reads a line of memory here and there: 0.48 to 0.84 ms one by one, 0.31 to 0.34 by two.)"""

ROWS_AT_ONCE = 2
"""The same where rows of each thread are exchanged in registers, of which 8 are needed for each vector. (Causal scores of attention, 256 positions of
64 numbers, AVX2: 1.00 ms by two, 1.03 by four; 2.5 where the exchange crossed the halves of registers; a plain OpenMP loop takes 1.09.)"""

_WHOLE = frozenset(["int", "unsigned int", "unsigned", "uint", "long", "size_t", "unsigned long", "long long"])


@dataclass(frozen=True)
class Sums:
    """A region that fits, and how it is written."""

    stmts: tuple[Stmt, ...]
    plan: Plan
    rows: bool
    """Whether threads read rows of their own."""
    by_thread_rows: bool
    """Whether several rows of threads read the same neighbours."""

    def of_thread_rows(self, printer: Printer, values: Sequence[str], low: str, high: str) -> list[str]:
        """Return the loops over vectors of several rows of threads from `group_y` on; what is left of the rows begins at `begun_x`."""
        lines = [f"begun_x = {low};"]
        for across in (1,) if self.rows else (2, 1):  # rows that are exchanged take a register for each of their elements
            worker = _Vectors(self.plan, printer, values, across, rows=True)
            size = f"{across} * ww::width"
            lines += [f"for (; begun_x + {size} <= {high}; begun_x += {size}) {{", "  const int at_x = begun_x;", *(f"  {t}" for t in worker.whole(self.stmts)), "}"]  # noqa: E501
        return lines

    def lines(self, printer: Printer, values: Sequence[str], low: str, high: str) -> list[str]:
        """Return the loops over vectors of threads of a row from `low` to `high`; the last one may be filled in part.

        values: declarations of what is recomputed for each thread.
        """
        lines = [f"int at_x = {low};"]
        for count in (f"ww::abreast(BX, {ROWS_AT_ONCE if self.rows else AT_ONCE})", 1):
            worker = _Vectors(self.plan, printer, values, count)
            lines += [f"for (; at_x + {count} * ww::width <= {high}; at_x += {count} * ww::width) {{", *(f"  {t}" for t in worker.whole(self.stmts)), "}"]  # noqa: E501
        last = _Vectors(self.plan, printer, values, 1, f"{high} - at_x")
        return [*lines, f"if (at_x < {high}) {{", *(f"  {t}" for t in last.whole(self.stmts)), "}"]


def suits(stmts: Sequence[Stmt], plan: Plan, printer: Printer, lasting: bool = False) -> Sums | None:
    """Return the region as sums, where it is some declarations, loops on float sums of its own and stores to neighbouring places; else None.

    lasting: later regions may read the sums; the block has its own shape.
    """
    later = used(stmts) & plan.arrays
    if not any(isinstance(s, For) for s in stmts) or used(stmts) & plan.lane_arrays or (later and not lasting):
        return None
    stmts = _needed(stmts, later)
    try:
        worker = _Vectors(plan, printer, (), 1)
        worker.region(stmts)
        worker.stored_for_later(stmts)
    except DoesNotApply:
        return None
    alike = not worker.has_stores_to_rows and not worker.rows_apart and not worker.starts_along_y
    by_thread_rows = alike and worker.same_in_rows and worker.apart_in_rows
    return Sums(tuple(stmts), plan, worker.has_rows, by_thread_rows) if worker.sums or worker.doubles else None


def _needed(stmts: Sequence[Stmt], later: Set[int]) -> list[Stmt]:
    """Return the statements without declarations that nothing reads, such as the flag of a guard that became a bound."""
    kept: list[Stmt] = []
    keys: set[int] = set()
    for stmt in reversed(stmts):
        if isinstance(stmt, Declare) and stmt.var.key not in keys | later and stmt.init is not None and ir.is_quiet(stmt.init):
            continue
        keys |= used([stmt])
        kept.insert(0, stmt)
    return kept


class _Vectors(VectorValues):
    """Prints the statements for a number of vectors of threads."""

    def whole(self, stmts: Sequence[Stmt]) -> list[str]:
        return [*self.region(stmts), *self.stored_for_later(stmts)]

    def stored_for_later(self, stmts: Sequence[Stmt]) -> list[str]:
        """Return the stores of the sums that later regions read, to the arrays in which each thread of the block has a place."""
        lines: list[str] = []
        for var in self.plan.in_order(used(stmts) & self.plan.arrays):
            if var.key not in self.sums | self.kept or not any(isinstance(s, Declare) and s.var.key == var.key for s in stmts):
                raise DoesNotApply
            lines += self.each(f"ww::store(&{var.name}_t[(thread_z * dim_y + thread_y) * dim_x + thread_x], {var.name}_r[nth]{self.left});")
        return lines

    def region(self, stmts: Sequence[Stmt]) -> list[str]:
        lines: list[str] = []
        for stmt in stmts:
            declared, repeated = len(self.declared), len(self.repeated)
            try:
                lines += self.statement(stmt)
                self.sum_loops += isinstance(stmt, For)
            except DoesNotApply:
                del self.declared[declared:], self.repeated[repeated:]
                self.forget({inner.var.key for inner in ir.walk((stmt,)) if isinstance(inner, Declare)})
                for part in distributed(stmt):
                    lines += self.one_by_one(part) if stores(part) else self.statement(part)
                    self.sum_loops += not stores(part)
        if not self.sum_loops:
            raise DoesNotApply
        return lines

    def forget(self, keys: set[int]) -> None:
        """Take back what was said of the variables of a statement that is written in another way."""
        for known in (self.sums, self.kept, self.doubles, self.fixed, self.of_rows, self.moved):
            known -= keys

    def one_by_one(self, stmt: Stmt) -> list[str]:
        """Return a loop that runs along the rows of each thread and changes memory only, for one thread after another: vectors of one thread."""
        self.counters.clear()
        self.before.clear()
        self.counter, self.found_rows, self.by_rows, self.storing = 0, False, False, False
        if not isinstance(stmt, For) or not self.runs_along_rows(stmt):
            raise DoesNotApply
        self.has_stores_to_rows = True
        used_here = used([stmt])
        if used_here & self.numbers:
            raise DoesNotApply
        keys = sorted(used_here & (self.sums | self.kept | self.doubles))
        held = [(self.plan.variables[key].name, "double" if key in self.doubles else "float") for key in keys]
        lanes = self.left.removeprefix(", ") or "ww::width"
        return [
            f"for (int nth = 0; nth < {self.count}; ++nth)",
            f"for (int nth_lane = 0; nth_lane < {lanes}; ++nth_lane) {{",
            "  [[maybe_unused]] const int thread_x = at_x + nth * ww::width + nth_lane;",
            *(f"  {line}" for line in (*self.values, *self.declared)),
            *(f"  const {kind} {name} = {name}_r[nth][nth_lane];" for name, kind in held),
            *self.printer.statement(stmt, 1),
            "}",
        ]

    def runs_along_rows(self, stmt: For) -> bool:
        """Say whether a loop stores to rows of the thread: all that it touches lies side by side from step to step, or stays the same."""
        inner = tiles.counter(stmt, any_start=True)
        if inner is None or not all(isinstance(s, Evaluate | Declare) for s in stmt.body):
            return False
        own = {s.var.key for s in ir.walk((stmt,)) if isinstance(s, Declare)}
        exprs = list(ir.expressions(stmt.body))
        if any(e.kind in ("lambda", "other", "lane", "conditional") or (e.kind == "call" and e.name not in PURE_CALLS) for e in exprs):
            return False
        stored = [target for e in exprs if (target := ir.assigned(e)) is not None and target.var not in own]
        if not stored or any(target.kind != "index" for target in stored):
            return False
        self.counters.add(inner.key)
        try:
            moving = [self.place(e)[1] for e in exprs if e.kind == "index"]
            return all(tiles.step(whole, inner.key) in (0, 1) for whole in moving) and all(
                tiles.step(self.place(target)[1], inner.key) == 1 and coefficient(self.place(target)[1]) != 1 for target in stored
            )
        finally:
            self.counters.discard(inner.key)

    def statement(self, stmt: Stmt) -> list[str]:
        if isinstance(stmt, Declare):
            return self.declaration(stmt)
        if isinstance(stmt, For):
            return self.loop(stmt)
        if isinstance(stmt, Evaluate) and stmt.expr.kind == "binary" and stmt.expr.name == ",":
            return [line for part in stmt.expr.children for line in self.statement(Evaluate(part, stmt.line))]
        if isinstance(stmt, Evaluate) and (place := ir.assigned(stmt.expr)) is not None and place.kind == "name" and place.var in self.moved:
            return [self.moves(stmt.expr)]
        if isinstance(stmt, Evaluate) and stmt.expr.kind == "assign" and stmt.expr.name in ("=", "+=", "-=", "*="):
            return self.each(self.assignment(stmt.expr))
        if isinstance(stmt, If):
            return self.each(self.chosen(stmt))
        raise DoesNotApply

    def moves(self, expr: Expr) -> str:
        """Return the change of a whole number that all threads move alike: once for all vectors."""
        if expr.kind == "unary":
            return f"{self.printer.expr(expr)};"
        place, value = expr.children
        if any(n.kind == "index" for n in value.walk()):
            raise DoesNotApply
        return f"{self.printer.expr(place)} {expr.name} {self.printer.expr(self.of_row(value))};"

    def chosen(self, stmt: If) -> str:
        """Return `if (value > most) { most = value; at = k; }` for a sum of its own, and for the place where it was found."""
        cond = ir.bare(stmt.cond)
        if stmt.other or stmt.constexpr or cond.kind != "binary" or cond.name not in ("<", "<=", ">", ">="):
            raise DoesNotApply
        if any(child.type.removeprefix("const ") != "float" for child in cond.children):
            raise DoesNotApply
        left, right = (f"(({self.value(e)}) - ww::floats{{}})" for e in cond.children)
        taken, new = f"{left} {cond.name} {right}", [self.taken(then) for then in stmt.then]
        if len(new) == 1:
            return f"{new[0][0]} = {taken} ? {new[0][1]} : {new[0][0]};"
        each = " ".join(f"{place} = taken ? {value} : {place};" for place, value in new)
        return f"{{ const auto taken = {taken}; {each} }}"

    def taken(self, stmt: Stmt) -> tuple[str, str]:
        """Return the vector that an assignment changes, and its new value."""
        if not isinstance(stmt, Evaluate) or stmt.expr.kind != "assign" or stmt.expr.name != "=":
            raise DoesNotApply
        place, value = stmt.expr.children
        if place.kind != "name" or place.var not in self.sums | self.numbers:
            raise DoesNotApply
        name = f"{self.plan.variables[place.var or 0].name}_r[nth]"
        return name, self.number(value) if place.var in self.numbers else f"(({self.value(value)}) - ww::floats{{}})"

    def each(self, text: str, count: str = "") -> list[str]:
        """Return a statement for each of the vectors; `count`: for so many of them."""
        head = ["[[maybe_unused]] const int thread_x = at_x + nth * ww::width;"]
        if self.in_rows:
            head = [f"[[maybe_unused]] const int thread_x = at_x + nth % {self.across} * ww::width, thread_y = group_y + nth / {self.across};"]
        times = 16 if self.in_rows else AT_ONCE
        inside = (*head, *self.values, *self.declared, *self.repeated, text)
        return [f"#pragma GCC unroll {times}", f"for (int nth = 0; nth < {count or self.count}; ++nth) {{", *(f"  {line}" for line in inside), "}"]

    # --- declarations -------------------------------------------------------------------------------------------------------------

    def declaration(self, stmt: Declare) -> list[str]:
        var = stmt.var
        if var.dims or var.reference or stmt.init is None or stmt.direct or var.key in self.plan.facts.addressed or var.space != "local":
            raise DoesNotApply
        changes = bool(self.plan.facts.assigned.get(var.key))
        if var.type == "float" and changes and not self.counters:
            self.sums.add(var.key)
            start = self.each(f"{var.name}_r[nth] = ({self.value(stmt.init)}) - ww::floats{{}};")
            return [f"ww::floats {var.name}_r[{self.count}];", *start]
        if var.type == "double" and changes and not self.counters:
            start = self.each(f"{var.name}_r[nth] = {self.wide(stmt.init)};")
            self.doubles.add(var.key)
            return [f"ww::doubles {var.name}_r[{self.count}];", *start]
        if var.type == "int" and changes and not self.counters and var.key in self.plan.facts.varying:
            start = self.each(f"{var.name}_r[nth] = {self.number(stmt.init)};")
            self.numbers.add(var.key)
            return [f"ww::ints {var.name}_r[{self.count}];", *start]
        if changes and (var.type not in _WHOLE or var.key in self.plan.facts.varying or any(n.kind == "index" for n in stmt.init.walk())):
            raise DoesNotApply
        if changes:  # what all threads move alike
            self.of_rows.add(var.key)
            self.moved.add(var.key)
            return [f"{var.type} {var.name} = {self.printer.expr(self.of_row(stmt.init))};"]
        if var.type == "float" and self.counters and not (self.storing or self.moved or stmt.init.keys & (self.sums | self.doubles)):
            self.repeated.append(f"const auto {var.name} = {self.value(stmt.init)};")
            self.fixed.add(var.key)
            return []
        if var.type == "float":  # in a loop too, where what it is computed from changes before it is read
            once = self.each(f"{var.name}_r[nth] = ({self.value(stmt.init)}) - ww::floats{{}};")
            self.kept.add(var.key)
            return [f"ww::floats {var.name}_r[{self.count}];", *once]
        if var.type in _WHOLE and any(n.kind == "index" for n in stmt.init.walk()):
            text = self.printer.declaration(replace(stmt, init=self.of_row(stmt.init)), const=True)
            self.of_rows.add(var.key)
            self.starts_along_y = True
            return [f"{text};"]
        if stmt.init.keys & self.moved:
            raise DoesNotApply  # it would be computed anew after the move
        pointer = var.type.endswith("*") and self.offset(ir.name_of(var)) is not None
        if not (pointer or var.type in _WHOLE) or not ir.is_quiet(stmt.init) or any(n.kind in ("conditional", "other") for n in stmt.init.walk()):
            raise DoesNotApply
        self.declared.append(f"{self.printer.declaration(stmt, const=True)};")
        return []

    # --- loops --------------------------------------------------------------------------------------------------------------------

    def loop(self, stmt: For) -> list[str]:
        """Return a loop that all threads go through alike; where threads have rows of their own, as many of its steps at once as a vector holds."""
        if len(stmt.init) != 1 or not isinstance(first := stmt.init[0], Declare) or stmt.cond is None or stmt.step is None:
            raise DoesNotApply
        key = first.var.key
        if first.init is None:
            raise DoesNotApply
        first = replace(first, init=self.head(first.init, key))
        stmt = replace(stmt, init=(first,), cond=self.head(stmt.cond, key))
        step = stmt.step
        if step is None or self.head(step, key) is not step:
            raise DoesNotApply
        outer, around, self.storing = self.counter, self.storing, stores(stmt)
        if self.storing and (self.counters or any(n.kind == "index" for e in (stmt.cond, first.init) if e is not None for n in e.walk())):
            raise DoesNotApply  # what is stored may be what says how far the loop goes
        self.counters.add(key)
        self.counter = key
        declared, repeated = len(self.declared), len(self.repeated)
        self.found_rows = False
        body = [line for inner in stmt.body for line in self.statement(inner)]
        del self.declared[declared:], self.repeated[repeated:]
        lines = [f"{self.printer.loop_head(stmt)} {{", *(f"  {line}" for line in body), "}"]
        if self.storing and (self.found_rows or self.before):
            raise DoesNotApply  # what is read ahead may be what the loop stores
        self.storing = around
        if self.found_rows:
            lines = self.whole_rows(stmt, first)
        if self.before:
            lines = [*self.read_before(stmt), *lines]
        self.counter = outer
        self.counters.discard(key)
        self.found_rows = False
        return lines

    def head(self, expr: Expr, key: int) -> Expr:
        """Return a part of a loop's head, where it is one for a row of threads: with local values replaced where rows differ, or memory is read."""
        if any(n.kind == "index" or n.name == "threadIdx" or (n.var in self.plan.facts.varying and n.var != key) for n in expr.walk()):
            self.starts_along_y = True
            return self.of_row(expr, key)
        if any(n.kind in ("call", "lambda", "other") for n in expr.walk()):
            raise DoesNotApply
        return expr

    def read_before(self, stmt: For) -> list[str]:
        """Return the reading of what a loop's steps do not change, unless the loop has no step: then there may be nothing to read."""
        read, self.before = self.before, {}
        gathered = [line for text, name in read.items() for line in self.each(f"{name}[nth] = {text};")]
        arrays = [f"ww::floats {name}[{self.count}];" for name in read.values()]
        return [*arrays, f"{self.printer.loop_head(stmt)} {{", *(f"  {line}" for line in gathered), "  break;", "}"]

    def whole_rows(self, stmt: For, first: Declare) -> list[str]:
        """Return a loop over steps of one in which rows are read as vectors, and what is left of it with one element a time."""
        inner = tiles.counter(stmt, any_start=True)
        if inner is None or any(isinstance(s, For) for s in ir.walk(stmt.body)) or first.var.type not in ("int", "long", "unsigned int", "unsigned"):
            raise DoesNotApply
        assert stmt.cond is not None and first.init is not None
        name, end = first.var.name, self.printer.expr(stmt.cond.children[1])
        declared, repeated = len(self.declared), len(self.repeated)
        self.by_rows, self.rows = True, {}
        body = [line for one in stmt.body for line in self.statement(one)]
        del self.repeated[repeated:]  # values of one step
        count = str(self.across) if self.in_rows else self.count
        reads = [f"ww::floats {row}[{count}][ww::width];" for row in self.rows.values()]
        for address, row in self.rows.items():
            reads += self.each(
                f"const auto {row}_at = [&](const int thread_x) {{ {' '.join([*self.values, *self.declared])} return {address}; }}; "
                f"ww::load_rows({row}_at(thread_x), {row}_at(thread_x + 1) - {row}_at(thread_x), {row}[nth]{self.left});",
                count,
            )
        self.by_rows = False
        del self.declared[declared:], self.repeated[repeated:]
        rest = [line for one in stmt.body for line in self.statement(one)]
        del self.declared[declared:], self.repeated[repeated:]
        kind = first.var.type
        return [
            f"{kind} {name}_begun = {self.printer.expr(first.init)};",
            f"for (; {name}_begun + ww::width <= {end}; {name}_begun += ww::width) {{",
            *(f"  {line}" for line in [f"const {kind} {name} = {name}_begun;", *reads]),
            "#pragma GCC unroll 16",
            f"  for (int nth_step = 0; nth_step < ww::width; ++nth_step) {{ const {kind} {name} = {name}_begun + nth_step;",
            *(f"    {line}" for line in body),
            "  }",
            "}",
            f"for (; {name}_begun < {end}; ++{name}_begun) {{ const {kind} {name} = {name}_begun;",
            *(f"  {line}" for line in rest),
            "}",
        ]

    # --- assignments -------------------------------------------------------------------------------------------------------------------

    def assignment(self, expr: Expr) -> str:
        place, value = expr.children
        if place.kind == "name" and place.var in self.doubles:
            return f"{self.plan.variables[place.var or 0].name}_r[nth] {expr.name} {self.wide(value)};"
        if value.kind == "name" and value.var in self.numbers and not self.counters:
            return self.stored_number(place, self.plan.variables[value.var or 0].name, expr.name)
        text = self.value(value)
        if place.kind == "name" and place.var in self.sums:
            name = self.plan.variables[place.var or 0].name
            return f"{name}_r[nth] {expr.name} ({text}){' - ww::floats{}' if expr.name == '=' else ''};"
        member = self.is_member(place)
        if (self.counters and (member or not self.storing)) or not (member or place.kind == "index"):
            raise DoesNotApply
        if not member and place.type.removeprefix("const ") != "float":
            raise DoesNotApply
        target = self.member(place) if member else self.element(place)
        if target.startswith("ww::gathered(") and not self.counters:
            inside = " ".join([*self.values, *self.declared])
            new = f"({text}) - ww::floats{{}}" if expr.name == "=" else f"{target} {expr.name[0]} ({text})"
            return f"ww::scattered([&](const int thread_x) -> float& {{ {inside} return {self.printer.expr(place)}; }}, thread_x, {new}{self.left});"
        if not target.startswith("ww::load("):
            raise DoesNotApply
        address = target.removeprefix("ww::load(").removesuffix(f"{self.left})")
        new = f"({text}) - ww::floats{{}}" if expr.name == "=" else f"{target} {expr.name[0]} ({text})"
        return f"ww::store({address}, {new}{self.left});"
