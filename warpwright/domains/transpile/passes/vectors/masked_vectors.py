"""Masked vectors: threads that leave a loop at different times, or branch inside one, as explicit vectors of neighbouring threads under masks.

    while (n < most && x * x < 4) { x = x * x + c; ++n; }   ->   for (;;) { stay &= n < most & x * x < 4; if (none stays) break; x = stay ? ... : x; }

Compilers leave such a loop over threads scalar: it has a loop of unknown length, or two, or a branch, inside. What a vector's threads read in a loop
has to be one for all of them or lie side by side: gathers cost as much as the scalar loop, unless its depth is sums, which a thread alone waits for.
Each thread computes what it would compute alone.
(Steps of 3n + 1 from 32 Ki numbers: 3.1 ms one by one, 1.1 here; the nearest of 64 points for 64 Ki points in 8 dimensions: 7.9 and 0.8.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import conjuncts
from warpwright.domains.transpile.analysis.regions import Plan, changed, used
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, DoWhile, Evaluate, Expr, For, If, Jump, Stmt
from warpwright.domains.transpile.passes.vectors import packed_rows
from warpwright.domains.transpile.passes.vectors.masked_values import VECTORS, Value, Values, indented, plain_type, refuse_divisions
from warpwright.domains.transpile.printing import UNROLLED, Printer, trip_count


@dataclass(frozen=True)
class Masked:
    """A region that fits, and how it is written."""

    stmts: tuple[Stmt, ...]
    plan: Plan
    apart: bool
    """Whether its loops read and write elements one by one."""

    def lines(self, printer: Printer, values: Sequence[str], low: str, high: str) -> list[str]:
        """Return the loop over vectors of threads of a row from `low` to `high`; the last one may be filled in part.

        values: declarations of what is recomputed, for a vector's first thread.
        """
        whole, rest = (_Vectors(self.plan, printer, self.apart).body(self.stmts, mask) for mask in ("", "begun"))
        inside = ["[[maybe_unused]] const int thread_x = at_x;", *values]
        return [
            f"int at_x = {low};",
            f"for (; at_x + ww::width <= {high}; at_x += ww::width) {{",
            *(f"  {line}" for line in (*inside, *whole)),
            "}",
            f"if (at_x < {high}) {{",
            *(f"  {line}" for line in (*inside, f"const ww::ints begun = ww::from_lane(0) < {high} - at_x;", *rest)),
            "}",
        ]


def suits(stmts: Sequence[Stmt], plan: Plan, printer: Printer) -> Masked | None:
    """Return the region as vectors under masks, where compilers would leave it scalar and nothing in its loops has to be gathered; else None."""
    if not _has_control_inside(stmts) or used(stmts) & (plan.arrays | plan.lane_arrays):
        return None
    for apart in (False, True) if _sums_in_depth(stmts) else (False,):
        try:
            _Vectors(plan, printer, apart).body(stmts, "begun")
        except DoesNotApply:
            continue
        return Masked(tuple(stmts), plan, apart)
    return None


def _sums_in_depth(stmts: Sequence[Stmt]) -> bool:
    """Has each of the innermost of three loops or more a sum of floats that goes on from round to round, of at most two elements each?

    One thread alone waits in such a loop for each addition; of eight threads eight additions go on at once, which is worth reading elements one by
    one. What is further outside runs too seldom to count. (Attention with a row of queries a thread, AVX2: 0.26 of a plain loop before, 0.56 so.)"""
    deepest = max((depth for _, depth in _loops(stmts, 1)), default=0)
    inner = [loop for loop, depth in _loops(stmts, 1) if depth == deepest]
    return deepest >= _DEEP and all(_adds_up(loop) for loop in inner)


_DEEP = 3


def _loops(stmts: Sequence[Stmt], depth: int) -> list[tuple[For, int]]:
    """Return the counted loops with how deep they are."""
    found: list[tuple[For, int]] = []
    for stmt in stmts:
        if isinstance(stmt, For):
            found.append((stmt, depth))
        for body in ir.bodies(stmt):
            found += _loops(body, depth + isinstance(stmt, For))
    return found


def _adds_up(loop: For) -> bool:
    """Is the loop one sum of a product, in a variable from outside?"""
    one = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(one, Evaluate) or one.expr.kind != "assign" or one.expr.name != "+=" or one.expr.children[0].kind != "name":
        return False
    return plain_type(one.expr.children[0].type) == "float" and sum(n.kind == "index" for n in one.expr.walk()) <= 2


def _has_control_inside(stmts: Sequence[Stmt]) -> bool:
    """Is there a loop with a branch, a jump or a loop inside, or one whose length is not that of a counter?"""
    for stmt in ir.walk(tuple(stmts)):
        if isinstance(stmt, DoWhile) or (isinstance(stmt, For) and (not stmt.init or any(map(_is_control, ir.walk(stmt.body))))):
            return True
    return False


def _is_control(stmt: Stmt) -> bool:
    return isinstance(stmt, For | DoWhile | If | Jump)


@dataclass(frozen=True)
class _Loop:
    """A loop that threads leave on their own: names of the masks of those that stay in it, and of those in its present round."""

    stay: str
    inside: str


class _Vectors(Values):
    """Prints the statements for one vector of threads."""

    def __init__(self, plan: Plan, printer: Printer, apart: bool) -> None:
        super().__init__(plan, printer)
        self.apart = apart
        self.loops: list[_Loop | None] = []
        """The loops around; None where threads leave together."""
        self.number = 0

    def name(self, word: str) -> str:
        self.number += 1
        return f"{word}_{self.number}"

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def body(self, stmts: Sequence[Stmt], mask: str) -> list[str]:
        """Return the statements for the threads of a mask; empty: for all."""
        lines: list[str] = []
        for place, stmt in enumerate(stmts, 1):
            lines += self.statement(stmt, mask)
            loop = self.loops[-1] if self.loops else None
            if loop is not None and place < len(stmts) and _jumps(stmt):
                left = self.name("mask")
                lines += [f"const ww::ints {left} = {mask} & {loop.inside};", f"if (ww::some_lane({left})) {{"]
                return [*lines, *indented(self.body(stmts[place:], left)), "}"]
        return lines

    def statement(self, stmt: Stmt, mask: str) -> list[str]:
        leaves = isinstance(stmt, DoWhile) or (isinstance(stmt, For) and not self.is_counted(stmt))
        if mask not in ("", "begun") or leaves:  # a loop's step is computed once more when nobody stays
            for expr in (e for one in (stmt, *(stmt.init if isinstance(stmt, For) else ())) for e in ir.own_expressions(one)):
                refuse_divisions(expr)
        if isinstance(stmt, Declare):
            return self.declaration(stmt, mask)
        if isinstance(stmt, Evaluate):
            return self.evaluation(stmt.expr, mask)
        if isinstance(stmt, ir.Block):
            return ["{", *indented(self.body(stmt.body, mask)), "}"]
        if isinstance(stmt, If) and not stmt.constexpr:
            return self.branch(stmt, mask)
        if isinstance(stmt, For):
            return self.counted(stmt, mask) if self.is_counted(stmt) else self.loop(stmt, mask)
        if isinstance(stmt, DoWhile):
            return self.loop(stmt, mask)
        if isinstance(stmt, Jump):
            return self.jump(stmt, mask)
        raise DoesNotApply

    def declaration(self, stmt: Declare, mask: str) -> list[str]:
        var, init = stmt.var, stmt.init
        if var.dims or var.reference or stmt.direct or var.space != "local" or var.key in self.plan.facts.addressed:
            raise DoesNotApply
        kind, lines = plain_type(var.type), []
        changes = bool(self.plan.facts.assigned.get(var.key))
        alike = init is not None and self.is_uniform(init) and not any(n.kind in ("index", "call") for n in init.walk())
        if init is not None and alike and changes and kind in ("int", "long") and var.key not in self.plan.facts.varying:
            self.counters.add(var.key)
            self.moved.add(var.key)
            return [f"{kind} {var.name} = {self.printer.expr(init)};"]
        fixed = not changes and init is not None
        if fixed and alike and kind == "int":
            self.counters.add(var.key)  # one number for all threads
            return [f"{self.printer.declaration(stmt, const=True)};"]
        if fixed and init is not None and (var.type.endswith("*") or kind in ("int", "unsigned int")) and self.is_place(init):
            self.places.add(var.key)
            lines.append(f"{self.printer.declaration(stmt, const=True)};")
            if var.type.endswith("*"):
                return lines
        if kind not in VECTORS:
            raise DoesNotApply
        try:
            text = self.as_type(self.value(init, mask), kind) if init is not None else f"{VECTORS[kind]}{{}}"
        except DoesNotApply:
            if var.key in self.places:
                return lines  # it may serve for addresses alone
            raise
        self.types[var.key] = kind
        return [*lines, f"{VECTORS[kind]} {var.name}_lanes = {text};"]

    def evaluation(self, expr: Expr, mask: str) -> list[str]:
        if expr.kind == "binary" and expr.name == ",":
            return [line for part in expr.children for line in self.evaluation(part, mask)]
        place = ir.assigned(expr)
        if place is None:
            raise DoesNotApply
        if place.kind == "name" and place.var in self.moved:  # whether they move, all threads agree on
            if any(n.kind == "index" or not self.is_uniform(e) for e in expr.children[1:] for n in e.walk()):
                raise DoesNotApply
            return [f"{self.printer.expr(expr)};"]
        if expr.kind == "unary":
            operator, value = expr.name[0], Value("1", "int", False)
        else:
            operator, value = expr.name.removesuffix("="), self.value(expr.children[1], mask)
        if place.kind == "index":
            return [self.stored(place, operator, value, mask)]
        if place.kind != "name" or place.var not in self.types:
            raise DoesNotApply
        kind, name = self.types[place.var], f"{self.plan.variables[place.var].name}_lanes"
        new = self.as_type(self.operation(operator, Value(name, kind, True), value) if operator else value, kind)
        return [f"{name} = {f'{mask} ? {new} : {name}' if mask else new};"]

    def stored(self, place: Expr, operator: str, value: Value, mask: str) -> str:
        """Return a store to memory: side by side, or, outside of loops, wherever each thread stores."""
        kind = plain_type(place.type)
        if kind not in VECTORS or kind == "bool":
            raise DoesNotApply
        new = self.as_type(self.operation(operator, self.element(place, mask), value) if operator else value, kind)
        text, where = self.printer.expr(place), f", {mask}" if mask else ""
        if self.step(place) == 1:
            return f"ww::store_lanes(&{text}, {new}{where});"
        if self.depth:
            return f"ww::store_apart(&{text}, {self.distance(place)}, {new}{where});"
        array, index = self.array(place, mask)
        return f"ww::scatter_lanes({array}, {index}, {new}{where});"

    def branch(self, stmt: If, mask: str) -> list[str]:
        parts = conjuncts(stmt.cond)
        calm = [part for part in parts if not any(n.kind in ("index", "call") or n.name in ("/", "%") for n in part.walk())]
        alike = [part for part in calm if self.is_uniform(part)]
        if not stmt.other and 0 < len(alike) < len(parts):  # what all threads agree on is asked once
            text = " && ".join(f"({self.printer.expr(part)})" for part in alike)
            rest = replace(stmt, cond=_all([part for part in parts if part not in alike]))
            return [f"if ({text}) {{", *indented(self.branch(rest, mask)), "}"]
        cond = self.truth(stmt.cond, mask)
        if not cond.wide:
            lines = [f"if ({cond.text}) {{", *indented(self.body(stmt.then, mask))]
            return [*lines, *(["} else {", *indented(self.body(stmt.other, mask))] if stmt.other else []), "}"]
        taken = self.name("mask")
        lines = [f"const ww::ints {taken} = {f'{mask} & ' if mask else ''}({cond.text});", *self.under(stmt.then, taken)]
        if stmt.other:
            left = self.name("mask")
            lines += [f"const ww::ints {left} = {f'{mask} & ' if mask else ''}~{taken};", *self.under(stmt.other, left)]
        simple = not stmt.other and not any(isinstance(s, For | DoWhile) for s in ir.walk(stmt.then))
        whole = self.for_all(parts) if simple and not mask and self.depth else None
        if whole is not None:
            return [f"if ({whole}) {{", *indented(self.body(stmt.then, "")), "} else {", *indented(lines), "}"]
        return ["{", *indented(lines), "}"]

    def under(self, stmts: Sequence[Stmt], mask: str) -> list[str]:
        """Return statements under a mask; where they read memory, or have a loop, only if it holds for some thread."""
        all_inside = tuple(stmts)
        heavy = any(isinstance(s, For | DoWhile) for s in ir.walk(all_inside)) or any(e.kind in ("index", "call") for e in ir.expressions(all_inside))
        return [f"if (ww::some_lane({mask})) {{" if heavy else "{", *indented(self.body(stmts, mask)), "}"]

    # --- loops --------------------------------------------------------------------------------------------------------------------

    def is_counted(self, stmt: For) -> bool:
        """Do all threads that are in the loop count alike?"""
        first = stmt.init[0] if len(stmt.init) == 1 else None
        if (
            not isinstance(first, Declare)
            or first.init is None
            or plain_type(first.var.type) not in VECTORS
            or stmt.cond is None
            or stmt.step is None
        ):
            return False
        key, step = first.var.key, stmt.step
        place = ir.assigned(step)
        if place is None or place.kind != "name" or place.var != key or any(key in changed(s) for s in stmt.body):
            return False
        exprs = [first.init, stmt.cond, *step.children[1:]]
        return all(self.is_uniform(e, also=frozenset([key])) and not any(n.kind in ("index", "call") for n in e.walk()) for e in exprs)

    def counted(self, stmt: For, mask: str) -> list[str]:
        first = stmt.init[0]
        assert isinstance(first, Declare)
        self.counters.add(first.var.key)
        leaves = any(map(_jumps, stmt.body))
        head = self.printer.loop_head(stmt)
        if not leaves:
            trips = trip_count(stmt)
            unroll = [f"#pragma GCC unroll {trips}"] if trips is not None and trips <= UNROLLED else []
            lines = [*unroll, f"{head} {{", *indented(self.inside(stmt.body, mask, None)), "}"]
            lines = self.packed(stmt, lines) if self.apart and not mask else lines
        else:
            loop = _Loop(self.name("stay"), self.name("inside"))
            round_ = [f"ww::ints {loop.inside} = {loop.stay};", *self.inside(stmt.body, loop.inside, loop)]
            round_.append(f"if (!ww::some_lane({loop.stay})) break;")
            lines = ["{", f"  ww::ints {loop.stay} = {mask or 'ww::every_lane()'};", f"  {head} {{", *indented(indented(round_)), "  }", "}"]
        self.counters.discard(first.var.key)
        return lines

    def packed(self, stmt: For, as_it_was: list[str]) -> list[str]:
        """Return a loop of sums with the rows packed that it reads element by element; as it was where it is none."""
        found = packed_rows.nest(stmt, self)
        if found is None:
            return as_it_was
        depth, counters = self.depth, set(self.counters)
        try:
            return packed_rows.lines(found, self, lambda stmts: self.body(stmts, ""), as_it_was)
        except DoesNotApply:
            self.depth, self.counters = depth, counters
            return as_it_was

    def loop(self, stmt: For | DoWhile, mask: str) -> list[str]:
        """Return a loop that goes on while some thread is in it."""
        loop = _Loop(self.name("stay"), self.name("inside"))
        lines = [line for one in (stmt.init if isinstance(stmt, For) else ()) for line in self.statement(one, mask)]
        lines.append(f"ww::ints {loop.stay} = {mask or 'ww::every_lane()'};")
        self.depth += 1
        test = [f"{loop.stay} &= {self.as_mask(self.truth(stmt.cond, loop.stay))};"] if stmt.cond is not None else []
        test.append(f"if (!ww::some_lane({loop.stay})) break;")
        self.depth -= 1
        begun = [f"ww::ints {loop.inside} = {loop.stay};"]
        if isinstance(stmt, DoWhile):
            round_ = [*begun, *self.inside(stmt.body, loop.inside, loop), *test]
        else:
            after = self.evaluation(stmt.step, loop.stay) if stmt.step is not None else []
            round_ = [*test, *begun, *self.inside(stmt.body, loop.inside, loop), *after]
        return ["{", *indented([*lines, "for (;;) {", *indented(round_), "}"]), "}"]

    def inside(self, stmts: Sequence[Stmt], mask: str, loop: _Loop | None) -> list[str]:
        self.loops.append(loop)
        self.depth += 1
        lines = self.body(stmts, mask)
        self.depth -= 1
        self.loops.pop()
        return lines

    def jump(self, stmt: Jump, mask: str) -> list[str]:
        loop = self.loops[-1] if self.loops else None
        if loop is None or not mask:
            raise DoesNotApply
        gone = "" if mask == loop.inside else f" & ~{mask}"
        lines = [f"{loop.stay} = {loop.stay} & ~{mask};"] if stmt.word == "break" else []
        return [*lines, f"{loop.inside} = {loop.inside}{gone};" if gone else f"{loop.inside} = ww::ints{{}};"]


def _all(parts: Sequence[Expr]) -> Expr:
    """Return the condition that all parts hold."""
    whole = parts[0]
    for part in parts[1:]:
        whole = Expr("binary", (whole, " && ", part), part.line, "&&", None, "bool")
    return whole


def _jumps(stmt: Stmt) -> bool:
    """Does a jump in the statement leave the loop around it, or its round?"""
    if isinstance(stmt, Jump):
        return True
    return not isinstance(stmt, For | DoWhile) and any(_jumps(s) for body in ir.bodies(stmt) for s in body)
