"""Tier F for code of the time when the threads of a warp ran in lockstep: `volatile` shared memory and no `__syncwarp`.

Each assignment to volatile memory becomes two steps, read and write, that all threads take together (`ww::step`).
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import fibers, ir
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Function, Stmt
from warpwright.domains.transpile.printing import INDENT, FunctionPrinter, declarator
from warpwright.domains.transpile.sanitize import definition
from warpwright.domains.transpile.scan import Kernel
from warpwright.domains.transpile.source import Source


def relies_on_lockstep(function: Function) -> bool:
    """Say whether a function has volatile memory that threads may share."""
    return any("volatile" in v.type and (v.space in ("shared", "dynamic") or "*" in v.type) for v in (function.variables or {}).values())


class _Stepped(FunctionPrinter):
    def expr(self, expr: Expr, exact: bool = False) -> str:
        if expr.kind == "name" and expr.var is not None and expr.var in self.variables:
            return self.variables[expr.var].name
        return self.parts(expr, False)

    def written(self, stmt: Stmt, depth: int) -> list[str]:
        pad = INDENT * depth
        if isinstance(stmt, Evaluate) and stmt.expr.kind == "assign" and self.is_volatile(stmt.expr.children[0]):
            target, value = stmt.expr.children
            place, text = self.expr(target), self.expr(value)
            whole = text if stmt.expr.name == "=" else f"{place} {stmt.expr.name[:-1]} ({text})"
            return [f"{pad}{{ const auto next = {whole}; ww::step(); {place} = next; ww::step(); }}"]
        if isinstance(stmt, Declare) and stmt.var.space == "shared":
            return [f"{pad}static thread_local {declarator(stmt.var)};"]
        return super().written(stmt, depth)

    def is_volatile(self, target: Expr) -> bool:
        root = ir.target(target)
        return root is not None and root.var is not None and root.var in self.variables and "volatile" in self.variables[root.var].type


def edits(source: Source, known: Sequence[Kernel], functions: Sequence[Function], taken: set[int]) -> list[fibers.Edit]:
    """Rewrite the functions that rely on lockstep, but for kernels (by offset) that another tier took."""
    made = []
    for function in functions:
        kernel = next((k for k in known if k.start <= function.start < k.end), None)
        if function.problem or not relies_on_lockstep(function) or (kernel is not None and kernel.start in taken):
            continue
        start, end, head = definition(source, kernel, function)
        printer = _Stepped(dict(function.variables or {}))
        text = "\n".join([f"{head} {{", *printer.statements(function.body, 1), "}"])
        made.append(fibers.Edit(start, end, text))
    return made
