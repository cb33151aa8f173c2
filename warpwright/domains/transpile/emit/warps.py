"""Warps whose lanes run side by side, where 32 divides the block's width: what a warp shares is computed once for it, its other values in vectors.

A value is the same in all lanes of a warp when threadIdx.x counts in it only through quotients by multiples of 32, `row = (block * dim_x + x) / 32`;
it moves by one from lane to lane when it is x, x % 32 or x & 31, or a sum of one of them and what the warp shares. So `a[row * n + lane]` is a load
of neighbours, and `for (i = lane; i < n; i += 32)` takes its steps outside and its lanes inside.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import bounds, regions, uniform, vectorise
from warpwright.domains.transpile.analysis.regions import Loop, WarpGroup
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED, literal, not_negative
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt, Var
from warpwright.domains.transpile.passes import exchange, strides, warp_invariant
from warpwright.domains.transpile.printing import declarator

if TYPE_CHECKING:
    from warpwright.domains.transpile.emit.writer import Writer

LANES = 32

MULTIPLE, SHARED, THREAD, LANE = "multiple", "shared", "thread", "lane"
"""What an expression is for a warp: a multiple of 32 that its lanes share; shared; such a multiple plus the lane's number; shared plus that."""

_EVEN = (MULTIPLE, SHARED)
_WHOLE = tuple(t for t in (*SIGNED, *UNSIGNED) if t != "short")


@dataclass
class Lanes:
    """What is declared for a warp as a whole."""

    shared: set[int] = field(default_factory=set)
    linear: set[int] = field(default_factory=set)
    """Moves by one from lane to lane: declared with `_of_warp` behind its name, for the first lane."""


Piece = Declare | For | exchange.Join | exchange.Copy | list[Stmt]
"""Part of a region: a value that the warp shares, a strided loop, what is done for the warp as a whole, or what its lanes do side by side."""


def group(writer: Writer, node: WarpGroup) -> None:
    """Write the loop over warps, for blocks whose width is a multiple of 32; other blocks take the lanes one by one."""
    if not writer.options.vectors:
        writer.warps(node)
        return
    once = warp_invariant.of_warps(writer, node)
    writer.open("if (dim_x % 32 == 0)")
    writer.open(f"for (int warp_index = 0; warp_index < {'warps' if once is None else '1'}; ++warp_index)")
    if once is not None:
        writer.lines[-1] += "  // all warps do the same"
    writer.line("constexpr int lanes = 32;")
    writer.line("[[maybe_unused]] const int warp_thread = warp_index * 32, warp_x = one_row ? warp_thread : warp_thread % dim_x;")
    writer.line("[[maybe_unused]] const int thread = warp_thread, thread_x = warp_x, thread_y = one_row ? 0 : warp_thread / dim_x % dim_y,")
    writer.line("    thread_z = one_row ? 0 : warp_thread / (dim_x * dim_y);")
    writer.lane_places(node)
    writer.in_warps, writer.lanes = True, Lanes()
    writer.nodes(node.body)
    writer.in_warps, writer.lanes = False, None
    writer.close()
    if once is not None:
        warp_invariant.copies(writer, once)
    writer.otherwise()
    writer.warps(node)
    writer.close()
    if once is not None:
        writer.same |= once.same & once.written


def region(writer: Writer, stmts: Sequence[Stmt]) -> None:
    """Write a region of a warp: what the warp shares, then loops over its lanes, with the steps of strided loops outside of them."""
    before, masks, kept, depth = writer.lanes, writer.masks, set(writer.plan.lane_arrays), writer.depth
    writer.lanes = Lanes()
    writer.open("")
    _recomputed(writer, stmts)
    even = [m for m in masks if _kind(m, writer) in _EVEN]
    writer.masks = [m for m in masks if m not in even]
    writer.guard(even)
    alone = Lanes(set(writer.lanes.shared), set(writer.lanes.linear))
    pieces = _pieces(writer, stmts)
    crossing = _crossing(writer, pieces)
    if crossing is None:
        writer.lanes, pieces, crossing = alone, [list(stmts)], []
    for var in crossing:
        writer.line(f"alignas(64) {declarator(var, f'{var.name}_l', '[32]')};")
        writer.plan.lane_arrays.add(var.key)
    for piece in pieces:
        if isinstance(piece, Declare):
            _declare(writer, piece)
        elif isinstance(piece, For):
            _steps(writer, piece)
        elif isinstance(piece, exchange.Join | exchange.Copy):
            _exchange(writer, piece)
        else:
            _side_by_side(writer, piece, "0", "lanes")
    while writer.depth > depth:
        writer.close()
    writer.masks, writer.lanes = masks, before
    writer.plan.lane_arrays.clear()
    writer.plan.lane_arrays.update(kept)


