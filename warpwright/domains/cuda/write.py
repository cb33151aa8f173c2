"""Print a kernel's IR as CUDA again, as it was written: names and expressions keep their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.domains.transpile import ir, printing
from warpwright.domains.transpile.ir import Expr, Stmt

INDENT = "    "


class Writer(printing.Printer):
    """Prints statements of one kernel; `instead` holds other texts for variables, by key."""

    def __init__(self, function: ir.Function, instead: Mapping[int, str] | None = None) -> None:
        super().__init__(function.variables or {})
        self.instead = dict(instead or {})

    def expr(self, expr: Expr, exact: bool = False) -> str:
        """Return the text of an expression."""
        if expr.kind == "name":
            if expr.var is not None and expr.var in self.instead:
                return self.instead[expr.var]
            if expr.var is not None and expr.var in self.variables:
                return self.variables[expr.var].name
        text = ir.plain("".join([p if isinstance(p, str) else self.expr(p) for p in expr.parts]))
        return text.replace("ww::by(", "(")

    def written(self, stmt: Stmt, depth: int) -> list[str]:
        """Return the lines of a statement."""
        pad = INDENT * depth
        if isinstance(stmt, ir.Return):
            return [f"{pad}return;"] if stmt.value is None else [f"{pad}return {self.expr(stmt.value)};"]
        if isinstance(stmt, ir.Declare) and stmt.var.space in ("dynamic", "shared"):
            dims = "".join(f"[{d}]" for d in stmt.var.dims) or ("[]" if stmt.var.space == "dynamic" else "")
            extern = "extern " if stmt.var.space == "dynamic" else ""
            return [f"{pad}{extern}__shared__ {stmt.var.type} {stmt.var.name}{dims};"]
        if isinstance(stmt, ir.For) and stmt.pragma:
            inner = self.written(ir.For(stmt.init, stmt.cond, stmt.step, stmt.body), depth)
            return [f"{pad}#pragma {stmt.pragma}", *inner]
        lines = super().written(stmt, depth)
        return lines

    def statement(self, stmt: Stmt, depth: int) -> list[str]:
        """Return the lines of a statement, without the source's line numbers."""
        return self.written(stmt, depth)

    def body(self, stmts: Sequence[Stmt], depth: int = 1) -> str:
        """Return statements as text."""
        return "\n".join(self.statements(tuple(stmts), depth)) + "\n"


def raw(text: str) -> ir.Raw:
    """Return a statement given as text."""
    return ir.Raw(Expr("other", (text,)))


def kernel(head: str, function: ir.Function, body: Sequence[Stmt], instead: Mapping[int, str] | None = None) -> str:
    """Return a kernel's definition: `head` is its text up to the parameters' closing parenthesis."""
    return f"{head.rstrip()} {{\n{Writer(function, instead).body(body)}}}"
