"""What an expression is for a warp whose lanes run side by side: shared by all lanes, or moving by one from lane to lane.

A value is the same in all lanes of a warp when threadIdx.x counts in it only through quotients by multiples of 32, `row = (block * dim_x + x) / 32`;
it moves by one from lane to lane when it is x, x % 32 or x & 31, or a sum of one of them and what the warp shares. So `a[row * n + lane]` is a load
of neighbours, and `for (i = lane; i < n; i += 32)` takes its steps outside and its lanes inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import bounds, uniform
from warpwright.domains.transpile.analysis.counters import counted_loop
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED, literal, not_negative
from warpwright.domains.transpile.ir import Declare, Expr, For, Stmt

LANES = 32

MULTIPLE, SHARED, THREAD, LANE = "multiple", "shared", "thread", "lane"
"""What an expression is for a warp: a multiple of 32 that its lanes share; shared; such a multiple plus the lane's number; shared plus that."""

EVEN = (MULTIPLE, SHARED)
WHOLE = tuple(t for t in (*SIGNED, *UNSIGNED) if t != "short")


@dataclass(frozen=True)
class Lanes:
    """What is known of a warp at one place of the kernel."""

    plan: Plan
    masks: tuple[Expr, ...] = ()
    """Conditions that differ from lane to lane, under which the place is reached."""
    shared: set[int] = field(default_factory=set)
    """Keys of what is declared once for the warp."""
    linear: set[int] = field(default_factory=set)
    """Keys of what moves by one from lane to lane: declared for the first lane."""


def loads(expr: Expr) -> bool:
    return any(n.kind == "index" or (n.kind == "unary" and n.name == "*") or (n.kind == "call" and n.name == "__ldg") for n in expr.walk())


def stores(stmts: Sequence[Stmt], lanes: Lanes) -> bool:
    """Say whether the statements may write to memory: anything but a plain local variable."""
    for expr in ir.expressions(tuple(stmts)):
        changed = ir.assigned(expr)
        if changed is not None and (changed.kind != "name" or changed.var is None or lanes.plan.variables[changed.var].space != "local"):
            return True
        if expr.kind == "call" and expr.name not in uniform.PURE_CALLS:
            return True
    return False


def kind_of(expr: Expr, lanes: Lanes) -> str | None:
    """Return what an expression is for a warp; None where its lanes have values of another form."""
    if expr.kind == "literal":
        number = literal(expr)
        return MULTIPLE if number is not None and number % LANES == 0 else SHARED
    if expr.kind == "name":
        return _kind_of_name(expr, lanes)
    if expr.kind == "member":
        return _kind_of_member(expr, lanes)
    if expr.kind == "type":
        return SHARED
    if (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and expr.children):
        inner = kind_of(expr.children[-1], lanes)
        return inner if inner in EVEN or expr.type.removeprefix("const ") in WHOLE else None
    kinds = [kind_of(child, lanes) for child in expr.children]
    if expr.kind == "binary" and len(kinds) == 2:
        return _kind_of_binary(expr, kinds[0], kinds[1])
    if any(kind not in EVEN for kind in kinds):
        return None
    if loads(expr) and lanes.masks:
        return None
    if expr.kind in ("conditional", "index") or (expr.kind == "unary" and expr.name in ("-", "!", "~", "+", "*")):
        return SHARED
    return SHARED if expr.kind == "call" and (expr.name in uniform.PURE_CALLS or expr.name == "__ldg") else None


def _kind_of_name(expr: Expr, lanes: Lanes) -> str | None:
    if expr.name == "warpSize" and expr.var is None:
        return MULTIPLE
    if expr.var is None or expr.var not in lanes.plan.variables:
        return None if expr.name in ("threadIdx", "ww_lane") else SHARED
    var = lanes.plan.variables[expr.var]
    if expr.var in lanes.linear:
        return LANE
    fixed = var.space in ("parameter", "constant", "shared", "dynamic") and (bool(var.dims) or not lanes.plan.facts.assigned.get(expr.var))
    hoisted = any(isinstance(s, Declare) and s.var.key == expr.var for s in lanes.plan.hoisted)
    return SHARED if expr.var in lanes.shared | lanes.plan.scalars or fixed or hoisted else None


