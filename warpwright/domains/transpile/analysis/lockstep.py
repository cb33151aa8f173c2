"""Code of the time when the threads of a warp ran in lockstep: it shows itself by its `volatile` memory, or by threads that exchange values in one
statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import DoWhile, Function, Stmt


def relies_on_lockstep(function: Function) -> bool:
    """Say whether a function has volatile memory that threads may share, or exchanges values without a barrier."""
    volatile = any("volatile" in v.type and (v.space in ("shared", "dynamic") or "*" in v.type) for v in (function.variables or {}).values())
    return volatile or exchange(function) > 0


def exchange(function: Function) -> int:
    """Return the line of a statement such as `s[i] += s[i ^ 8]`, in which two threads read what the other writes; 0 if there is none.

    Both have to read before one of them writes: no order of the threads gives that, only a warp in lockstep. Under an `if` one of the two may act for
    both, as in a sorting network."""
    for expr in (expr for stmt in _of_all(function.body) for top in ir.own_expressions(stmt) for expr in top.walk()):
        if (place := ir.assigned(expr)) is None or expr.kind != "assign" or place.kind != "index" or len(place.children) != 2:
            continue
        array, index = (ir.text_of(child).strip() for child in place.children)
        for read in expr.children[1].walk():
            if read.kind != "index" or len(read.children) != 2 or ir.text_of(read.children[0]).strip() != array:
                continue
            other = ir.bare(read.children[1])
            if other.kind == "binary" and other.name == "^" and index in (ir.text_of(child).strip() for child in other.children):
                return expr.line
    return 0


def _of_all(stmts: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield the statements that stand under no `if`."""
    for stmt in stmts:
        if not isinstance(stmt, ir.If):
            yield stmt
            for body in ir.bodies(stmt):
                yield from _of_all(body)


def may_wait(loop: DoWhile, variables: Mapping[int, ir.Var]) -> bool:
    """Say whether a loop reads volatile memory: it may wait for what another thread of the block writes."""
    named = [variables.get(e.var) for e in ir.expressions(loop.body) if e.kind == "name" and e.var is not None]
    return any(var is not None and "volatile" in var.type for var in named)
