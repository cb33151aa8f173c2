"""Finds barriers that some threads of a block reach and others provably do not: such a kernel is undefined on a GPU, and is refused.

Proven means: the barrier stands in a branch whose condition is made of the thread's own index and of numbers only, and takes both values among
the threads of a block. A condition with a size or a block index in it may be the same for all threads of every launch: then nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.errors import Refusal
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.ir import Declare, Expr, Function, If, Shape, Stmt

BARRIERS = frozenset({"__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count"})

UNKNOWN: tuple[Shape, ...] = ((2, 1, 1), (32, 1, 1), (1024, 1, 1))
"""A block whose shape is not known: what all of these have in common. One with several threads along y only is thought of if y is used."""

_ARITHMETIC = re.compile(r"[\s\d()<>=!%&|^+*/]*")
"""Without minus and complement: the thread's index is unsigned."""


def refuse_divergent(kernel: Function, source: Source, shapes: Sequence[Shape]) -> None:
    """Raise Refusal at the first barrier of `kernel` that is proven divergent for every known block shape."""
    body = kernel.body[:-1] if kernel.body and isinstance(kernel.body[-1], ir.Return) else kernel.body
    if any(isinstance(stmt, ir.Return) for stmt in ir.walk(body)):
        return  # the threads that do not take the branch may have left the kernel
    several = any(node.kind == "member" and node.name in "yz" for node in ir.expressions(body))
    shapes = shapes or (*UNKNOWN, *(((1, 2, 1), (1, 1, 2)) if several else ()))
    constant = _constants(kernel.body)
    for branch in _branches(kernel.body):
        sides = [_barrier(branch.then), _barrier(branch.other)]
        line = next((line for line in sides if line is not None), None)
        if line is None or all(side is not None for side in sides):
            continue
        text = _text(branch.cond, constant)
        if text and all(_differs(text, shape) for shape in shapes):
            file, _ = source.place(kernel.start)
            condition = ir.text_of(branch.cond)
            reason = f"kernel {kernel.name}: only the threads with {condition} (line {branch.line}) reach this barrier, the block waits for all"
            raise Refusal(file, line, "divergent-barrier", reason, "move __syncthreads() out of the branch")


def _branches(stmts: tuple[Stmt, ...]) -> Iterator[If]:
    return (stmt for stmt in ir.walk(stmts) if isinstance(stmt, If) and not stmt.exits)


def _barrier(stmts: tuple[Stmt, ...]) -> int | None:
    """Return the line of the first barrier in `stmts`."""
    calls = (node for node in ir.expressions(stmts) if node.kind == "call" and node.name in BARRIERS)
    return next((node.line for node in calls), None)


def _constants(body: tuple[Stmt, ...]) -> Mapping[int, Expr]:
    """Return the initial values of the variables that are never assigned to, nor bound to anything, afterwards."""
    constants = {stmt.var.key: stmt.init for stmt in ir.walk(body) if isinstance(stmt, Declare) and stmt.init is not None and not stmt.var.dims}
    for node in ir.expressions(body):
        changed = ir.assigned(node)
        target = ir.target(changed) if changed is not None else None
        if target is not None and target.var is not None:
            constants.pop(target.var, None)
        if (node.kind == "unary" and node.name == "&") or node.kind in ("call", "lambda"):  # a call may take a reference
            for child in node.walk():
                constants.pop(child.var or -1, None)
    for stmt in ir.walk(body):
        if isinstance(stmt, Declare) and stmt.var.reference and stmt.init is not None:
            for child in stmt.init.walk():
                constants.pop(child.var or -1, None)
    return constants


def _text(expr: Expr, constant: Mapping[int, Expr], depth: int = 0) -> str:
    """Return a condition in terms of {x}, {y}, {z} and numbers, or "" if there is more in it."""
    if depth > 8:
        return ""
    if expr.kind == "member" and ir.text_of(expr).replace(" ", "").startswith("threadIdx."):
        return "{" + expr.name + "}" if expr.name in "xyz" else ""
    if expr.kind == "name":
        value = constant.get(expr.var) if expr.var is not None else None
        inner = _text(value, constant, depth + 1) if value is not None else ""
        return f"({inner})" if inner else ""
    if expr.kind == "literal":
        number = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*", ir.text_of(expr).strip())
        return str(int(number[1], 0)) if number and not re.fullmatch(r"0\d+", number[1]) else ""
    if expr.kind not in ("binary", "paren", "unary"):
        return ""
    pieces = [part if isinstance(part, str) else _text(part, constant, depth) for part in expr.parts]
    if any(not piece for piece in pieces) or not _ARITHMETIC.fullmatch("".join(p for p in expr.parts if isinstance(p, str))):
        return ""
    return "(" + "".join(pieces) + ")"


def _differs(text: str, shape: Shape) -> bool:
    """Whether a condition takes both values among the threads of a block."""
    if "{" not in text:
        return False
    python = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ")).replace("/", "//")
    seen: set[bool] = set()
    for z in range(shape[2]):
        for y in range(shape[1]):
            for x in range(shape[0]):
                try:
                    seen.add(bool(eval(python.format(x=x, y=y, z=z), {"__builtins__": {}})))  # digits and operators only
                except (SyntaxError, ArithmeticError, TypeError):
                    return False
                if len(seen) > 1:
                    return True
    return False