def halves(node: Loop) -> bool:
    """Say whether a loop's counter is halved or doubled at each step, as the distance of shuffles is: few trips, each with lanes of its own."""
    return node.step is not None and node.step.kind == "assign" and node.step.name in (">>=", "<<=", "/=", "*=")


def values(writer: Writer, keys: Set[int]) -> Set[int]:
    """Give those of the keys their value in a lane that move from lane to lane; return which keys have their value already."""
    lanes = writer.lanes
    if lanes is None:
        return set()
    for var in writer.in_order(lanes.linear & keys):
        writer.line(f"const {var.type} {var.name} = {_of_warp(var, writer)} + lane_index;")
    return lanes.shared | lanes.linear


# --- what the warp shares ---------------------------------------------------------------------------------------------------------


def _recomputed(writer: Writer, stmts: Sequence[Stmt]) -> None:
    """Declare for the warp what is computed again in this region."""
    plan = writer.plan
    declared = {s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, Declare)}
    keys = writer.closure(regions.used([*stmts, *map(Evaluate, writer.masks)])) & plan.recomputed - declared
    for var in writer.in_order(keys):
        _declare(writer, plan.facts.declared[var.key])


def _declare(writer: Writer, stmt: Declare) -> None:
    """Declare a fixed value for the warp, as its first lane has it, where the lanes have no values of their own kind."""
    assert writer.lanes is not None and stmt.init is not None
    kind = _kind(stmt.init, writer)
    if kind in _EVEN:
        writer.line(f"{writer.printer.declaration(stmt, const=True)};")
        writer.lanes.shared.add(stmt.var.key)
    elif kind is not None and stmt.var.type in _WHOLE:
        writer.line(f"const {stmt.var.type} {_of_warp(stmt.var, writer)} = {writer.printer.expr(stmt.init)};")
        writer.line(f"[[maybe_unused]] const {stmt.var.type} {stmt.var.name} = {_of_warp(stmt.var, writer)};")
        writer.lanes.linear.add(stmt.var.key)


def _of_warp(var: Var, writer: Writer) -> str:
    """Return a name for what stands for the variable in the whole warp."""
    names = {v.name for v in writer.plan.variables.values()}
    return next(name for more in ("", *map(str, range(2, 10_000))) if (name := f"{var.name}_of_warp{more}") not in names)


def _is_for_the_warp(stmt: Declare, writer: Writer) -> bool:
    """Say whether a declaration may be made once for the warp."""
    plan, var = writer.plan, stmt.var
    if stmt.init is None or stmt.direct or var.dims or var.reference or var.space != "local" or var.key in plan.arrays | plan.lane_arrays:
        return False
    if plan.facts.assigned.get(var.key) or var.key in plan.facts.addressed:
        return False
    kind = _kind(stmt.init, writer)
    return kind in _EVEN or (kind is not None and var.type in _WHOLE)


