"""What a plain kernel looks like: indices of threads, a guard, and a body that knows the thread by those indices alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.unit import Unit
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Return, Stmt
from warpwright.errors import NotApplicable

THREAD_WORDS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_INDEX = re.compile(
    r"^(?:blockIdx\.(?P<a>[xyz])\*blockDim\.(?P=a)\+threadIdx\.(?P=a)|blockDim\.(?P<b>[xyz])\*blockIdx\.(?P=b)\+threadIdx\.(?P=b)"
    r"|threadIdx\.(?P<c>[xyz])\+blockIdx\.(?P=c)\*blockDim\.(?P=c)|threadIdx\.(?P<d>[xyz])\+blockDim\.(?P=d)\*blockIdx\.(?P=d))$"
)
SYNCHRONISING = re.compile(r"^(__sync\w*|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__match\w*|__reduce\w*|__activemask|__threadfence\w*|bar_\w*)$")


@dataclass(frozen=True)
class Plain:
    """A kernel whose threads are independent: `indices; if (guard) body`."""

    unit: Unit
    kernel: Kernel
    function: ir.Function
    prelude: tuple[Stmt, ...]
    """Declarations before the guard: the indices, and values that follow from them."""
    indices: dict[int, str]
    """Key of a variable that is the thread's index over the grid -> its axis."""
    guard: Expr | None
    """What holds for threads that work; None where all do."""
    body: tuple[Stmt, ...]

    @property
    def head(self) -> str:
        """The kernel's text up to the parameters' closing parenthesis."""
        return self.unit.text[self.kernel.start : self.kernel.head_end]

    @property
    def all(self) -> tuple[Stmt, ...]:
        """Prelude and body."""
        return (*self.prelude, *self.body)

    def var(self, key: int) -> ir.Var:
        """Return a variable by its key."""
        assert self.function.variables is not None
        return self.function.variables[key]


def plain(plan: Plan, name: str) -> Plain | None:
    """Return a kernel as plain; None for one that is not: threads that synchronise, share memory or ask for the thread elsewhere."""
    unit = plan.unit
    function, kernel = unit.functions.get(name), unit.kernels.get(name)
    if function is None or kernel is None or kernel.template or not unit.launches_of(name):
        return None
    split = _split(function.body)
    if split is None:
        return None
    prelude, guard, body = split
    indices: dict[int, str] = {}
    for stmt in prelude:
        if isinstance(stmt, Declare) and stmt.init is not None and (axis := axis_of(stmt.init)):
            indices[stmt.var.key] = axis
    rest = (*(s for s in prelude if not (isinstance(s, Declare) and s.var.key in indices)), *body)
    known = {f.name for f in unit.functions.values()}
    for stmt in ir.walk(rest):
        if isinstance(stmt, ir.Raw | Return | ir.DoWhile) or (isinstance(stmt, Declare) and stmt.var.space in ("shared", "dynamic", "constant")):
            return None
    for expr in ir.expressions((*rest, *((Evaluate(guard),) if guard is not None else ()))):
        if expr.kind == "name" and expr.var is None and expr.name in THREAD_WORDS:
            return None
        if expr.kind == "lambda" or (expr.kind == "call" and (SYNCHRONISING.match(expr.name) or _asks(expr.name, unit, known))):
            return None
        if expr.kind == "unary" and expr.name == "&" and ir.bare(expr.children[0]).kind != "index":
            return None  # a local variable may change where nobody assigns to it
    if any(_acts(stmt) for stmt in ir.walk(rest)):
        return None
    changed = changed_by(rest)
    if not indices or changed & indices.keys():
        return None
    return Plain(unit, kernel, function, prelude, indices, guard, body)


def _acts(stmt: Stmt) -> bool:
    """Is a statement a call for its effect that is no atomic: printf, or a function that writes through what it is given?"""
    call = ir.bare(stmt.expr) if isinstance(stmt, Evaluate) else None
    return call is not None and call.kind == "call" and not call.name.startswith("atomic")


