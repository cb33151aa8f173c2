"""Write threads whose atomic adds are plain ones (`passes/loops/atomic_adds.py`): a loop that computes what is added, and one for each array."""

from __future__ import annotations

from collections.abc import Callable

from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Stmt
from warpwright.domains.transpile.passes.loops.atomic_adds import CHUNK, Adds

APART = 'asm volatile("" ::: "memory");  // compilers would join the products and the sums'

Loop = Callable[[list[Stmt]], None]
"""Writes a loop over the threads, or lanes, at hand."""


def by_chunks(writer: Writer, found: Adds, low: str, high: str) -> None:
    """Write the threads of a row, or a stretch, from `low` to the one before `high`."""
    writer.open(f"for (int chunk_x = {low}, chunk_end; chunk_x < {high}; chunk_x = chunk_end)")
    writer.line(f"chunk_end = ww::smallest<int>({{{high}, chunk_x + {CHUNK}}});")

    def loop(stmts: list[Stmt]) -> None:
        writer.thread_head(stmts, True, (), "chunk_x", "chunk_end")
        writer.lines += writer.statements(stmts, True)
        writer.store(stmts)
        writer.printer.vector = False
        writer.close()

    one_by_one(writer, found, "thread_x - chunk_x", CHUNK, loop)
    writer.close()


def one_by_one(writer: Writer, found: Adds, index: str, count: int, loop: Loop) -> None:
    """Write the loops for `count` threads at most, `index` is a thread's number among them."""
    for add in found.adds:
        writer.line(f"alignas(64) {add.type} {add.name}[{count}];")
    loop([s for s in found.stmts if not (isinstance(s, Declare) and s.var.key in writer.ready)])
    writer.line(APART)
    for add in found.adds:
        waiting = Expr("other", (f"{add.name}[{index}]",), add.place.line, "", None, add.type)
        heads = [s for s in found.heads if s.var.key not in writer.ready]
        loop([*heads, Evaluate(Expr("assign", (add.place, " += ", waiting), add.place.line, "+="), add.place.line)])