def _pieces(writer: Writer, stmts: Sequence[Stmt]) -> list[Piece]:
    """Return the statements cut at what the warp shares and at strided loops."""
    made: list[Piece] = []
    assert writer.lanes is not None
    done = 0
    for at, stmt in enumerate(stmts):
        if at < done:
            continue
        whole = exchange.join(stmts[at:], writer) or exchange.copy(stmt, writer)
        if whole is not None and (isinstance(whole, exchange.Copy) or _for_whole_warp(whole.taken, writer)):
            made.append(whole)
            done = at + len(whole.stmts)
        elif isinstance(stmt, Declare) and stmt.init is not None and _is_for_the_warp(stmt, writer):
            (writer.lanes.shared if _kind(stmt.init, writer) in _EVEN else writer.lanes.linear).add(stmt.var.key)
            made.append(stmt)
        elif isinstance(stmt, For) and _is_strided(stmt, writer):
            made.append(stmt)
        elif made and isinstance(made[-1], list) and not _only_lane([stmt], writer) and not _only_lane(made[-1], writer):
            made[-1].append(stmt)
        else:
            made.append([stmt])
    return made


def _stmts(piece: Piece) -> Sequence[Stmt]:
    if isinstance(piece, list):
        return piece
    return piece.stmts if isinstance(piece, exchange.Join | exchange.Copy) else [piece]


def _crossing(writer: Writer, pieces: Sequence[Piece]) -> list[Var] | None:
    """Return the variables that live in several pieces; None where one cannot be kept for each lane."""
    assert writer.lanes is not None
    known = writer.lanes.shared | writer.lanes.linear | writer.plan.arrays | writer.plan.lane_arrays
    found: list[Var] = []
    for number, piece in enumerate(pieces):
        if not isinstance(piece, list):
            continue
        others = regions.used([s for i, p in enumerate(pieces) if i != number for s in _stmts(p)])
        for stmt in piece:
            if not isinstance(stmt, Declare) or stmt.var.key in known or stmt.var.key not in others:
                continue
            var = stmt.var
            if var.reference or var.dims or "auto" in var.type.split() or var.const or var.key in writer.plan.facts.addressed:
                return None
            found.append(var)
    return found


# --- loops over lanes -------------------------------------------------------------------------------------------------------------


def _side_by_side(writer: Writer, stmts: Sequence[Stmt], low: str, high: str, first: Sequence[str] = ()) -> None:
    """Write a loop over lanes, in vectors where that is safe. `first`: lines at the head of its body."""
    stmts = [_exchanged(s, writer) for s in stmts]
    simd = not vectorise.unvectorisable(stmts, writer.plan, writer.options.simple, writer.options.own)
    writer.vectorised += simd
    line = next((s.line for s in stmts if s.line), 0)
    if line:
        writer.line(f"// line {line}")
        writer.printer.last_line = line
    only = _only_lane(stmts, writer) or next((text for m in writer.masks if (text := _lane_of(m, writer))), "")
    if only:
        writer.open(f"if (const long lane_index = {only}; lane_index >= {low} && lane_index < {high})")
    else:
        if simd:
            writer.lines.append("#pragma omp simd")
        writer.open(f"for (int lane_index = {low}; lane_index < {high}; ++lane_index)")
    writer.line("[[maybe_unused]] const int thread = warp_thread + lane_index, thread_x = warp_x + lane_index;")
    for text in first:
        writer.line(text)
    writer.printer.vector = simd and not only
    every = [*stmts, *map(Evaluate, writer.masks)]
    writer.values(every, regions.used(every))
    writer.guard(writer.masks)
    writer.lines += writer.statements(stmts, simd and not only)
    writer.store(stmts)
    writer.printer.vector = False
    if writer.masks:
        writer.close()
    writer.close()


def _only_lane(stmts: Sequence[Stmt], writer: Writer) -> str:
    """Return the number of the one lane that an `if` is for, `if (lane == 0)`, or nothing."""
    if len(stmts) != 1 or not isinstance(stmts[0], ir.If) or stmts[0].other or stmts[0].constexpr:
        return ""
    return _lane_of(stmts[0].cond, writer)


def _lane_of(cond: Expr, writer: Writer) -> str:
    inner = ir.bare(cond)
    if inner.kind != "binary" or inner.name != "==" or len(inner.children) != 2:
        return ""
    for moving, fixed in (inner.children, inner.children[::-1]):
        if _kind(moving, writer) in (THREAD, LANE) and _kind(fixed, writer) in _EVEN:
            return f"(long)({writer.printer.expr(fixed)}) - (long)({writer.printer.expr(moving)})"
    return ""


