"""Write the loops of a region whose rows are cut (`segments.py`): over stretches, and over a stretch's threads; a form apart for short distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warpwright.domains.transpile.analysis.bounds import Bounds
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.ir import Declare, Evaluate, Stmt
from warpwright.domains.transpile.passes.loops import segments, stretch_values

Inner = Callable[[str, str], None]
"""Writes a stretch's threads, from the first to the one after the last."""


def write(writer: Writer, cut: segments.Segments, limits: Bounds, inner: Inner | None = None) -> None:
    """Write a region as stretches, by `inner` where the region has a form of its own inside them.

    Where they hold under a condition only, an `else` is left open: for the region as it is.
    """
    if cut.only_if:
        writer.open(f"if ({' && '.join(cut.only_if)})")
    _in_segments(writer, cut, replace(limits, rest=cut.guards), inner)
    if not cut.only_if:
        return
    if inner is None and cut.pairs is not None and not (limits.low or limits.high or limits.rows or writer.joined):
        _in_pairs(writer, cut, cut.pairs, limits)
    writer.otherwise()


def _in_segments(writer: Writer, cut: segments.Segments, limits: Bounds, inner: Inner | None) -> None:
    """Write a region whose rows are cut: the usual length has a loop of its own, which the compiler unrolls."""
    writer.rows(limits)
    low, high = writer.row_ends(limits)
    writer.open(f"for (int stretch_x = {low}, stretch_end; stretch_x < {high}; stretch_x = stretch_end)")
    for text, name in cut.parts.items():
        writer.line(f"const auto {name} = {text};")
    writer.line(f"stretch_end = ww::smallest<int>({{{high} - stretch_x, {', '.join(cut.lengths)}}}) + stretch_x;")
    if cut.skip:
        writer.line(f"if (!({' && '.join(f'({text})' for text in cut.skip)})) continue;")
    for only in cut.only:
        writer.line(f"const int {only};")
    if cut.low:
        writer.line(f"const int first_in = (int)ww::largest<long>({{stretch_x, {', '.join(cut.low)}}});")
    if cut.high:
        writer.line(f"const int last_in = (int)ww::smallest<long>({{stretch_end, {', '.join(cut.high)}}});")
    if inner is not None:
        inner("first_in" if cut.low else "stretch_x", "last_in" if cut.high else "stretch_end")
    elif cut.inside:
        writer.open(f"if ({' && '.join(f'({text})' for text in cut.inside)})")
        _by_length(writer, replace(cut, stmts=cut.unguarded))
        writer.otherwise()
        _one_segment(writer, cut, "last_in" if cut.high else "stretch_end")
        writer.close()
    else:
        _by_length(writer, cut)
    writer.close()
    writer.rows_end(limits)


def _in_pairs(writer: Writer, cut: segments.Segments, pairs: segments.Pairs, limits: Bounds) -> None:
    """Write a region for pairs of threads that are 1, 2 or 4 apart: known distances make a loop over pairs of stretches shuffles of vectors."""
    writer.otherwise(" && ".join(pairs.only_if))
    writer.open(f"ww::at_distance({pairs.distance}, [&](const auto distance)")
    writer.line("constexpr int apart = decltype(distance)::value;")
    writer.rows(limits)
    writer.simd(True)
    writer.open(f"for (int stretch_x = 0; stretch_x < {writer.row_length()}; stretch_x += 2 * apart)")
    for name, text in pairs.parts.items():
        writer.line(f"const auto {name} = {text};")
    writer.lines.append("#pragma GCC unroll 4")
    _one_segment(writer, cut, "stretch_x + apart", inner=True)
    writer.close()
    writer.depth -= 1
    writer.line("});")


def _by_length(writer: Writer, cut: segments.Segments) -> None:
    """Write a stretch, the usual length and others apart."""
    if not 0 < cut.usual <= segments.LONGEST_COPY or cut.only or cut.low or cut.high:
        _one_segment(writer, cut, "last_in" if cut.high else "stretch_end")
        return
    writer.open(f"if (stretch_end - stretch_x == {cut.usual})")
    _one_segment(writer, cut, f"stretch_x + {cut.usual}")
    writer.otherwise()
    _one_segment(writer, cut, "stretch_end")
    writer.close()


def _one_segment(writer: Writer, cut: segments.Segments, end: str, inner: bool = False) -> None:
    """Write a stretch's threads, with what they share in front; `inner`: inside of another that is vectorised."""
    if inner or cut.guards or cut.only:
        _threads_of(writer, cut, end, inner)
    else:
        first = "first_in" if cut.low else "stretch_x"
        shared_first(writer, cut.stmts, first, end, lambda stmts: _threads_of(writer, replace(cut, stmts=stmts), end))


def shared_first(writer: Writer, stmts: Sequence[Stmt], low: str, high: str, write_rest: Callable[[list[Stmt]], None]) -> None:
    """Write what all threads of a stretch share, where there are threads from `low` to `high`, and then the other statements."""
    held, rest = stretch_values.apart(stmts, writer.plan)
    if held:
        writer.open("" if low == "stretch_x" and high.startswith("stretch_") else f"if ({low} < {high})")
        writer.lines += writer.statements(held)
        writer.ready = frozenset(s.var.key for s in held if isinstance(s, Declare))
    write_rest(rest)
    if held:
        writer.ready = frozenset()
        writer.close()


def _threads_of(writer: Writer, cut: segments.Segments, end: str, inner: bool = False) -> None:
    """Write the loop over a stretch's threads alone."""
    masks: list[Stmt] = [Evaluate(m) for m in cut.guards]
    threads = [only.partition(" = ")[0] for only in cut.only]
    begun = "first_in" if cut.low else "stretch_x"
    low = f"ww::largest<int>({{{begun}, {', '.join(threads)}}})" if threads else begun
    high = f"ww::smallest<int>({{{end}, {', '.join(f'{thread} + 1' for thread in threads)}}})" if threads else end
    writer.thread_head([*cut.stmts, *masks], not threads, cut.guards, low, high, inner)
    writer.lines += writer.statements(cut.stmts, True)
    writer.store(cut.stmts)
    writer.printer.vector = False
    if cut.guards:
        writer.close()
    writer.close()
