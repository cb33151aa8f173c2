"""Masked vectors: threads that leave a loop at different times, or branch inside one, as explicit vectors of neighbouring threads under masks.

    while (n < most && x * x < 4) { x = x * x + c; ++n; }   ->   for (;;) { stay &= n < most & x * x < 4; if (none stays) break; x = stay ? ... : x; }

Compilers leave such a loop over threads scalar: it has a loop of unknown length, or two, or a branch, inside. What a vector's threads read in a loop has
to be one for all of them or lie side by side: gathers cost as much as the scalar loop. Each thread computes what it would compute alone.
(Steps of 3n + 1 of 32 Ki numbers: 4.4 ms one by one, 0.6 here; the nearest of 64 points for 64 Ki points in 8 dimensions: 11.6 and 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import coefficient, is_x, linear
from warpwright.domains.transpile.analysis.regions import Plan, used
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Declare, DoWhile, Evaluate, Expr, For, If, Jump, Stmt
from warpwright.domains.transpile.passes.loops.accumulators import NUMBERS
from warpwright.domains.transpile.printing import Printer

_VECTORS = {"float": "ww::floats", "int": "ww::ints", "unsigned int": "ww::uints", "bool": "ww::ints"}
"""Type of a thread's value -> type of a vector of them. Truth is all bits or none."""

_RANK = ("bool", "int", "unsigned int", "float")
"""Of two types in one operation, the later one is the operation's."""

_FUNCTIONS = {
    "sqrtf": "sqrtf", "rsqrtf": "rsqrtf", "fabsf": "fabsf", "expf": "ww::exp_f", "__expf": "ww::exp_f", "logf": "ww::log_f", "__logf": "ww::log_f",
    "tanhf": "ww::tanh_f", "floorf": "floorf", "ceilf": "ceilf",
}  # fmt: skip
"""Functions of one float, and what computes them without branches."""

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Value:
    """Text of a value, its type, and whether it is a vector; else it is one for all threads."""

    text: str
    type: str
    wide: bool


@dataclass(frozen=True)
class Masked:
    """A region that fits, and how it is written."""

    stmts: tuple[Stmt, ...]
    plan: Plan
    by_thread_rows: bool = False

    def lines(self, printer: Printer, values: Sequence[str], low: str, high: str) -> list[str]:
        """Return the loop over vectors of threads of a row from `low` to `high`; the last one may be filled in part.

        values: declarations of what is recomputed, for a vector's first thread.
        """
        whole, rest = (_Vectors(self.plan, printer).region(self.stmts, mask) for mask in ("", "begun"))
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
    try:
        _Vectors(plan, printer).region(stmts, "begun")
    except DoesNotApply:
        return None
    return Masked(tuple(stmts), plan)


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


