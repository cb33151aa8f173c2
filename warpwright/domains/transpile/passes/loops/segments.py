"""Rows of threads cut into stretches in which quotients and rests of the thread's number hold still, or move by a fixed step.

`a[(L / 1000) * 1452 + (L % 1000) / 100 * 44 + L % 100]`, with L = base + thread_x, is computed once for a stretch of at most 100 threads, and moves
by one element a thread in it: a load of neighbours instead of divisions and a gather for each thread. For whole numbers and floor division

    (E / m) / n = E / (m n)      (E / m) % n / k = (E / (m k)) % (n / k), where k divides n      u + E / m = (u m + E) / m

so that each is a quotient E / D or a rest (E / D) % m of a sum E in which thread_x counts k times; it changes where E passes a multiple of D, or m.
D may also be a value that all threads share, as in `bias[i % columns]`: rows are cut where it turns out to be large. So may it in `E ^ D` and
`E & D`, the exchanges of a sorting network or an FFT, where it turns out to be a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import coefficient, conjuncts, expand, is_signed, is_x, mentions_x, named, without_not
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import UNSIGNED, literal, not_negative
from warpwright.domains.transpile.ir import Expr, Stmt
from warpwright.domains.transpile.printing import Printer

SHORTEST, SHORTEST_PLAIN = 8, 16
"""Threads from one change of a value to the next, below which it is computed for each thread: a stretch costs 10 to 20 cycles to set up, too much
where threads have no loop (of HPCTransEval, copies by 8 and 12 ran at 0.63x of its C cut, at 1.0x to 1.1x uncut; pools, 0.5x cut, 0.33x uncut)."""

SHORTEST_UNIFORM = 64
"""The same for a divisor that all threads share and that only the run shows: it is looked at there."""

LONGEST_COPY = 64
"""Stretches of this many threads and fewer have a loop of their own with a constant length."""

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

@dataclass(frozen=True)
class _Break:
    """The sum, in which thread_x counts `step` times, passes a multiple of `size`."""

    sum: Expr
    size: int | Expr
    """A number, or a value that all threads share."""
    step: int
    bit: bool = False
    """Is a shared size to be a power of two?"""


@dataclass(frozen=True)
class _Value:
    """A value that moves by `step` a thread between its breaks."""

    step: int
    breaks: tuple[_Break, ...] = ()


@dataclass(frozen=True)
class _Quotient:
    """sum / divisor, or its rest by `modulus`."""

    sum: Expr
    step: int
    breaks: tuple[_Break, ...] = ()
    divisor: int = 1
    modulus: int = 0
    bare: Expr | None = None
    """The sum without multiples of the divisor that were added: it passes multiples where the sum does."""


@dataclass
class Pairs:
    """Stretches of 1, 2 or 4 threads of which a guard leaves every second one, as `(t ^ j) > t` does: two by two they are a loop that vectorises.

    A sort of rows of 512 floats takes 3.8 times less time so, butterflies 5 times: general distances are gathers and scatters.
    """

    distance: str
    """From one thread of a pair to the other."""
    only_if: list[str]
    """The pairs lie side by side from the row's first thread on where all of these hold."""
    parts: dict[str, str]
    """What is computed once for a pair of stretches: name -> text."""


@dataclass
class Segments:
    """How a row is cut."""

    stmts: list[Stmt]
    guards: list[Expr]
    parts: dict[str, str] = field(default_factory=dict)
    """What is computed once for a stretch: text -> name."""
    lengths: list[str] = field(default_factory=list)
    """Each limits the number of threads of a stretch."""
    only: list[str] = field(default_factory=list)
    """Each is the one thread that a guard leaves of a stretch, or a number outside of it."""
    usual: int = 0
    """Threads between two breaks of the kind that comes most often."""
    only_if: list[str] = field(default_factory=list)
    """The row is cut only where all of these hold: the divisors are large enough."""
    skip: list[str] = field(default_factory=list)
    """A stretch is left out unless all of these hold: guards that are the same for all its threads."""
    inside: list[str] = field(default_factory=list)
    """Where all of these hold, the guards of `c ? a[i] : b` hold for a whole stretch, ..."""
    unguarded: list[Stmt] = field(default_factory=list)
    """... and these are its statements."""
    pairs: Pairs | None = None
    """What is done at distances too short for stretches."""
    low: list[str] = field(default_factory=list)
    """Of a stretch, those threads run that are at least each of these, ..."""
    high: list[str] = field(default_factory=list)
    """... and less than each of these: guards that move with the thread."""
    plan: Plan | None = None
    """The plan with the region's own values as they are in a stretch."""