def _asks(name: str, unit: Unit, known: set[str]) -> bool:
    """Does a device function of the text ask for the thread, synchronise, write memory, or call another one?"""
    if name not in known:
        return False
    function = unit.functions[name]
    if any(var.reference and not var.const and "const" not in var.type for var in function.parameters) or any(True for _ in stores(function.body)):
        return True
    return any(
        (e.kind == "name" and e.name in THREAD_WORDS)
        or (e.kind == "call" and (SYNCHRONISING.match(e.name) is not None or e.name in known or e.name.startswith("atomic")))
        for e in ir.expressions(function.body)
    )


def axis_of(expr: Expr) -> str:
    """Return the axis of which an expression is the thread's index over the grid; "" for another expression."""
    text = re.sub(r"\((?:unsigned int|unsigned|int|size_t|long long|long)\)|static_cast<[\w ]+>|\s+", "", ir.text_of(expr))
    match = _INDEX.match(text.replace("(", "").replace(")", "")) if text.count("(") == text.count(")") else None
    return next((axis for axis in match.groups() if axis), "") if match else ""


def _split(body: Sequence[Stmt]) -> tuple[tuple[Stmt, ...], Expr | None, tuple[Stmt, ...]] | None:
    """Return prelude, guard and body; None for a kernel that returns elsewhere than right behind the prelude."""
    at = 0
    while at < len(body) and isinstance(body[at], Declare):
        at += 1
    prelude, rest = tuple(body[:at]), tuple(body[at:])
    guards: list[Expr] = []
    while rest and isinstance(first := rest[0], If) and not first.other and _leaves(first.then):
        guards.append(negated(first.cond))
        rest = rest[1:]
    if len(rest) == 1 and isinstance(only := rest[0], If) and not only.other and not only.constexpr and not guards:
        return prelude, only.cond, only.then
    guard = guards[0] if guards else None
    for more in guards[1:]:
        guard = Expr("binary", (ir.paren(guard), " && ", ir.paren(more)), guard.line, "&&", None, "bool")  # type: ignore[arg-type, union-attr]
    if guard is None:  # declarations that only follow from others may read memory: they belong to the body
        reads = (i for i, s in enumerate(prelude) if isinstance(s, Declare) and s.init is not None and not ir.is_quiet(s.init))
        kept = next(reads, len(prelude))
        return prelude[:kept], None, (*prelude[kept:], *rest)
    return prelude, guard, rest


def _leaves(stmts: Sequence[Stmt]) -> bool:
    return len(stmts) == 1 and isinstance(stmts[0], Return) and stmts[0].value is None


_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def negated(cond: Expr) -> Expr:
    """Return the opposite of a condition."""
    bare = ir.bare(cond)
    if bare.kind == "binary" and bare.name == "||":
        parts = [ir.paren(negated(child)) for child in bare.children]
        return Expr("binary", (parts[0], " && ", parts[1]), cond.line, "&&", None, "bool")
    if bare.kind == "binary" and bare.name in _OPPOSITE and len(bare.children) == 2:
        sign = _OPPOSITE[bare.name]
        return Expr("binary", (bare.children[0], f" {sign} ", bare.children[1]), cond.line, sign, None, "bool")
    return Expr("unary", ("!", ir.paren(cond)), cond.line, "!", None, "bool")


def names(expr: Expr) -> frozenset[int]:
    """Return the keys of the variables in an expression."""
    return expr.keys


def closure(stmts: Sequence[Stmt], seeds: set[int]) -> set[int]:
    """Return the keys of the local variables that depend on `seeds`, by value or by the loop or branch that they are written in."""
    dependent = set(seeds)
    while True:
        before = len(dependent)
        _spread(stmts, dependent, False)
        if len(dependent) == before:
            return dependent