class _Vectors:
    """Prints the statements for one vector of threads."""

    def __init__(self, plan: Plan, printer: Printer) -> None:
        self.plan, self.printer = plan, printer
        self.types: dict[int, str] = {}
        """Key of a value that each thread has for itself -> its type."""
        self.counters: set[int] = set()
        """Keys of counters that are the same for all threads."""
        self.places: set[int] = set()
        """Keys of whole numbers and pointers that stand, for the first thread, beside their vectors."""
        self.loops: list[_Loop | None] = []
        """The loops around; None where threads leave together."""
        self.depth = 0
        self.guarded = 0
        """How many conditions are around the value at hand: what is one for all threads must not be read there."""
        self.number = 0

    def region(self, stmts: Sequence[Stmt], mask: str) -> list[str]:
        return self.body(stmts, mask)

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
                rest = [f"const ww::ints {left} = {mask} & {loop.inside};", f"if (ww::some_lane({left})) {{", *_in(self.body(stmts[place:], left)), "}"]
                return [*lines, *rest]
        return lines

    def statement(self, stmt: Stmt, mask: str) -> list[str]:
        if isinstance(stmt, Declare):
            return self.declaration(stmt, mask)
        if isinstance(stmt, Evaluate):
            return self.evaluation(stmt.expr, mask)
        if isinstance(stmt, ir.Block):
            return ["{", *_in(self.body(stmt.body, mask)), "}"]
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
        kind, lines = _type(var.type), []
        fixed = not self.plan.facts.assigned.get(var.key) and init is not None
        if fixed and init is not None and (var.type.endswith("*") or kind in ("int", "unsigned int")) and self.is_place(init):
            self.places.add(var.key)
            lines.append(f"{self.printer.declaration(stmt, const=True)};")
            if var.type.endswith("*"):
                return lines
        if kind not in _VECTORS:
            raise DoesNotApply
        try:
            text = self.as_type(self.value(init, mask), kind) if init is not None else f"{_VECTORS[kind]}{{}}"
        except DoesNotApply:
            if var.key in self.places:
                return lines  # it may serve for addresses alone
            raise
        self.types[var.key] = kind
        return [*lines, f"{_VECTORS[kind]} {var.name}_lanes = {text};"]

    def is_place(self, init: Expr) -> bool:
        """May a whole number, or a pointer, be computed for the first thread alone to say where a vector begins?"""
        known = self.places | self.counters
        return all(
            n.kind in ("name", "member", "binary", "literal", "paren", "cast", "type") and (n.var is None or n.var in known or self.is_fixed(n.var))
            for n in init.walk()
        )

    def evaluation(self, expr: Expr, mask: str) -> list[str]:
        if expr.kind == "binary" and expr.name == ",":
            return [line for part in expr.children for line in self.evaluation(part, mask)]
        place = ir.assigned(expr)
        if place is None:
            raise DoesNotApply
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
        kind = _type(place.type)
        if kind not in _VECTORS or kind == "bool":
            raise DoesNotApply
        new = self.as_type(self.operation(operator, self.element(place, mask), value) if operator else value, kind)
        text, where = self.printer.expr(place), f", {mask}" if mask else ""
        if self.step(place) == 1:
            return f"ww::store_lanes(&{text}, {new}{where});"
        if self.depth:
            raise DoesNotApply
        array, index = self.array(place, mask)
        return f"ww::scatter_lanes({array}, {index}, {new}{where});"

    def branch(self, stmt: If, mask: str) -> list[str]:
        cond = self.truth(stmt.cond, mask)
        if not cond.wide:
            lines = [f"if ({cond.text}) {{", *_in(self.body(stmt.then, mask))]
            return [*lines, *(["} else {", *_in(self.body(stmt.other, mask))] if stmt.other else []), "}"]
        taken = self.name("mask")
        lines = [f"const ww::ints {taken} = {f'{mask} & ' if mask else ''}({cond.text});", *self.under(stmt.then, taken)]
        if stmt.other:
            left = self.name("mask")
            lines += [f"const ww::ints {left} = {f'{mask} & ' if mask else ''}~{taken};", *self.under(stmt.other, left)]
        return ["{", *_in(lines), "}"]

    def under(self, stmts: Sequence[Stmt], mask: str) -> list[str]:
        """Return statements under a mask; where they read memory, or have a loop, only if it holds for some thread."""
        heavy = any(isinstance(s, For | DoWhile) for s in ir.walk(tuple(stmts))) or any(e.kind in ("index", "call") for e in ir.expressions(tuple(stmts)))
        return [f"if (ww::some_lane({mask})) {{" if heavy else "{", *_in(self.body(stmts, mask)), "}"]

    # --- loops --------------------------------------------------------------------------------------------------------------------

    def is_counted(self, stmt: For) -> bool:
        """Do all threads that are in the loop count alike?"""
        first = stmt.init[0] if len(stmt.init) == 1 else None
        if not isinstance(first, Declare) or first.init is None or stmt.cond is None or stmt.step is None or _type(first.var.type) not in _VECTORS:
            return False
        key, step = first.var.key, stmt.step
        place = ir.assigned(step)
        if place is None or place.kind != "name" or place.var != key or any(key in e.changes for s in ir.walk(stmt.body) for e in ir.own_expressions(s)):
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
            lines = [f"{head} {{", *_in(self.inside(stmt.body, mask, None)), "}"]
        else:
            loop = _Loop(self.name("stay"), self.name("inside"))
            round_ = [f"ww::ints {loop.inside} = {loop.stay};", *self.inside(stmt.body, loop.inside, loop), f"if (!ww::some_lane({loop.stay})) break;"]
            lines = ["{", f"  ww::ints {loop.stay} = {mask or 'ww::every_lane()'};", f"  {head} {{", *_in(_in(round_)), "  }", "}"]
        self.counters.discard(first.var.key)
        return lines

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
        return ["{", *_in([*lines, "for (;;) {", *_in(round_), "}"]), "}"]

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

    # --- values -------------------------------------------------------------------------------------------------------------------

    def is_fixed(self, key: int) -> bool:
        """Has the variable one value for all threads?"""
        var = self.plan.variables.get(key)
        return var is not None and not var.dims and (var.space in ("parameter", "constant") or key in self.plan.scalars) and key not in self.types

    def is_uniform(self, expr: Expr, also: frozenset[int] = frozenset()) -> bool:
        for node in expr.walk():
            if node.kind in ("lambda", "lane", "assign", "other", "conditional") or (node.kind == "unary" and node.name in ("*", "&", "++", "--")):
                return False
            if node.kind == "call" and node.name not in PURE_CALLS:
                return False
            if node.kind == "member" and node.children and node.children[0].name == "threadIdx" and node.name == "x":
                return False
            if node.kind == "name" and node.var is None and node.name not in LAUNCH and node.name not in PURE_CALLS:
                return False
            if node.var is not None and not (node.var in self.counters or node.var in also or self.is_array(node.var) or self.is_fixed(node.var)):
                return False
        return True

    def is_array(self, key: int) -> bool:
        var = self.plan.variables.get(key)
        return var is not None and bool(var.dims) and var.space in ("shared", "constant", "dynamic")

    def value(self, expr: Expr, mask: str = "") -> Value:
        expr = ir.bare(expr)
        kind = _type(expr.type)
        if self.is_uniform(expr):
            if kind not in _VECTORS or (self.guarded and any(n.kind == "index" for n in expr.walk())):
                raise DoesNotApply
            return Value(f"({self.printer.expr(expr)})", kind, False)
        if ir.text_of(expr) in NUMBERS:
            return Value(f"({ir.text_of(expr)})", "float", False)
        if is_x(expr):
            return Value("ww::from_lane(at_x)", "int", True)
        if expr.kind == "name" and expr.var is not None:
            return self.named(expr.var)
        if expr.kind == "index":
            return self.element(expr, mask)
        if expr.kind == "cast":
            return Value(self.as_type(self.value(expr.children[-1], mask), kind), kind, True)
        if expr.kind == "unary" and expr.name in ("-", "~", "!"):
            inner = self.truth(expr.children[0], mask) if expr.name == "!" else self.value(expr.children[0], mask)
            return Value(f"({'~' if expr.name == '!' else expr.name}{inner.text})", inner.type, True)
        if expr.kind == "binary" and expr.name in ("&&", "||"):
            return self.both(expr, mask)
        if expr.kind == "binary" and len(expr.children) == 2:
            left, right = (self.value(child, mask) for child in expr.children)
            return self.operation(expr.name, left, right)
        if expr.kind == "conditional" and len(expr.children) == 3:
            cond = self.as_mask(self.truth(expr.children[0], mask))
            one = self.as_type(self.where(cond, expr.children[1], mask), kind)
            other = self.as_type(self.where(f"~{cond}", expr.children[2], mask), kind)
            return Value(f"({cond} ? {one} : {other})", kind, True)
        if expr.kind == "call":
            return self.call(expr, mask)
        raise DoesNotApply

    def named(self, key: int) -> Value:
        if key in self.types:
            return Value(f"{self.plan.variables[key].name}_lanes", self.types[key], True)
        declaration = self.plan.facts.declared.get(key)
        if key not in self.plan.recomputed or declaration is None or declaration.init is None:
            raise DoesNotApply
        kind = _type(self.plan.variables[key].type)
        return Value(self.as_type(self.value(declaration.init), kind), kind, True)

    def both(self, expr: Expr, mask: str) -> Value:
        """Return `a && b`, of which both are computed; what b reads, it reads for the threads that a leaves."""
        one = self.as_mask(self.truth(expr.children[0], mask))
        other = self.as_mask(self.where(one if expr.name == "&&" else f"~{one}", expr.children[1], mask, truth=True))
        return Value(f"({one} {expr.name[0]} {other})", "bool", True)

    def where(self, cond: str, expr: Expr, mask: str, truth: bool = False) -> Value:
        """Return a value that only threads compute for which a condition holds, of which there may be none."""
        self.guarded += 1
        value = (self.truth if truth else self.value)(expr, f"({mask} & {cond})" if mask else f"({cond})")
        self.guarded -= 1
        return value

    def operation(self, operator: str, left: Value, right: Value) -> Value:
        kind = max((left.type, right.type, "int"), key=_RANK.index)
        whole = kind != "float"
        number = right.text.strip("()")
        if operator in ("/", "%") and whole and not (number.isdigit() and int(number)):
            raise DoesNotApply  # a lane that is left out may divide by 0
        if operator in ("<<", ">>"):
            if not number.isdigit() or int(number) > 31:
                raise DoesNotApply
            kind = max((left.type, "int"), key=_RANK.index)
        elif operator not in ("+", "-", "*", "/", *_COMPARISONS) and not (whole and operator in ("%", "&", "|", "^")):
            raise DoesNotApply
        one, other = self.as_type(left, kind), self.as_type(right, kind)
        if operator in ("/", "%", "<<", ">>") and whole:
            other = number + ("u" if kind == "unsigned int" else "")  # compilers look for a number here before they inline what spreads it
        return Value(f"({one} {operator} {other})", "bool" if operator in _COMPARISONS else kind, True)

    def call(self, expr: Expr, mask: str) -> Value:
        arguments = [self.value(child, mask) for child in expr.children[1:]]
        if expr.name in _FUNCTIONS and len(arguments) == 1:
            text = f"ww::each_lane([](const float v) {{ return {_FUNCTIONS[expr.name]}(v); }}, {self.as_type(arguments[0], 'float')})"
            return Value(text, "float", True)
        kind = max((a.type for a in arguments), key=_RANK.index, default="bool")
        if expr.name in ("min", "max", "fminf", "fmaxf") and len(arguments) == 2 and kind != "bool":
            one, other = (self.as_type(a, "float" if expr.name.startswith("f") else kind) for a in arguments)
            return Value(f"ww::{'least' if 'min' in expr.name else 'most'}_of({one}, {other})", "float" if expr.name.startswith("f") else kind, True)
        raise DoesNotApply

    def truth(self, expr: Expr, mask: str) -> Value:
        """Return a condition: a bool for all threads, or a mask."""
        value = self.value(expr, mask)
        if value.type == "bool" or not value.wide:
            return value
        return Value(f"({value.text} != 0)", "bool", True)

    def as_mask(self, value: Value) -> str:
        return value.text if value.wide else f"ww::mask_if({value.text})"

    def as_type(self, value: Value, kind: str) -> str:
        """Return the value as a vector of a type."""
        if kind not in _VECTORS:
            raise DoesNotApply
        if not value.wide:
            element = "int" if kind == "bool" else kind.replace("unsigned int", "unsigned")
            return f"ww::mask_if({value.text})" if kind == "bool" else f"ww::spread<{_VECTORS[kind]}>(({element}){value.text})"
        if value.type == kind:
            return value.text
        if kind == "bool":
            return f"({value.text} != 0)"
        text = f"({value.text} & 1)" if value.type == "bool" else value.text
        return f"__builtin_convertvector({text}, {_VECTORS[kind]})"

    # --- memory -------------------------------------------------------------------------------------------------------------------

    def step(self, place: Expr) -> int | None:
        """Return how far apart neighbouring threads' elements lie; None where they do not lie evenly."""
        parts, base = [place.children[1]], place.children[0]
        while base.kind == "index":
            if not self.is_uniform(base.children[1]):
                return None
            base = base.children[0]
        if base.kind != "name" or base.var is None:
            return None
        if base.var in self.places:
            parts.append(base)
        elif not (self.is_array(base.var) or self.is_fixed(base.var)):
            return None
        if not all(map(self.is_place, parts)):
            return None
        steps = [coefficient(linear(part, self.plan, self.counters)) for part in parts]
        return None if None in steps else sum(step or 0 for step in steps)

    def element(self, expr: Expr, mask: str) -> Value:
        """Return an element of memory for each thread: side by side, or, outside of loops, wherever each thread reads."""
        kind = _type(expr.type)
        if kind not in _VECTORS or kind == "bool":
            raise DoesNotApply
        where, step = f", {mask}" if mask else "", self.step(expr)
        if step == 0 and not self.guarded:
            return Value(f"({self.printer.expr(expr)})", kind, False)
        if step == 1:
            return Value(f"ww::load_lanes<{_VECTORS[kind]}>(&{self.printer.expr(expr)}{where})", kind, True)
        if self.depth:
            raise DoesNotApply
        array, index = self.array(expr, mask)
        return Value(f"ww::gather_lanes<{_VECTORS[kind]}>({array}, {index}{where})", kind, True)

    def array(self, place: Expr, mask: str) -> tuple[str, str]:
        """Return an array that is one for all threads, and a vector of places in it."""
        base, index = place.children
        if not self.is_uniform(base):
            raise DoesNotApply
        value = self.value(index, mask)
        if value.type not in ("int", "unsigned int"):
            raise DoesNotApply
        return self.printer.expr(base), self.as_type(value, value.type)


_NAMES: Mapping[str, str] = {"unsigned": "unsigned int", "uint": "unsigned int"}


def _type(text: str) -> str:
    """Return a type without const."""
    plain = text.removeprefix("const ").strip()
    return _NAMES.get(plain, plain)


def _jumps(stmt: Stmt) -> bool:
    """Does a jump in the statement leave the loop around it, or its round?"""
    if isinstance(stmt, Jump):
        return True
    return not isinstance(stmt, For | DoWhile) and any(_jumps(s) for body in ir.bodies(stmt) for s in body)


_in: Callable[[Sequence[str]], list[str]] = lambda lines: [f"  {line}" for line in lines]  # noqa: E731
