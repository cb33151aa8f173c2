"""Values of the threads of one vector, as they are written: what is one for all of them, and what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import coefficient, is_x, linear, mentions_x
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import LAUNCH, literal
from warpwright.domains.transpile.ir import Expr
from warpwright.domains.transpile.passes.vectors.vector_values import NUMBERS, affine
from warpwright.domains.transpile.printing import Printer
from warpwright.domains.transpile.vmath import BY_LANES, CHOICES

VECTORS = {"float": "ww::floats", "int": "ww::ints", "unsigned int": "ww::uints", "bool": "ww::ints"}
"""Type of a thread's value -> type of a vector of them. Truth is all bits or none."""

_RANK = ("bool", "int", "unsigned int", "float")
"""Of two types in one operation, the later one is the operation's."""

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Value:
    """Text of a value, its type, and whether it is a vector; else it is one for all threads."""

    text: str
    type: str
    wide: bool


class Values:
    """Prints values for one vector of threads."""

    def __init__(self, plan: Plan, printer: Printer) -> None:
        self.plan, self.printer = plan, printer
        self.types: dict[int, str] = {}
        """Key of a value that each thread has for itself -> its type."""
        self.counters: set[int] = set()
        """Keys of counters that are the same for all threads."""
        self.moved: set[int] = set()
        """Keys of whole numbers that change, and are the same for all threads."""
        self.places: set[int] = set()
        """Keys of whole numbers and pointers that stand, for the first thread, beside their vectors."""
        self.depth = 0
        """Loops around."""
        self.apart = False
        """Whether loops may read and write elements that lie evenly apart, one by one."""
        self.guarded = 0
        """How many conditions are around the value at hand: what is one for all threads must not be read there."""

    def is_place(self, init: Expr) -> bool:
        """May a whole number, or a pointer, be computed for the first thread alone to say where a vector begins?"""
        known = self.places | self.counters
        return all(
            n.kind in ("name", "member", "binary", "literal", "paren", "cast", "type")
            and (n.var is None or n.var in known or self.is_fixed(n.var) or self.is_array(n.var) or self.is_recomputed(n.var))
            for n in init.walk()
        )

    def is_recomputed(self, key: int) -> bool:
        """Is this a value that a region computes again for a vector's first thread?"""
        declaration = self.plan.facts.declared.get(key) if key in self.plan.recomputed else None
        return declaration is not None and declaration.init is not None and self.is_place(declaration.init)

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
            known = node.name in LAUNCH or node.name in PURE_CALLS or node.name == "stretch_x" or node.name.startswith("part_")  # of a stretch
            if node.kind == "name" and node.var is None and not known:
                return False
            if node.var is not None and not (node.var in self.counters or node.var in also or self.is_array(node.var) or self.is_fixed(node.var)):
                return False
        return True

    def is_array(self, key: int) -> bool:
        var = self.plan.variables.get(key)
        return var is not None and bool(var.dims) and var.space in ("shared", "constant", "dynamic")

    def value(self, expr: Expr, mask: str = "") -> Value:
        expr = ir.bare(expr)
        kind = plain_type(expr.type)
        if self.is_uniform(expr):
            if kind not in VECTORS or (self.guarded and any(n.kind == "index" for n in expr.walk())):
                raise DoesNotApply
            return Value(f"({self.printer.expr(expr)})", kind, False)
        if ir.text_of(expr) in NUMBERS:
            return Value(f"({ir.text_of(expr)})", "float", False)
        if is_x(expr) and expr.type == "int":  # as a stretch counts its threads
            return Value("ww::from_lane(at_x)", "int", True)
        if is_x(expr):
            return Value("__builtin_convertvector(ww::from_lane(at_x), ww::uints)", "unsigned int", True)
        if expr.kind == "name" and expr.var is not None:
            return self.named(expr.var)
        if expr.kind == "index":
            return self.element(expr, mask)
        if expr.kind == "cast" and is_x(ir.bare(expr.children[-1])):  # it is below 2^31, and ints become floats in one instruction
            return Value(self.as_type(Value("ww::from_lane(at_x)", "int", True), kind), kind, True)
        if expr.kind == "cast":
            return Value(self.as_type(self.value(expr.children[-1], mask), kind), kind, True)
        if expr.kind == "unary" and expr.name in ("-", "~", "!"):
            inner = self.truth(expr.children[0], mask) if expr.name == "!" else self.value(expr.children[0], mask)
            if expr.name != "!" and inner.type == "bool":
                inner = Value(self.as_type(inner, "int"), "int", True)
            if not inner.wide:
                return Value(f"({expr.name}{inner.text})", "bool" if expr.name == "!" else inner.type, False)
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
        kind = plain_type(self.plan.variables[key].type)
        return Value(self.as_type(self.value(declaration.init), kind), kind, True)

    def both(self, expr: Expr, mask: str) -> Value:
        """Return `a && b`, of which both are computed; what b reads, it reads for the threads that a leaves."""
        one = self.as_mask(self.truth(expr.children[0], mask))
        other = self.as_mask(self.where(one if expr.name == "&&" else f"~{one}", expr.children[1], mask, truth=True))
        return Value(f"({one} {expr.name[0]} {other})", "bool", True)

    def where(self, cond: str, expr: Expr, mask: str, truth: bool = False) -> Value:
        """Return a value that only threads compute for which a condition holds, of which there may be none."""
        refuse_divisions(expr)
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
        if expr.name in BY_LANES and len(arguments) == 1:
            text = f"ww::each_lane([](const float v) {{ return {BY_LANES[expr.name]}(v); }}, {self.as_type(arguments[0], 'float')})"
            return Value(text, "float", True)
        kind = max((a.type for a in arguments), key=_RANK.index, default="bool")
        if expr.name in CHOICES and len(arguments) == 2 and kind != "bool":
            one, other = (self.as_type(a, "float" if expr.name.startswith("f") else kind) for a in arguments)
            return Value(f"{CHOICES[expr.name]}({one}, {other})", "float" if expr.name.startswith("f") else kind, True)
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
        if kind not in VECTORS:
            raise DoesNotApply
        if not value.wide:
            element = "int" if kind == "bool" else kind.replace("unsigned int", "unsigned")
            return f"ww::mask_if({value.text})" if kind == "bool" else f"ww::spread<{VECTORS[kind]}>(({element}){value.text})"
        if value.type == kind:
            return value.text
        if kind == "bool":
            return f"({value.text} != 0)"
        text = f"({value.text} & 1)" if value.type == "bool" else value.text
        return f"__builtin_convertvector({text}, {VECTORS[kind]})"

    def for_all(self, parts: Sequence[Expr]) -> str | None:
        """Return what the first and the last thread of a vector say, where it says that conditions hold for each; None where they are not so simple.

        It is asked in whole numbers, not vectors, and compilers know the answer of the next question. (A convolution of 3 x 3 with a border, each
        channel by its own weights, AVX2: 0.54 of a plain loop before.)
        """
        texts = []
        for part in parts:
            if any(n.kind in ("index", "call") or n.name in ("/", "%") for n in part.walk()):
                return None
            if self.is_uniform(part):
                texts.append(f"({self.printer.expr(part)})")
                continue
            if part.kind != "binary" or part.name not in ("<", "<=", ">", ">=") or any(plain_type(e.type) != "int" for e in part.children):
                return None
            left, right = part.children
            moving, fixed = (left, right) if self.is_uniform(right) else (right, left)
            if not self.is_uniform(fixed) or not self.is_place(moving) or self.moves_by(moving) != 1:
                return None
            last = " + (ww::width - 1)" if (part.name in ("<", "<=")) == (moving is left) else ""
            one, other = f"(long)({self.printer.expr(moving)}){last}", f"(long)({self.printer.expr(fixed)})"
            texts.append(f"{one} {part.name} {other}" if moving is left else f"{other} {part.name} {one}")
        return " && ".join(texts)

    def moves_by(self, expr: Expr) -> int | None:
        """Return by how much a whole number moves from thread to thread; None where that is not known."""
        try:
            return coefficient(linear(expr, self.plan, self.counters))
        except DoesNotApply:
            return None

    # --- memory -------------------------------------------------------------------------------------------------------------------

    def step(self, place: Expr) -> int | None:
        """Return how far apart neighbouring threads' elements lie; None where they do not lie evenly, or it is no number."""
        steps = [coefficient(part) for part in self.parts(place) or ()]
        return None if None in steps or not steps else sum(step or 0 for step in steps)

    def parts(self, place: Expr) -> list[Expr] | None:
        """Return what says where each thread's element lies: the last index, expanded, and the pointer where it is the thread's own; else None."""
        parts, base = [place.children[1]], place.children[0]
        while base.kind == "index":
            if not self.is_uniform(base.children[1]):
                return None
            base = base.children[0]
        if base.kind != "name" or base.var is None:
            return None
        start = self.plan.facts.declared.get(base.var) if base.var in self.plan.recomputed else None
        if base.var in self.places:
            parts.append(base)
        elif start is not None:
            if start.init is None or not self.is_uniform(start.init):
                return None
        elif not (self.is_array(base.var) or self.is_fixed(base.var)):
            return None
        return [linear(part, self.plan, self.counters) for part in parts] if all(map(self.is_place, parts)) else None

    def distance(self, place: Expr) -> str:
        """Return how far apart neighbouring threads' elements lie, where that is the same for all. Raises DoesNotApply."""
        parts = self.parts(place)
        if not self.apart or parts is None or any(map(mentions_x, parts[1:])) or not affine(parts[0]):
            raise DoesNotApply
        keys = {place.children[1].type, *(self.plan.variables[n.var].type for n in parts[0].walk() if n.var in self.plan.variables)}
        if any(plain_type(kind) not in ("int", "long") for kind in keys):
            raise DoesNotApply  # an unsigned number may begin again at zero between two threads
        first, second = (self.printer.expr(_of_thread(parts[0], x)) for x in (0, 1))
        return f"({second}) - ({first})"

    def element(self, expr: Expr, mask: str) -> Value:
        """Return an element of memory for each thread: side by side; outside of loops, wherever each thread reads; or, if it pays, evenly apart."""
        kind = plain_type(expr.type)
        if kind not in VECTORS or kind == "bool":
            raise DoesNotApply
        where, step = f", {mask}" if mask else "", self.step(expr)
        if step == 0 and not self.guarded:
            return Value(f"({self.printer.expr(expr)})", kind, False)
        if step == 1:
            return Value(f"ww::load_lanes<{VECTORS[kind]}>(&{self.printer.expr(expr)}{where})", kind, True)
        if self.depth:
            return Value(f"ww::load_apart<{VECTORS[kind]}>(&{self.printer.expr(expr)}, {self.distance(expr)}{where})", kind, True)
        array, index = self.array(expr, mask)
        return Value(f"ww::gather_lanes<{VECTORS[kind]}>({array}, {index}{where})", kind, True)

    def array(self, place: Expr, mask: str) -> tuple[str, str]:
        """Return an array that is one for all threads, and a vector of places in it."""
        base, index = place.children
        if not self.is_uniform(base):
            raise DoesNotApply
        value = self.value(index, mask)
        if value.type not in ("int", "unsigned int"):
            raise DoesNotApply
        return self.printer.expr(base), self.as_type(value, value.type)


def refuse_divisions(expr: Expr) -> None:
    """Raise where whole numbers are divided by what may be 0: no thread may be left that computes this, and the vector would still."""
    for node in expr.walk():
        divides = node.kind in ("binary", "assign") and node.name in ("/", "%", "/=", "%=")
        if divides and plain_type(node.type) not in ("float", "double") and not literal(node.children[1]):
            raise DoesNotApply


def _of_thread(expr: Expr, x: int) -> Expr:
    """Return an expanded expression for one thread of a row."""
    return expr.map(lambda node: ir.number(x, node.line) if is_x(node) else None)


_NAMES: Mapping[str, str] = {"unsigned": "unsigned int", "uint": "unsigned int"}


def plain_type(text: str) -> str:
    """Return a type without const."""
    plain = text.removeprefix("const ").strip()
    return _NAMES.get(plain, plain)


def indented(lines: Sequence[str]) -> list[str]:
    """Return lines of C++ a step further in."""
    return [f"  {line}" for line in lines]