def _kind_of_member(expr: Expr, lanes: Lanes) -> str | None:
    base = expr.children[0] if len(expr.children) == 1 else None
    if base is None:
        return None
    if base.kind == "name" and base.var is None and base.name == "threadIdx":
        return THREAD if expr.name == "x" else SHARED
    if base.kind == "name" and base.var is None and base.name == "blockDim" and expr.name == "x":
        return MULTIPLE
    return SHARED if kind_of(base, lanes) in EVEN else None


def _kind_of_binary(expr: Expr, left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    number = literal(expr.children[1])
    if left == THREAD and number is not None:
        by_power = expr.name == ">>" and 5 <= number < 31
        if by_power or (expr.name == "/" and number and number % LANES == 0):
            return SHARED
        if (expr.name == "%" and number == LANES) or (expr.name == "&" and number == LANES - 1):
            return LANE
    if left == THREAD and expr.name in ("/", "%") and ir.text_of(expr.children[1]).strip() == "warpSize":
        return SHARED if expr.name == "/" else LANE
    if left in EVEN and right in EVEN:
        whole = (expr.name == "*" and MULTIPLE in (left, right)) or (expr.name in ("+", "-") and (left, right) == (MULTIPLE, MULTIPLE))
        return MULTIPLE if whole else SHARED
    if expr.type.removeprefix("const ") not in WHOLE:
        return None
    if expr.name == "+" and not (left not in EVEN and right not in EVEN):
        return THREAD if {left, right} == {MULTIPLE, THREAD} else LANE
    if expr.name == "-" and right in EVEN:
        return THREAD if (left, right) == (THREAD, MULTIPLE) else LANE
    return None


def lane_of(cond: Expr, lanes: Lanes) -> tuple[Expr, Expr] | None:
    """Return the two sides of `lane == number`: what moves from lane to lane, and what the warp shares."""
    inner = ir.bare(cond)
    if inner.kind != "binary" or inner.name != "==" or len(inner.children) != 2:
        return None
    for moving, fixed in (inner.children, inner.children[::-1]):
        if kind_of(moving, lanes) in (THREAD, LANE) and kind_of(fixed, lanes) in EVEN:
            return moving, fixed
    return None


def only_lane(stmts: Sequence[Stmt], lanes: Lanes) -> tuple[Expr, Expr] | None:
    """Return the sides of the comparison if the statements are one `if` for one lane, `if (lane == 0)`."""
    if len(stmts) != 1 or not isinstance(stmts[0], ir.If) or stmts[0].other or stmts[0].constexpr:
        return None
    return lane_of(stmts[0].cond, lanes)


def is_for_whole_warp(stmt: Stmt, lanes: Lanes) -> bool:
    """Is this `taken = shuffle(offered)` of all 32 lanes, by a distance that they share?"""
    if not isinstance(stmt, Declare) or stmt.init is None or stmt.init.kind != "lane" or stmt.init.var is None or len(stmt.init.children) != 2:
        return False
    distance, width = stmt.init.children
    return kind_of(distance, lanes) in EVEN and literal(width) == LANES


def is_strided(stmt: For, lanes: Lanes) -> bool:
    """Is this `for (i = lane + c; i < n; i += s) body`, with c, n and s the same in all lanes?"""
    counted = counted_loop(stmt, lanes.plan.facts)
    if counted is None or counted[0].var.type not in WHOLE:
        return False
    counter, end, by = counted
    assert stmt.cond is not None and counter.init is not None
    if loads(end) and stores(stmt.body, lanes):
        return False
    if bounds.compared_unsigned(stmt.cond, lanes.plan):  # a negative start is large there
        start = bounds.expand(counter.init, lanes.plan)
        if start is None or not not_negative(start):
            return False
    return kind_of(counter.init, lanes) in (THREAD, LANE) and kind_of(end, lanes) in EVEN and kind_of(by, lanes) in EVEN and not loads(by)