def _for_whole_warp(stmt: Stmt, writer: Writer) -> bool:
    """Is this `taken = shuffle(offered)` of all 32 lanes, by a distance that they share?"""
    if not isinstance(stmt, Declare) or stmt.init is None or stmt.init.kind != "lane" or stmt.init.var is None or len(stmt.init.children) != 2:
        return False
    distance, width = stmt.init.children
    return _kind(distance, writer) in _EVEN and literal(width) == LANES


def _shuffled(stmt: Declare, writer: Writer) -> str:
    """Write the shuffle for the whole warp; return the name of the array with what each lane took."""
    assert stmt.init is not None and stmt.init.var is not None
    way = str(stmt.init.parts[0]).removeprefix("ww::lane_").partition("(")[0]
    taken, offered = _of_warp(stmt.var, writer), writer.plan.variables[stmt.init.var].name
    writer.line(f"alignas(64) {declarator(stmt.var, taken, '[32]')};")
    writer.line(f"ww::lanes_{way}({offered}_l, {taken}, {writer.printer.expr(stmt.init.children[0])});")
    return taken


def _exchanged(stmt: Stmt, writer: Writer) -> Stmt:
    """Return the statement that takes a shuffled value, with the shuffle done for the whole warp before, where its distance is shared."""
    if not isinstance(stmt, Declare) or not _for_whole_warp(stmt, writer):
        return stmt
    return replace(stmt, init=Expr("other", (f"{_shuffled(stmt, writer)}[lane_index]",), stmt.line, "", None, stmt.var.type))


def _exchange(writer: Writer, piece: exchange.Join | exchange.Copy) -> None:
    writer.vectorised += 1
    exchange.write(piece, writer, _shuffled(piece.taken, writer) if isinstance(piece, exchange.Join) else "")


def _is_strided(stmt: For, writer: Writer) -> bool:
    """Is this `for (i = lane + c; i < n; i += s) body`, with c, n and s the same in all lanes?"""
    counted = strides.counter(stmt, writer.plan.facts)
    if counted is None or counted[0].var.type not in _WHOLE:
        return False
    counter, end, by = counted
    assert stmt.cond is not None and counter.init is not None
    if _loads(end) and _stores(stmt.body, writer):
        return False
    if bounds.compared_unsigned(stmt.cond, writer.plan):  # a negative start is large there
        start = bounds.expand(counter.init, writer.plan)
        if start is None or not not_negative(start):
            return False
    return _kind(counter.init, writer) in (THREAD, LANE) and _kind(end, writer) in _EVEN and _kind(by, writer) in _EVEN and not _loads(by)


def _steps(writer: Writer, stmt: For) -> None:
    """Write a strided loop: the steps that all lanes take, and the last one that some take."""
    counter = stmt.init[0]
    assert isinstance(counter, Declare) and counter.init is not None and stmt.cond is not None and stmt.step is not None
    name, show = counter.var.name, writer.printer.expr
    unsigned = bounds.compared_unsigned(stmt.cond, writer.plan)
    cast = f"(long)({unsigned})" if unsigned else "(long)"
    more = " + 1" if stmt.cond.name == "<=" else ""
    writer.open("")
    writer.line(f"const long steps_end = {cast}({show(stmt.cond.children[1])}){more}, steps_by = {show(stmt.step.children[1])};  // line {stmt.line}")
    kind = "int" if counter.var.type == "int" else "long"  # int + lane is affine to a compiler, (int)(long + lane) would be a gather
    writer.line(f"{kind} steps_at = {cast if kind == 'long' else ''}({show(counter.init)});")
    value = [f"{counter.var.type} {name} = steps_at + lane_index;"]
    writer.open("for (; (long)steps_at + lanes <= steps_end; steps_at += steps_by)")
    _side_by_side(writer, stmt.body, "0", "lanes", value)
    writer.close()
    writer.open("for (; steps_at < steps_end; steps_at += steps_by)")
    _side_by_side(writer, stmt.body, "0", "(int)std::min<long>(lanes, steps_end - steps_at)", value)
    writer.close()
    writer.close()