def _spread(stmts: Sequence[Stmt], dependent: set[int], under: bool) -> None:
    for stmt in stmts:
        inside = under or (isinstance(stmt, If | For) and stmt.cond is not None and bool(stmt.cond.keys & dependent))
        for expr in ir.own_expressions(stmt):
            for node in expr.nodes:
                changed = ir.assigned(node)
                root = ir.target(changed) if changed is not None else None
                if root is not None and root.var is not None and (inside or node.keys - {root.var} & dependent or node.keys & dependent):
                    dependent.add(root.var)
        if isinstance(stmt, Declare) and stmt.init is not None and (stmt.init.keys & dependent or under):
            dependent.add(stmt.var.key)
        for body in ir.bodies(stmt):
            _spread(body, dependent, inside)


@dataclass(frozen=True)
class Counted:
    """`for (int j = start; j < end; ++j)`."""

    counter: ir.Var
    start: Expr
    end: Expr
    closed: bool
    """The end belongs to the range: `<=`."""


def counted(loop: For) -> Counted | None:
    """Return how a loop counts up by one; None for another loop, or one that is left or counted on inside."""
    if len(loop.init) != 1 or not isinstance(first := loop.init[0], Declare) or first.init is None or loop.cond is None or loop.step is None:
        return None
    cond, step, key = ir.bare(loop.cond), ir.bare(loop.step), first.var.key
    if cond.kind != "binary" or cond.name not in ("<", "<=") or cond.children[0].var != key or key in cond.children[1].keys:
        return None
    one = step.kind == "assign" and step.name == "+=" and ir.text_of(step.children[1]) == "1"
    if not ((step.kind == "unary" and step.name == "++") or one) or step.children[0].var != key:
        return None
    for stmt in ir.walk(loop.body):
        if isinstance(stmt, ir.Jump | Return):
            return None
        if any(key in expr.changes for expr in ir.own_expressions(stmt)):
            return None
    return Counted(first.var, first.init, cond.children[1], cond.name == "<=")


def changed_by(stmts: Sequence[Stmt]) -> set[int]:
    """Return the keys of the variables that statements assign to, or to elements of."""
    return {key for stmt in ir.walk(tuple(stmts)) for expr in ir.own_expressions(stmt) for key in expr.changes}


def declared_in(stmts: Sequence[Stmt]) -> set[int]:
    """Return the keys of the variables that statements declare."""
    return {stmt.var.key for stmt in ir.walk(tuple(stmts)) if isinstance(stmt, Declare)}


def stores(stmts: Sequence[Stmt]) -> Iterator[Expr]:
    """Yield the elements of memory that statements assign to."""
    for expr in ir.expressions(tuple(stmts)):
        changed = ir.assigned(expr)
        if changed is not None and not is_local(changed):
            yield changed


def is_local(expr: Expr) -> bool:
    """Is what is assigned to a local variable, or an element of a local array?"""
    root = ir.target(expr)
    return root is not None and (ir.bare(expr).kind == "name" or "*" not in root.type)


def expect(condition: bool, what: str, seen: str = "another") -> None:
    """Raise NotApplicable unless a condition holds."""
    if not condition:
        raise NotApplicable(f"expected {what}, saw {seen}")


def coefficient(place: Expr, key: int, depends: set[int]) -> str:
    """Return what a place moves by when a variable moves by one: a text, "0" where it stays, "" where that is not known."""
    place = ir.bare(place)
    if not place.keys & depends:
        return "0"
    if place.kind == "name":
        return "1" if place.var == key else ""
    if place.kind == "cast":
        return coefficient(place.children[-1], key, depends)
    if place.kind != "binary" or len(place.children) != 2:
        return ""
    left, right = place.children
    if place.name in ("+", "-"):
        one, other = coefficient(left, key, depends), coefficient(right, key, depends)
        if place.name == "-" and other not in ("", "0"):
            other = f"-{other}"
        return other if one == "0" else one if other == "0" else ""
    if place.name == "*" and not left.keys & depends:
        inner = coefficient(right, key, depends)
        return "0" if inner == "0" else f"{ir.text_of(left)}" if inner == "1" else ""
    if place.name == "*" and not right.keys & depends:
        inner = coefficient(left, key, depends)
        return "0" if inner == "0" else f"{ir.text_of(right)}" if inner == "1" else ""
    return ""
