"""The control around loops over threads: loops that all threads go through together, branches and loops that only some of them take."""

from __future__ import annotations

import re

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import vectorise
from warpwright.domains.transpile.analysis.regions import Loop, Masked, MaskedLoop, Region, Sync, endings, meets, node_stmts, walk
from warpwright.domains.transpile.emit import regions
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Stmt

LARGEST_COPY = 96
"""Operations of a body up to which a loop of known length that halves its counter is written out, as the steps of a tree in shared memory are: each
step has a length of its own, which the compiler then knows. (A sum and a maximum over 256 threads: 20 ns less each, 5 per cent of softmax.)"""


def open_steps(writer: Writer, node: Loop) -> None:
    """Open a loop that all threads go through together."""
    if _halves(node) and (writer.lanes is not None or (not writer.in_warps and _is_counted(node))):
        writer.lines.append(f"#pragma GCC unroll {8 if writer.lanes is not None else 16}")
    cond = writer.printer.expr(node.cond) if node.cond is not None else ""
    if writer.lowered.prologue is not None and node.reach == "last":
        cond = re.sub(r"\bblock_x\b", "last_block", cond)
    step = writer.printer.expr(node.step) if node.step is not None else ""
    writer.open(f"for ({writer.printer.loop_init(node.init)}; {cond}; {step})")
    writer.lines[-1] += f"  // line {node.line}"


def open_masked(writer: Writer, node: Masked) -> int:
    """Open what runs for the threads that a condition holds for; return how many braces are open."""
    if not node.exits and any(meets(n, "block") for n in node.body):
        _threads_agree(writer, node)
    if all(isinstance(inner, Region | Sync | Masked) for inner, _ in walk(node.body)):
        return 0
    _any_inside(writer, node)
    return 2


def _any_inside(writer: Writer, node: Masked) -> None:
    """Open what runs only if it runs for some thread: loops and uniform values are those of the threads inside."""
    writer.open("")
    writer.line("int any_inside = 0;")
    conds: list[Stmt] = [Evaluate(m) for m in (*writer.masks, node.cond)]
    simd = writer.settings.vectors and not vectorise.unvectorisable(conds, writer.plan, writer.settings.simple, writer.settings.own)
    writer.loop_head(conds, "reduction(|: any_inside)" if simd else "")
    writer.line(f"any_inside |= ({writer.printer.expr(node.cond)}) != 0;")
    writer.loop_tail()
    writer.open("if (any_inside)")


def _threads_agree(writer: Writer, node: Masked | MaskedLoop) -> None:
    """A barrier under a condition that may differ: all threads have to agree, which is looked at when it runs, unless the others have exited."""
    if any(node is ending for ending in endings(writer.plan.nodes)):
        return
    cond = node.cond if isinstance(node, Masked) else ir.name_of(node.flag)
    writer.open("")
    writer.line("int inside = 0, alive = 0;")
    writer.loop_head([Evaluate(m) for m in (*writer.masks, cond)], False)
    writer.line("++alive;")
    writer.line(f"inside += ({writer.printer.expr(cond)}) != 0;")
    writer.loop_tail()
    writer.line(
        f'if (inside && inside != alive) {{ ww::fail("barrier that not all threads reach, under the condition of line {node.line}"); return; }}'
    )
    writer.close()


def open_masked_loop(writer: Writer, node: MaskedLoop) -> None:
    """Open a loop that threads leave at different times: it goes on while one is inside."""
    writer.open("for (;;)")
    writer.line("bool any_active = false;")
    regions.numbered(writer, node.number)
    writer.line("if (!any_active) break;")
    if any(meets(n, "block") for n in node.body):
        _threads_agree(writer, node)


def _is_counted(node: Loop) -> bool:
    """Is the loop small, and its length known when the block's shape is?"""
    start = node.init[0] if len(node.init) == 1 else None
    if not isinstance(start, Declare) or start.init is None or node.cond is None or node.step is None:
        return False
    inside = [inner for inner, _ in walk(node.body)]
    stmts = [s for inner in inside for s in node_stmts(inner)]
    if any(isinstance(inner, Loop | MaskedLoop) for inner in inside) or sum(1 for _ in ir.expressions(tuple(stmts))) > LARGEST_COPY:
        return False
    return all(_is_known(n, start.var.key) for e in (start.init, node.cond, node.step) for n in e.walk())


def _is_known(expr: Expr, counter: int) -> bool:
    """Is a name in the head of a loop the counter, or of the block's shape?"""
    if expr.kind == "name":
        return expr.var == counter or (expr.var is None and expr.name in ("blockDim", "warpSize"))
    return expr.kind in ("literal", "binary", "paren", "cast", "type", "member", "assign")


def _halves(node: Loop) -> bool:
    """Say whether a loop's counter is halved or doubled at each step, as the distance of shuffles is: few trips, each with lanes of its own."""
    return node.step is not None and node.step.kind == "assign" and node.step.name in (">>=", "<<=", "/=", "*=")
