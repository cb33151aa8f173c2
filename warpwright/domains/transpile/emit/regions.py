"""Write a region: its loop over threads, or over the lanes of a warp, in the form that was chosen for it."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.bounds import Bounds
from warpwright.domains.transpile.emit import plain_adds, segment_loops, warps
from warpwright.domains.transpile.emit.writer import IN_COLUMNS, IN_ROWS, Writer
from warpwright.domains.transpile.ir import Declare, Evaluate, For, Stmt
from warpwright.domains.transpile.passes.loops import rows, segments
from warpwright.domains.transpile.passes.loops.thread_loops import Form, Interior, Parts, Reduction, Reshaped, ThreadLoop, Transposed
from warpwright.domains.transpile.passes.vectors import accumulators, registers, thread_tiles, vector_values
from warpwright.domains.transpile.printing import INDENT


def numbered(writer: Writer, number: int) -> None:
    """Write the region, or the condition of the masked loop, of this number."""
    if writer.lanes is None:
        form(writer, writer.lowered.forms[number])
    elif number in writer.lowered.warp_regions:
        warps.region(writer, writer.lowered.warp_regions[number])


def form(writer: Writer, chosen: Form) -> None:
    """Write a region in the form that was chosen for it."""
    if isinstance(chosen, Parts):
        for part in chosen.parts:
            form(writer, part)
    elif isinstance(chosen, Interior):
        writer.open(f"if ({chosen.condition})")
        form(writer, chosen.inside)
        writer.otherwise()
        form(writer, chosen.border)
        writer.close()
    elif isinstance(chosen, Reduction):
        writer.vectorised += 1
        writer.loop_head(chosen.stmts, False)
        writer.lines += writer.statements(chosen.stmts)
        writer.store(chosen.stmts)
        writer.loop_tail()
    elif isinstance(chosen, Reshaped):
        _reshaped(writer, chosen)
    elif isinstance(chosen, Transposed):
        _transposed(writer, chosen)
    else:
        _thread_loop(writer, chosen)


def _reshaped(writer: Writer, chosen: Reshaped) -> None:
    """Write a region for a block in another shape: the names of the block's sizes stand for that shape's inside."""
    shape, plan = chosen.shape, writer.plan
    writer.open(f"if ({shape.condition})")
    writer.line(f"const int shape_x = {shape.sizes[0]}, shape_y = {shape.sizes[1]};  // the threads in another shape")
    writer.open("")
    writer.line("[[maybe_unused]] const int dim_x = shape_x, dim_y = shape_y;")
    writer.plan, writer.number = shape.plan, IN_COLUMNS if shape.swapped else IN_ROWS
    writer.height = shape.known[1] if shape.known is not None else "0"
    form(writer, chosen.inside)
    writer.plan, writer.number, writer.height = plan, IN_ROWS, "BY"
    writer.close()
    writer.otherwise()
    form(writer, chosen.general)
    writer.close()


def tiles_of(chosen: Form) -> list[thread_tiles.Tiles]:
    """Return the tiles of threads in a form."""
    if isinstance(chosen, Parts):
        return [tile for part in chosen.parts for tile in tiles_of(part)]
    return [chosen.tiles] if isinstance(chosen, ThreadLoop) and chosen.tiles is not None else []


def _transposed(writer: Writer, chosen: Transposed) -> None:
    """Write four stores of each thread as vectors of threads, for blocks whose shape is known to fit; the general form follows as `else`."""
    stores = chosen.stores
    writer.vectorised += 1
    writer.open(f"if constexpr (BX && {stores.apart()})")
    own = {one.var.key for one in (*stores.again, stores.declared) if one is not None} | {stores.four}
    values = _values(writer, stores.whole, regions.used(stores.whole) - own)
    _lines(writer, stores.lines(writer.plan, writer.printer, values))
    writer.otherwise()
    form(writer, chosen.general)
    writer.close()


def _thread_loop(writer: Writer, loop: ThreadLoop) -> None:
    first = next((s.line for s in loop.region if s.line), 0)
    if first:
        writer.line(f"// line {first}")
        writer.printer.last_line = first
    if loop.scalar:
        writer.scalar.append(loop.scalar)
    writer.vectorised += loop.simd
    if loop.registers is not None:
        _in_registers(writer, loop.registers, loop.region, loop.known)
    if loop.segments is None and (loop.sums is not None or loop.adds is not None):
        _in_vectors(writer, loop)
        return
    if loop.tiles is not None:
        writer.vectorised += 1
        writer.open(f"if constexpr ({loop.tiles.condition(writer.plan)})")
        keys = regions.used(loop.region) - {loop.tiles.sums}
        _lines(writer, loop.tiles.lines(writer.plan, writer.printer, _values(writer, loop.region, keys), loop.tiles.sums in writer.joined_tiles))
        writer.otherwise()
    writer.joined, writer.kept, writer.whole_values = loop.joined, loop.kept, loop.whole_values
    if loop.segments is not None:
        segment_loops.write(writer, loop.segments, loop.limits, _inner(writer, loop.segments, loop))
    if loop.segments is None or loop.segments.only_if:
        _rows(writer, loop)
    writer.joined, writer.kept, writer.whole_values = "", frozenset(), False
    if loop.registers is not None or loop.tiles is not None or (loop.segments is not None and loop.segments.only_if):
        writer.close()


def _rows(writer: Writer, loop: ThreadLoop) -> None:
    """Write the loop over the threads of each row; where the block's size is known, one more for rows that no bound cuts: its length is known too."""
    limits, named = loop.limits, [*loop.stmts, *(Evaluate(m) for m in loop.limits.rest)]
    whole = loop.simd and writer.settings.blocks and not limits.rest and not loop.joined and writer.lowered.row == rows.WIDTH
    if limits.one or limits.every is not None or not limits.high or not whole:
        writer.loop_head(named, loop.simd, limits)
        writer.lines += writer.statements(loop.stmts, loop.simd)
        writer.store(loop.stmts)
        writer.loop_tail(limits)
        return
    writer.rows(limits)
    low, high = writer.row_ends(limits)
    for first, last in (("0", "dim_x"), (low, high)):
        if last == "dim_x":
            writer.open(f"if (BX && {low} == 0 && {high} == dim_x)")
        else:
            writer.otherwise()
        writer.thread_head(named, loop.simd, (), first, last)
        writer.lines += writer.statements(loop.stmts, loop.simd)
        writer.store(loop.stmts)
        writer.printer.vector = False
        writer.close()
    writer.close()
    writer.rows_end(limits)