# --- what an expression is for a warp ---------------------------------------------------------------------------------------------


def _loads(expr: Expr) -> bool:
    return any(n.kind == "index" or (n.kind == "unary" and n.name == "*") or (n.kind == "call" and n.name == "__ldg") for n in expr.walk())


def _stores(stmts: Sequence[Stmt], writer: Writer) -> bool:
    """Say whether the statements may write to memory: anything but a plain local variable."""
    for expr in ir.expressions(tuple(stmts)):
        changed = ir.assigned(expr)
        if changed is not None and (changed.kind != "name" or changed.var is None or writer.plan.variables[changed.var].space != "local"):
            return True
        if expr.kind == "call" and expr.name not in uniform.PURE_CALLS:
            return True
    return False


def _kind(expr: Expr, writer: Writer) -> str | None:
    """Return what an expression is for a warp; None where its lanes have values of another form."""
    if expr.kind == "literal":
        number = literal(expr)
        return MULTIPLE if number is not None and number % LANES == 0 else SHARED
    if expr.kind == "name":
        return _kind_of_name(expr, writer)
    if expr.kind == "member":
        return _kind_of_member(expr, writer)
    if expr.kind == "type":
        return SHARED
    if (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and expr.children):
        inner = _kind(expr.children[-1], writer)
        return inner if inner in _EVEN or expr.type.removeprefix("const ") in _WHOLE else None
    kinds = [_kind(child, writer) for child in expr.children]
    if expr.kind == "binary" and len(kinds) == 2:
        return _kind_of_binary(expr, kinds[0], kinds[1])
    if any(kind not in _EVEN for kind in kinds):
        return None
    if _loads(expr) and writer.masks:
        return None
    if expr.kind in ("conditional", "index") or (expr.kind == "unary" and expr.name in ("-", "!", "~", "+", "*")):
        return SHARED
    return SHARED if expr.kind == "call" and (expr.name in uniform.PURE_CALLS or expr.name == "__ldg") else None


def _kind_of_name(expr: Expr, writer: Writer) -> str | None:
    assert writer.lanes is not None
    if expr.name == "warpSize" and expr.var is None:
        return MULTIPLE
    if expr.var is None or expr.var not in writer.plan.variables:
        return None if expr.name in ("threadIdx", "ww_lane") else SHARED
    var = writer.plan.variables[expr.var]
    if expr.var in writer.lanes.linear:
        return LANE
    fixed = var.space in ("parameter", "constant", "shared", "dynamic") and (bool(var.dims) or not writer.plan.facts.assigned.get(expr.var))
    hoisted = any(isinstance(s, Declare) and s.var.key == expr.var for s in writer.plan.hoisted)
    return SHARED if expr.var in writer.lanes.shared | writer.plan.scalars or fixed or hoisted else None


def _kind_of_member(expr: Expr, writer: Writer) -> str | None:
    base = expr.children[0] if len(expr.children) == 1 else None
    if base is None:
        return None
    if base.kind == "name" and base.var is None and base.name == "threadIdx":
        return THREAD if expr.name == "x" else SHARED
    if base.kind == "name" and base.var is None and base.name == "blockDim" and expr.name == "x":
        return MULTIPLE
    return SHARED if _kind(base, writer) in _EVEN else None


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
    if left in _EVEN and right in _EVEN:
        whole = (expr.name == "*" and MULTIPLE in (left, right)) or (expr.name in ("+", "-") and (left, right) == (MULTIPLE, MULTIPLE))
        return MULTIPLE if whole else SHARED
    if expr.type.removeprefix("const ") not in _WHOLE:
        return None
    if expr.name == "+" and not (left not in _EVEN and right not in _EVEN):
        return THREAD if {left, right} == {MULTIPLE, THREAD} else LANE
    if expr.name == "-" and right in _EVEN:
        return THREAD if (left, right) == (THREAD, MULTIPLE) else LANE
    return None
