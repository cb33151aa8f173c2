"""Write warps whose lanes run side by side, where 32 divides the block's width: what a warp shares once for it, its other values in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.domains.transpile.analysis import bounds, regions, vectorise
from warpwright.domains.transpile.analysis.lanes import LANE, LANES, THREAD, Lanes, is_for_whole_warp, kind_of, lane_of, only_lane
from warpwright.domains.transpile.emit import plain_adds
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.passes.loops import atomic_adds
from warpwright.domains.transpile.passes.loops.warp_invariant import Values
from warpwright.domains.transpile.passes.vectors import warp_exchange
from warpwright.domains.transpile.passes.vectors.warp_vectors import Piece, WarpRegion, WarpValue
from warpwright.domains.transpile.printing import declarator


def open_side_by_side(writer: Writer, invariant: Values | None) -> None:
    """Open the loop over warps; one warp does for all what all do alike."""
    writer.open(f"for (int warp_index = 0; warp_index < {'warps' if invariant is None else '1'}; ++warp_index)")
    if invariant is not None:
        writer.lines[-1] += "  // all warps do the same"
    writer.line("constexpr int lanes = 32;")
    writer.line("[[maybe_unused]] const int warp_thread = warp_index * 32, warp_x = one_row ? warp_thread : warp_thread % dim_x;")
    writer.line("[[maybe_unused]] const int thread = warp_thread, thread_x = warp_x, thread_y = one_row ? 0 : warp_thread / dim_x % dim_y,")
    writer.line("    thread_z = one_row ? 0 : warp_thread / (dim_x * dim_y);")


def enter(writer: Writer) -> None:
    """What follows is for lanes that run side by side."""
    writer.in_warps, writer.lanes = True, Lanes(writer.plan)


def leave(writer: Writer) -> None:
    """What follows is for threads again."""
    writer.in_warps, writer.lanes = False, None


def copies(writer: Writer, values: Values) -> None:
    """Write the copies of what the first warp computed to the others."""
    for var in writer.plan.in_order(values.written):
        writer.line(f"for (int nth_warp = 1; nth_warp < warps; ++nth_warp) ww::lanes_same({var.name}_t, {var.name}_t + nth_warp * 32);")


def region(writer: Writer, chosen: WarpRegion) -> None:
    """Write a region of a warp: what the warp shares, then loops over its lanes, with the steps of strided loops outside of them."""
    before, masks, depth, in_arrays = writer.lanes, writer.masks, writer.depth, writer.lane_arrays
    writer.open("")
    for value in chosen.recomputed:
        _declare(value, writer)
    writer.guard(chosen.guards)
    writer.masks, writer.lanes = list(chosen.lanes.masks), chosen.lanes
    for var in chosen.crossing:
        writer.line(f"alignas(64) {declarator(var, f'{var.name}_l', '[32]')};")
    writer.lane_arrays = in_arrays | {var.key for var in chosen.crossing}
    for piece in chosen.pieces:
        _piece(piece, writer)
    while writer.depth > depth:
        writer.close()
    writer.masks, writer.lanes, writer.lane_arrays = masks, before, in_arrays


def _piece(piece: Piece, writer: Writer) -> None:
    if isinstance(piece, WarpValue):
        _declare(piece, writer)
    elif isinstance(piece, For):
        _steps(writer, piece)
    elif isinstance(piece, warp_exchange.Join | warp_exchange.Copy):
        _exchange(piece, writer)
    else:
        _side_by_side(writer, piece, "0", "lanes")


def _declare(value: WarpValue, writer: Writer) -> None:
    """Declare a fixed value for the warp, as its first lane has it."""
    stmt = value.stmt
    if value.shared:
        writer.line(f"{writer.printer.declaration(stmt, const=True)};")
        return
    assert stmt.init is not None
    name = writer.of_warp(stmt.var)
    writer.line(f"const {stmt.var.type} {name} = {writer.printer.expr(stmt.init)};")
    writer.line(f"[[maybe_unused]] const {stmt.var.type} {stmt.var.name} = {name};")


def _lane_number(writer: Writer, moving: Expr, fixed: Expr) -> str:
    """Return the number of the lane in which the two are equal."""
    return f"(long)({writer.printer.expr(fixed)}) - (long)({writer.printer.expr(moving)})"


def _side_by_side(
    writer: Writer, stmts: Sequence[Stmt], low: str, high: str, first: Sequence[str] = (), moving: frozenset[int] = frozenset()
) -> None:
    """Write a loop over lanes, in vectors where that is safe. `first`: lines at the head of its body; `moving`: keys of what these declare."""
    lanes = writer.lanes
    assert lanes is not None
    stmts = [_exchanged(s, writer) for s in stmts]
    linear = replace(lanes, linear=lanes.linear | moving)
    adds = None if writer.masks else atomic_adds.apart(stmts, writer.plan, "lane_index", lambda index: kind_of(index, linear) in (THREAD, LANE))
    if adds is None:
        return _lanes(writer, stmts, low, high, first)
    writer.open("" if adds.everywhere else "if (ww::alone())")
    plain_adds.one_by_one(writer, adds, "lane_index", LANES, lambda loop: _lanes(writer, loop, low, high, first))
    if not adds.everywhere:
        writer.otherwise()
        _lanes(writer, stmts, low, high, first)
    writer.close()


def _lanes(writer: Writer, stmts: Sequence[Stmt], low: str, high: str, first: Sequence[str]) -> None:
    """Write one loop over lanes."""
    lanes = writer.lanes
    assert lanes is not None
    simd = not vectorise.unvectorisable(stmts, writer.plan, writer.settings.simple, writer.settings.own)
    writer.vectorised += simd
    line = next((s.line for s in stmts if s.line), 0)
    if line:
        writer.line(f"// line {line}")
        writer.printer.last_line = line
    sides = only_lane(stmts, lanes) or next((pair for m in writer.masks if (pair := lane_of(m, lanes)) is not None), None)
    only = _lane_number(writer, *sides) if sides is not None else ""
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


def _shuffled(stmt: Declare, writer: Writer) -> str:
    """Write the shuffle for the whole warp; return the name of the array with what each lane took."""
    assert stmt.init is not None and stmt.init.var is not None
    way = str(stmt.init.parts[0]).removeprefix("ww::lane_").partition("(")[0]
    taken, offered = writer.of_warp(stmt.var), writer.plan.variables[stmt.init.var].name
    writer.line(f"alignas(64) {declarator(stmt.var, taken, '[32]')};")
    writer.line(f"ww::lanes_{way}({offered}_l, {taken}, {writer.printer.expr(stmt.init.children[0])});")
    return taken


def _exchanged(stmt: Stmt, writer: Writer) -> Stmt:
    """Return the statement that takes a shuffled value, with the shuffle done for the whole warp before, where its distance is shared."""
    if not isinstance(stmt, Declare) or writer.lanes is None or not is_for_whole_warp(stmt, writer.lanes):
        return stmt
    return replace(stmt, init=Expr("other", (f"{_shuffled(stmt, writer)}[lane_index]",), stmt.line, "", None, stmt.var.type))


def _place(key: int, writer: Writer) -> str:
    """Return the array with the variable's values in the lanes of the warp."""
    name = writer.plan.variables[key].name
    return f"{name}_l" if key in writer.lane_arrays else f"{name}_t + warp_thread"


def _exchange(piece: warp_exchange.Join | warp_exchange.Copy, writer: Writer) -> None:
    """Write a join, or a copy, for the warp as a whole."""
    writer.vectorised += 1
    if isinstance(piece, warp_exchange.Copy):
        writer.line(f"ww::lanes_same({_place(piece.source, writer)}, {_place(piece.to, writer)});")
        return
    taken, own = _shuffled(piece.taken, writer), _place(piece.var, writer)
    one, other = (taken, own) if piece.swapped else (own, taken)
    writer.line(f"ww::lanes_joined({one}, {other}, {own}, ww::{piece.operation}());  // line {piece.taken.line}")


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
    moving = frozenset([counter.var.key])
    _side_by_side(writer, stmt.body, "0", "lanes", value, moving)
    writer.close()
    writer.open("for (; steps_at < steps_end; steps_at += steps_by)")
    _side_by_side(writer, stmt.body, "0", "(int)std::min<long>(lanes, steps_end - steps_at)", value, moving)
    writer.close()
    writer.close()