def split(stmts: Sequence[Stmt], guards: Sequence[Expr], plan: Plan, printer: Printer, row: str) -> Segments | None:
    """Return how the row of threads that runs the statements under the guards is cut, `row` threads long; None where nothing is gained by it."""
    return _Cutter(stmts, plan, printer, row).split(stmts, guards)


class _Cutter:
    """Cuts one row."""

    def __init__(self, stmts: Sequence[Stmt], plan: Plan, printer: Printer, row: str) -> None:
        self.plan, self.printer, self.row = plan, printer, row
        self.segments = Segments([], [])
        self.breaks: dict[tuple[str, int], set[int]] = {}
        self.uniform: dict[tuple[str, str, bool], None] = {}
        self.wholes: dict[str, Expr] = {}
        self.distance: Expr | None = None
        self.shortest = SHORTEST if any(isinstance(s, ir.For | ir.DoWhile) for s in ir.walk(tuple(stmts))) else SHORTEST_PLAIN

    def split(self, stmts: Sequence[Stmt], guards: Sequence[Expr]) -> Segments | None:
        cut, printer = self.segments, self.printer
        stmts = self.bounded(stmts)
        cut.stmts = [ir.map_expressions(s, self.change) for s in stmts]
        cut.plan = _with_declared(self.plan, cut.stmts)
        guards = [g for g in guards if not self.is_the_same(g)]
        cut.guards = [g.map(self.change) for g in guards]
        for guard, written in zip(guards, cut.guards, strict=True):
            if (only := _only(guard, written, self.plan, printer)) is not None:
                cut.only.append(only)
                cut.guards = [g for g in cut.guards if g is not written]
        if not cut.parts and not cut.skip:
            return None
        opened = [ir.map_expressions(s, self.unguarded) for s in stmts]
        if cut.inside:
            cut.unguarded = [ir.map_expressions(s, self.change) for s in opened]
        periods = []
        for (text, step), sizes in self.breaks.items():
            needed = [s for s in sizes if not any(o < s and s % o == 0 for o in sizes)]
            cut.lengths += [f"ww::to_next<{size}, {step}>({text})" for size in needed]
            periods += [-(-size // step) for size in needed]
        cut.lengths += [f"ww::to_next_{'bit' if bit else 'of'}({text}, {size})" for text, size, bit in self.uniform]
        shared = dict.fromkeys((size, bit) for _, size, bit in self.uniform)
        cut.only_if = [f"ww::is_bit({size}, {SHORTEST})" if bit else f"{size} >= {SHORTEST_UNIFORM}" for size, bit in shared]
        cut.usual = min(periods, default=0)
        cut.pairs = self.pairs()
        return cut

    def change(self, expr: Expr) -> Expr | None:
        """Return what stands for a value that holds still or moves by a fixed step in a stretch."""
        if expr.kind in ("lambda", "other"):
            return expr
        if not _is_whole(expr) or (whole := expand(expr, self.plan)) is None or not mentions_x(whole):
            return None
        value = self.value(whole)
        if value is None:
            return None
        return _moving(*value, expr)

    def value(self, whole: Expr) -> tuple[str, int] | None:
        """Return the name of an expanded expression's value for the first thread of a stretch, and its step; None where it is not worth stretches."""
        try:
            value = _settled(_analysed(whole, self.plan.steps))
        except DoesNotApply:
            return None
        if not value.breaks or self.is_short(value.breaks):
            return None
        self.note(value)
        name = self.segments.parts.setdefault(self.printer.expr(_at_first(whole)), f"part_{len(self.segments.parts) + 1}")
        self.wholes.setdefault(name, whole)
        return name, value.step

    def note(self, value: _Value) -> None:
        """Keep where a value jumps."""
        for one in value.breaks:
            text = self.printer.expr(_at_first(one.sum))
            if isinstance(one.size, int):
                self.breaks.setdefault((text, one.step), set()).add(one.size)
            else:
                self.uniform[text, f"(long)({self.printer.expr(one.size)})", one.bit] = None

    def is_the_same(self, guard: Expr) -> bool:
        """Note a guard such as `(t ^ j) > t` whose sides move alike in a stretch, so that it holds for all threads or for none."""
        whole = expand(guard, self.plan)
        if whole is None or whole.kind != "binary" or whole.name not in ("<", "<=", ">", ">=", "==", "!="):
            return False
        try:
            sides = [_settled(_analysed(side, self.plan.steps)) for side in whole.children]
        except DoesNotApply:
            return False
        breaks = [one for side in sides for one in side.breaks]
        if sides[0].step != sides[1].step or not breaks or self.is_short(breaks):
            return False
        still = sides[0].step == 0 or whole.name in ("==", "!=") or is_signed(guard, self.plan)
        if not still and not all(ir.bare(side).name == "^" or not_negative(side) for side in whole.children):
            return False  # an unsigned value below zero is a large one
        for side in sides:
            self.note(side)
        self.segments.skip.append(self.printer.expr(_at_first(whole)))
        self.distance = _clear_bit(whole)
        return True

    def bounded(self, stmts: Sequence[Stmt]) -> Sequence[Stmt]:
        """Return `values; if (c) { body }` as the values and the body, where c comes to bounds of the stretch's threads; else as it is."""
        if not stmts or not isinstance(last := stmts[-1], ir.If) or last.other or last.constexpr:
            return stmts
        head = stmts[:-1]
        if not all(isinstance(s, ir.Declare) and s.init is not None and not s.direct and ir.is_quiet(s.init) for s in head):
            return stmts
        conds = [inner for part in conjuncts(without_not(last.cond, self.plan)) for inner in conjuncts(named(part, self.plan) or part)]
        sides = [self.sides(cond) for cond in conds]
        if not all(side is not None for side in sides):
            return stmts
        for side in sides:
            assert side is not None
            operator, moving, fixed = side
            first, limit = self.at_first(moving), self.at_first(fixed)
            more = " + 1" if operator in ("<=", ">") else ""
            ends = self.segments.high if operator in ("<", "<=") else self.segments.low
            ends.append(f"(long)stretch_x + (long)({limit}) - (long)({first}){more}")
        return [*head, *last.then]

    def sides(self, part: Expr) -> tuple[str, Expr, Expr] | None:
        """Return a comparison as operator, the side that grows by one a thread in a stretch, and the one that holds still; None for another one."""
        whole = expand(part, self.plan)
        if whole is None or whole.kind != "binary" or whole.name not in _TURNED or not is_signed(part, self.plan):
            return None
        try:
            left, right = (_settled(_analysed(side, self.plan.steps)) for side in whole.children)
        except DoesNotApply:
            return None
        if self.is_short((*left.breaks, *right.breaks)) or not (left.breaks or right.breaks) or {left.step, right.step} != {0, 1}:
            return None
        one, other = whole.children
        return (whole.name, one, other) if left.step else (_TURNED[whole.name], other, one)

    def at_first(self, side: Expr) -> str:
        """Return the value of one side of a guard for a stretch's first thread."""
        value = self.value(side) if mentions_x(side) else None
        return value[0] if value is not None else self.printer.expr(_at_first(side))

    def pairs(self) -> Pairs | None:
        """Return how pairs of threads that are close are run together; None where more than their distance and other bits cuts the row."""
        cut, distance = self.segments, self.distance
        bounded = cut.guards or cut.only or cut.inside or cut.low or cut.high or self.breaks
        if distance is None or len(cut.skip) != 1 or bounded or self.shortest != SHORTEST_PLAIN or not all(bit for _, _, bit in self.uniform):
            return None
        size = f"(long)({self.printer.expr(distance)})"
        only_if = [f"ww::is_close({size})", f"{self.row} % (2 * {size}) == 0"]
        for text, other, _ in self.uniform:
            first = text.replace("stretch_x", "0")
            if "thread" in first:
                return None
            only_if += [f"({first}) % (2 * {size}) == 0"] if first.strip("()") != "0" else []
            only_if += [f"ww::is_bit({other}, 2 * {size})"] if other != size else []
        parts = {name: self.printer.expr(_at_first(_apart(value, distance))) for name, value in self.wholes.items()}
        return Pairs(size, list(dict.fromkeys(only_if)), parts)

    def is_short(self, breaks: Sequence[_Break]) -> bool:
        return any(isinstance(one.size, int) and one.size // one.step < self.shortest for one in breaks)

    def unguarded(self, expr: Expr) -> Expr | None:
        """Return a[i] of `c ? a[i] : b` where c can be looked at for a whole stretch, and note it."""
        if expr.kind != "conditional" or len(expr.children) != 3 or not any(n.kind == "index" for n in expr.children[1].walk()):
            return None
        texts = [self.holds(part) for part in conjuncts(expr.children[0])]
        if not all(texts):
            return None
        self.segments.inside += [text for text in texts if text and text not in self.segments.inside]
        return Expr("paren", ("(", expr.children[1], ")"), expr.line, "", None, expr.type)

    def holds(self, part: Expr) -> str:
        """Return a condition under which a comparison holds for all threads of a stretch; nothing where there is none."""
        whole = expand(part, self.plan)
        if whole is None:
            return ""
        if not mentions_x(whole):
            return self.printer.expr(whole)
        if whole.kind != "binary" or whole.name not in ("<", "<=", ">", ">=") or not is_signed(part, self.plan):
            return ""
        left, right = whole.children
        moving, fixed = (left, right) if mentions_x(left) else (right, left)
        value = None if mentions_x(fixed) else self.value(ir.bare(moving))
        if value is None:
            return ""
        name, step = value
        at_end = ((whole.name in ("<", "<=")) == (moving is left)) == (step > 0)
        worst = f"{name} + {step}l * (stretch_end - 1 - stretch_x)" if step and at_end else name
        sides = (worst, self.printer.expr(fixed)) if moving is left else (self.printer.expr(fixed), worst)
        return f"(long)({sides[0]}) {whole.name} (long)({sides[1]})"


def _clear_bit(guard: Expr) -> Expr | None:
    """Return D of a guard `(E ^ D) > E` or `(E & D) == 0`, which leaves the threads in whose E the bit D is not set."""
    left, right = (ir.bare(side) for side in (guard.children if guard.name != "<" else guard.children[::-1]))
    if left.kind != "binary" or len(left.children) != 2:
        return None
    value, size = left.children if mentions_x(left.children[0]) else left.children[::-1]
    greater = guard.name in ("<", ">") and left.name == "^" and ir.text_of(ir.bare(value)) == ir.text_of(right)
    clear = guard.name == "==" and left.name == "&" and literal(right) == 0
    return size if (greater or clear) and not mentions_x(size) else None


def _apart(expr: Expr, distance: Expr) -> Expr:
    """Return an expanded expression for a thread whose number lacks the bit `distance`, here the constant `apart`."""

    def change(node: Expr) -> Expr | None:
        if node.kind != "binary" or node.name not in ("^", "&") or len(node.children) != 2:
            return None
        value, size = node.children if mentions_x(node.children[0]) else node.children[::-1]
        if ir.text_of(ir.bare(size)) != ir.text_of(ir.bare(distance)):
            return None
        parts = ("(", value, " + apart)") if node.name == "^" else ("0",)
        return Expr("other", parts, node.line, "", None, node.type)

    return expr.map(change)


def _only(guard: Expr, written: Expr, plan: Plan, printer: Printer) -> str | None:
    """Return the thread for which `value == number` holds, where the value grows by one a thread and was replaced in the guard that is written."""
    if guard.kind != "binary" or guard.name != "==" or len(guard.children) != 2 or (number := literal(guard.children[1])) is None:
        return None
    value, whole = written.children[0], expand(guard.children[0], plan)
    if not _is_part(value) or whole is None:
        return None
    try:
        settled = _settled(_analysed(whole, plan.steps))
    except DoesNotApply:
        return None
    return f"thread_of_{number} = stretch_x + {number} - (int)({printer.expr(_at_first(whole))})" if settled.step == 1 else None


def _moving(name: str, step: int, expr: Expr) -> Expr:
    """Return what stands for an expression whose value at a stretch's first thread has a name, and that moves by `step` a thread."""
    first = Expr("name", (name,), expr.line, name, None, expr.type)
    if not step:
        return first
    thread = Expr("member", (Expr("name", ("threadIdx",), expr.line, "threadIdx"), ".x"), expr.line, "x", None, "int")
    begun = Expr("name", ("stretch_x",), expr.line, "stretch_x", None, "int")
    moved = ir.paren(Expr("binary", (thread, " - ", begun), expr.line, "-", None, "int"))
    if step != 1:
        moved = Expr("binary", (ir.number(step, expr.line), " * ", moved), expr.line, "*", None, "int")
    return ir.paren(Expr("binary", (first, " + ", moved), expr.line, "+", None, expr.type))


def _with_declared(plan: Plan, stmts: Sequence[Stmt]) -> Plan:
    """Return the plan with these declarations in place of the kernel's."""
    declared = {s.var.key: s for s in stmts if isinstance(s, ir.Declare)}
    return replace(plan, facts=replace(plan.facts, declared=plan.facts.declared | declared))


def _is_part(expr: Expr) -> bool:
    """Is this what `_moving` returned?"""
    inner = ir.bare(expr)
    first = inner.children[0] if inner.kind == "binary" else inner
    return first.kind == "name" and first.var is None and first.name.startswith("part_")


def _is_whole(expr: Expr) -> bool:
    """May the expression be a sum of quotients and rests? Names stand for themselves."""
    return expr.kind == "paren" or (expr.kind == "binary" and expr.name in ("+", "-", "*", "/", "%", ">>", "&", "^"))


def _analysed(expr: Expr, counting: Set[int]) -> _Quotient | _Value:
    """Return what an expanded expression is as a function of thread_x. `counting`: variables that are not negative."""
    if not mentions_x(expr):
        return _Value(0)
    if (expr.kind == "paren" and len(expr.children) == 1) or expr.kind == "cast":
        return _analysed(expr.children[-1], counting)
    step = coefficient(expr)
    if step is not None:
        return _Quotient(expr, step) if step > 0 else _Value(step)
    if is_x(expr) or expr.kind != "binary" or len(expr.children) != 2:
        raise DoesNotApply
    if expr.name in ("+", "-"):
        return _sum(expr, counting)
    left, right = expr.children
    if expr.name in ("*", "^", "&") and mentions_x(right):
        left, right = right, left
    if expr.name == "*":
        left, right = (right, left) if literal(left) is not None else (left, right)
    number = literal(right)
    if number is None and expr.name in ("/", "%"):
        return _by_uniform(expr, counting)
    if number is None and expr.name in ("^", "&"):
        return _by_bit(expr, counting)
    if number is None:
        raise DoesNotApply
    if expr.name == "*":
        value = _settled(_analysed(left, counting))
        return _Value(value.step * number, value.breaks)
    if expr.name == ">>" and number < 31:
        return _divided(left, 1 << number, counting)
    if expr.name == "&" and number & (number + 1) == 0:
        return _rest(left, number + 1, counting)
    if number > 0 and expr.name in ("/", "%") and not_negative(left, counting):
        return _divided(left, number, counting) if expr.name == "/" else _rest(left, number, counting)
    raise DoesNotApply


def _sum(expr: Expr, counting: Set[int]) -> _Quotient | _Value:
    left, right = (_analysed(child, counting) for child in expr.children)
    for one, fixed in ((left, expr.children[1]), (right, expr.children[0])):
        if isinstance(one, _Quotient) and not one.modulus and not mentions_x(fixed) and (expr.name == "+" or one is left):
            more = Expr("binary", (ir.paren(fixed), " * ", ir.number(one.divisor)), expr.line, "*", None, fixed.type)
            whole = Expr("binary", (ir.paren(one.sum), f" {expr.name} ", more), expr.line, expr.name, None, expr.type)
            return _Quotient(whole, one.step, one.breaks, one.divisor, 0, one.bare or one.sum)
    one_side, other_side = _settled(left), _settled(right)
    sign = 1 if expr.name == "+" else -1
    return _Value(one_side.step + sign * other_side.step, (*one_side.breaks, *other_side.breaks))


def _divided(inner: Expr, number: int, counting: Set[int]) -> _Quotient | _Value:
    """Return inner / number, rounded down."""
    _floors(inner, counting)
    quotient = _analysed(inner, counting)
    if isinstance(quotient, _Quotient):
        if not quotient.modulus:
            return _Quotient(quotient.sum, quotient.step, quotient.breaks, quotient.divisor * number)
        if quotient.modulus % number == 0:
            return _Quotient(quotient.sum, quotient.step, quotient.breaks, quotient.divisor * number, quotient.modulus // number)
    value = _settled(quotient)
    return value if value.step == 0 else _Quotient(inner, _positive(value.step), value.breaks, number)


def _rest(inner: Expr, number: int, counting: Set[int]) -> _Quotient | _Value:
    """Return the rest of inner / number, from 0 on."""
    _floors(inner, counting)
    quotient = _analysed(inner, counting)
    if isinstance(quotient, _Quotient) and (not quotient.modulus or quotient.modulus % number == 0):
        return _Quotient(quotient.sum, quotient.step, quotient.breaks, quotient.divisor, number)
    value = _settled(quotient)
    return value if value.step == 0 else _Quotient(inner, _positive(value.step), value.breaks, 1, number)


def _by_uniform(expr: Expr, counting: Set[int]) -> _Value:
    """Return inner / size or inner % size, for a size that all threads share."""
    inner, size = expr.children
    if not _is_cheap(size):
        raise DoesNotApply
    value = _settled(_analysed(inner, counting))
    if value.step == 0:
        return value
    if value.step != 1 or not not_negative(inner, counting):
        raise DoesNotApply
    return _Value(int(expr.name == "%"), (*value.breaks, _Break(inner, size, 1)))


def _by_bit(expr: Expr, counting: Set[int]) -> _Value:
    """Return inner ^ size or inner & size, for a power of two that all threads share: between its multiples, inner + or - size, and 0 or size."""
    inner, size = expr.children if mentions_x(expr.children[0]) else expr.children[::-1]
    if not _is_cheap(size) or not not_negative(inner, counting):
        raise DoesNotApply
    value = _settled(_analysed(inner, counting))
    if value.step != 1:
        raise DoesNotApply
    return _Value(int(expr.name == "^"), (*value.breaks, _Break(inner, size, 1, True)))


def _is_cheap(size: Expr) -> bool:
    """Is this a sum or product that all threads share and that may be looked at at any time?"""
    simple = all(n.kind in ("name", "paren", "member", "literal") or (n.kind == "binary" and n.name in ("+", "-", "*")) for n in size.walk())
    return simple and not any(n.kind == "name" and n.name == "threadIdx" for n in size.walk())


def _floors(inner: Expr, counting: Set[int]) -> None:
    """An unsigned value below zero is a large one: then the quotients of the sum are others."""
    if inner.type in UNSIGNED and not not_negative(inner, counting):
        raise DoesNotApply


def _positive(step: int) -> int:
    if step <= 0:
        raise DoesNotApply
    return step


def _settled(moving: _Quotient | _Value) -> _Value:
    """Return how the value moves, and where it jumps."""
    if isinstance(moving, _Value):
        return moving
    step, divisor, modulus = moving.step, moving.divisor, moving.modulus
    if not modulus:
        moves, size = (step // divisor, 0) if step % divisor == 0 else (0, divisor)
    elif step % (divisor * modulus) == 0:
        moves, size = 0, 0
    else:
        moves, size = (step // divisor, divisor * modulus) if step % divisor == 0 else (0, divisor)
    if size and size // step < SHORTEST:
        raise DoesNotApply
    sum_ = moving.bare if moving.bare is not None and size == divisor else moving.sum
    return _Value(moves, (*moving.breaks, *((_Break(sum_, size, step),) if size else ())))


def _at_first(expr: Expr) -> Expr:
    """Return an expanded expression for the first thread of the stretch."""
    return expr.map(lambda node: Expr("other", ("stretch_x",), node.line, "", None, "int") if is_x(node) else None)