def _in_registers(writer: Writer, loop: For, stmts: Sequence[Stmt], known: tuple[str, str]) -> None:
    """Write the region with its sums in registers, for blocks whose shape is known to fit; the general form follows as `else`."""
    values = _values(writer, stmts, regions.used(stmts) - writer.plan.arrays)
    values += [
        f"const {writer.printer.declaration(s)};".replace("const const", "const") for s in stmts if isinstance(s, Declare) and s.init is not None
    ]
    writer.open(f"if constexpr ({'BX && ' if known[0].startswith('B') else ''}ww::fits_registers({known[0]}))")
    for text in registers.lines(loop, writer.plan, writer.printer, values, writer.settings.choices, known, writer.number):
        writer.lines.append(text if text.strip().startswith("#") else INDENT * writer.depth + text)
    writer.otherwise()


def _in_vectors(writer: Writer, loop: ThreadLoop) -> None:
    """Write the region as vectors of neighbouring threads."""
    sums = loop.sums
    values = _values(writer, sums.stmts, regions.used(sums.stmts) - writer.plan.arrays) if sums is not None else []
    if isinstance(sums, accumulators.Sums) and sums.by_thread_rows and writer.same_in_rows(loop.limits):
        _by_thread_rows(writer, loop.limits, sums, values)
        return
    bounded = bool(loop.limits.low or loop.limits.high or loop.limits.rows)
    writer.rows(loop.limits)
    if not bounded:
        writer.open("")
    if sums is not None:
        _lines(writer, sums.lines(writer.printer, values, *writer.row_ends(loop.limits)))
    elif loop.adds is not None:
        plain_adds.by_chunks(writer, loop.adds, *writer.row_ends(loop.limits))
    if bounded:
        writer.rows_end(loop.limits)
    else:
        writer.close()


def _by_thread_rows(writer: Writer, limits: Bounds, sums: accumulators.Sums, values: Sequence[str]) -> None:
    """Write the region as vectors of several rows of threads, and what is left of each row as vectors of its own."""
    ends = writer.row_ends(limits)
    holds = " && ".join(f"({row})" for row in limits.rows) or "true"
    writer.open("")
    for end in writer.ends(limits):
        writer.line(end)
    writer.line("for (int thread_z = 0; thread_z < dim_z; ++thread_z)")
    writer.open("for (int group_y = 0, rows_y; group_y < dim_y; group_y += rows_y)")
    writer.line(f"constexpr int {vector_values.ROWS} = ww::thread_rows({writer.height});")
    writer.line(f"rows_y = ww::rows_from<{vector_values.ROWS}>(group_y, dim_y, [&](const int thread_y) {{ return {holds}; }});")
    writer.line(f"int begun_x = {ends[0]};")
    writer.open("if (rows_y > 1)")
    _lines(writer, sums.of_thread_rows(writer.printer, values, *ends))
    writer.close()
    writer.open("for (int thread_y = group_y; thread_y < group_y + rows_y; ++thread_y)")
    writer.line(f"if (!({holds})) continue;")
    _lines(writer, sums.lines(writer.printer, values, "begun_x", ends[1]))
    for _ in range(3):
        writer.close()


def _lines(writer: Writer, texts: Sequence[str]) -> None:
    """Write lines at the present depth; what is asked of the compiler begins its line."""
    for text in texts:
        writer.lines.append(text if text.strip().startswith("#") else INDENT * writer.depth + text)


def _inner(writer: Writer, cut: segments.Segments, loop: ThreadLoop) -> segment_loops.Inner | None:
    """Return what writes a stretch in a form of its own; None where it is a plain loop."""
    sums, adds = loop.sums, loop.adds

    def in_vectors(low: str, high: str) -> None:
        assert sums is not None
        values = _values(writer, cut.stmts, regions.used(cut.stmts))
        _lines(writer, sums.lines(writer.printer, values, low, high))

    def with_adds(low: str, high: str) -> None:
        assert adds is not None
        segment_loops.shared_first(writer, adds.stmts, low, high, lambda rest: plain_adds.by_chunks(writer, adds, low, high))

    return in_vectors if sums is not None else with_adds if adds is not None else None


def _values(writer: Writer, stmts: Sequence[Stmt], keys: set[int]) -> list[str]:
    """Return the declarations of what is recomputed for the statements."""
    before, writer.lines = writer.lines, []
    writer.values(stmts, keys)
    values, writer.lines = [line.strip() for line in writer.lines], before
    return values
