"""Tier F for code of the time when the threads of a warp ran in lockstep: `volatile` shared memory and no `__syncwarp`.

Each assignment to volatile memory becomes two steps, read and write, that all threads take together (`ww::step`): a thread that is ahead waits for
those that are at an earlier place of the source. So threads meet again behind branches, loops, each iteration and a function's returns, and the
second side of a branch waits for the first. Code without `volatile` does not show that it counts on lockstep; when it is asked for, each assignment
to memory that threads may share becomes such steps. A `do` loop that reads volatile memory steps once a turn, after all other steps: it may wait for
a thread of its block. One that tries a store again until it stays is none of them: those that have left it wait for the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.lockstep import exchange, may_wait, relies_on_lockstep, tries_again
from warpwright.domains.transpile.fibers.rewrite import refuse_launches
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, DoWhile, Evaluate, Expr, For, Function, If, Return, Stmt
from warpwright.domains.transpile.printing import INDENT, FunctionPrinter, declarator

_END = "the function's end"
"""Stands for the place behind all others of a function, until they are known: threads that return meet the others there."""
_MEETING = Evaluate(Expr("other", ("a step",)))
"""Stands in a body where all have to meet."""


class _Stepped(FunctionPrinter):
    def __init__(self, variables: dict[int, ir.Var], everywhere: bool, places: Iterator[int], called: bool) -> None:
        super().__init__(variables)
        self.everywhere, self.places, self.called = everywhere, places, called

    def expr(self, expr: Expr, exact: bool = False) -> str:
        if expr.kind == "name" and expr.var is not None and expr.var in self.variables:
            return self.variables[expr.var].name
        return self.parts(expr, False)

    def written(self, stmt: Stmt, depth: int) -> list[str]:
        pad = INDENT * depth
        if stmt is _MEETING:
            return [f"{pad}ww::step({next(self.places)});"]
        if isinstance(stmt, Evaluate) and stmt.expr.kind == "assign" and self.is_stepped(stmt.expr.children[0]):
            target, value = stmt.expr.children
            place, text = self.expr(target), self.expr(value)
            whole = text if stmt.expr.name == "=" else f"{place} {stmt.expr.name[:-1]} ({text})"
            kind = "const auto" if stmt.expr.name != "=" or not text.startswith("{") else f"const std::decay_t<decltype({place})>"
            return [f"{pad}{{ {kind} next = {whole}; ww::step({next(self.places)}); {place} = next; ww::step({next(self.places)}); }}"]
        if isinstance(stmt, For | DoWhile | If):
            lines = self.loop(stmt, depth) if not isinstance(stmt, If) else super().written(self.in_turn(stmt), depth)
            return [*lines, f"{pad}ww::step({next(self.places)});"] if any("ww::step(" in line for line in lines) else lines
        if isinstance(stmt, Return) and stmt.value is None and self.called:
            return [f"{pad}{{ ww::step({_END}); return; }}"]
        if isinstance(stmt, Declare) and stmt.var.space == "shared":
            return [f"{pad}static thread_local {declarator(stmt.var)};"]
        return super().written(stmt, depth)

    def in_turn(self, stmt: If) -> If:
        """Return a branch whose second side waits for the first one, as in a warp, which takes one after the other."""
        stores = (s.expr for s in ir.walk(stmt.then) if isinstance(s, Evaluate) and s.expr.kind == "assign")
        waits = stmt.other and any(self.is_stepped(expr.children[0]) for expr in stores)
        return replace(stmt, other=(_MEETING, *stmt.other)) if waits else stmt

    def loop(self, loop: For | DoWhile, depth: int) -> list[str]:
        """Write a loop whose threads, if they step in it, meet after each turn."""
        pad = INDENT * depth
        body = self.statements(loop.body, depth + 1)
        waits = isinstance(loop, DoWhile) and may_wait(loop, self.variables) and not tries_again(loop)
        if not waits and not any("ww::step(" in line for line in body):
            return super().written(loop, depth)
        meet = "ww::step(ww::spins)" if waits else f"ww::step({next(self.places)})"
        if isinstance(loop, DoWhile):
            return [pad + "do {", *body, f"{pad}}} while (({meet}, {self.expr(loop.cond)}));"]
        cond, step = ("" if part is None else self.expr(part) for part in (loop.cond, loop.step))
        return [f"{pad}for ({self.loop_init(loop.init)}; {cond}; {step + ', ' if step else ''}{meet}) {{", *body, pad + "}"]

    def is_stepped(self, target: Expr) -> bool:
        root = ir.target(target)
        if root is None:  # through a `*` or a call
            return self.everywhere
        if root.var is None or root.var not in self.variables:
            return False
        var = self.variables[root.var]
        shared = var.space in ("shared", "dynamic") or ("*" in var.type and root is not target)
        return "volatile" in var.type or (self.everywhere and shared)


def edits(source: Source, functions: Sequence[Function], taken: Set[int], everywhere: bool) -> list[Edit]:
    """Rewrite the functions that rely on lockstep (`everywhere`: all functions), but for kernels (by offset) that another tier took."""
    rewritten, places = [], itertools.count()
    for function in sorted(functions, key=lambda one: one.start):
        kernel = source.kernel_of(function.start)
        if function.problem or not (everywhere or relies_on_lockstep(function)) or (kernel is not None and kernel.start in taken):
            continue
        start, end, head = source.definition(function.name, function.start)
        refuse_launches(source, start, end, "lockstep")
        printer = _Stepped(dict(function.variables or {}), everywhere or function.stepped or exchange(function) > 0, places, kernel is None)
        lines = printer.statements(function.body, 1)
        met = [f"{INDENT}ww::step({_END});"] if any(_END in line for line in lines) else []
        text = "\n".join([head, "{", *lines, *met, "}"]).replace(_END, str(next(places)))
        rewritten.append(Edit(start, end, text))
    return rewritten
