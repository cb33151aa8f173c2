"""Code of the time when the threads of a warp ran in lockstep: it shows itself by its `volatile` memory, or by threads that exchange values in one
statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.synchronisation import BLOCK_VOTES
from warpwright.domains.transpile.ir import Declare, DoWhile, Function, Stmt


def relies_on_lockstep(function: Function) -> bool:
    """Say whether a function has volatile memory that threads may share, or exchanges values without a barrier."""
    if function.stepped:
        return True
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


def marked(functions: Sequence[Function]) -> list[Function]:
    """Return the functions with those marked that write, without a barrier between, through two pointers that a caller may let overlap.

    The caller has made of one shared array pointers of two types, as in `int* q = (int*)s; float* scales = (float*)(q + n);`. Where threads write
    more `q` than there is room for, the later statement counts for a warp in lockstep, and any of the two for threads that go one by one (the
    quantised attention of ggml, with heads of 64). Bytes that are dealt out as arrays of several types are the common case, and are no sign of it.
    """
    by_name: dict[str, list[Function]] = {}
    for function in functions:
        by_name.setdefault(function.name, []).append(function)
    found: set[int] = set()
    for function in functions:
        types = _of_one_array(function)
        for call in ir.expressions(function.body) if types else ():
            handed = [next((types[key] for key in argument.keys if key in types), None) for argument in call.children[1:]]
            for callee in by_name.get(call.name, ()) if call.kind == "call" else ():
                pairs = [(i, j) for i, one in enumerate(handed) for j, two in enumerate(handed) if i < j and one and two and _differ(one, two)]
                if any(max(i, j) < len(callee.parameters) and _writes_both(callee, i, j) for i, j in pairs):
                    found.add(callee.start)
    return [replace(function, stepped=True) if function.start in found else function for function in functions]


def _of_one_array(function: Function) -> dict[int, tuple[int, str]]:
    """Return, of each pointer that is made of a static shared array, the array and the type that it points to."""
    arrays = {v.key for v in (function.variables or {}).values() if v.space == "shared" and v.dims and not _BYTES.search(v.type)}
    pointers: dict[int, tuple[int, str]] = {}
    for stmt in ir.walk(function.body):
        if not isinstance(stmt, Declare) or "*" not in stmt.var.type or stmt.init is None:
            continue
        roots = [key for key in stmt.init.keys if key in arrays] + [pointers[key][0] for key in stmt.init.keys if key in pointers]
        if roots:
            pointers[stmt.var.key] = (roots[0], re.sub(r"\bconst\b|\b__restrict(__)?\b|[*\s]", "", stmt.var.type))
    return pointers


_ORDERS = frozenset(["__syncthreads", "__syncwarp", *BLOCK_VOTES])
"""What orders the memory of a block's threads, or a warp's; a shuffle does not."""

_BYTES = re.compile(r"\b(char|byte|u?int8_t)\b")


def _differ(one: tuple[int, str], two: tuple[int, str]) -> bool:
    return one[0] == two[0] and one[1] != two[1]


def _writes_both(callee: Function, first: int, second: int) -> bool:
    """Say whether a function writes through two of its parameters with no barrier between."""
    since: set[int] = set()
    wanted = {callee.parameters[first].key, callee.parameters[second].key}
    for expr in ir.expressions(callee.body):
        if expr.kind == "call" and expr.name in _ORDERS:
            since.clear()
        place = ir.assigned(expr)
        root = ir.target(place) if place is not None and place.kind != "name" else None
        if root is not None and root.var in wanted:
            since.add(root.var)
            if since == wanted:
                return True
    return False


def may_wait(loop: DoWhile, variables: Mapping[int, ir.Var]) -> bool:
    """Say whether a loop reads volatile memory: it may wait for what another thread of the block writes."""
    named = [variables.get(e.var) for e in ir.expressions(loop.body) if e.kind == "name" and e.var is not None]
    return any(var is not None and "volatile" in var.type for var in named)


def tries_again(loop: DoWhile) -> bool:
    """Is this `do { ...; s[i] = v; } while (s[i] != v)`?

    Of the threads that store in a turn the last one leaves, so that nobody waits for another thread's turn. Those that have left go on when all have:
    what they store next is not to be taken for what overwrote a count.
    """
    last = loop.body[-1] if loop.body else None
    cond = None if loop.cond is None else ir.bare(loop.cond)
    if not isinstance(last, ir.Evaluate) or last.expr.kind != "assign" or last.expr.name != "=" or cond is None or cond.name != "!=":
        return False
    compared, stored = ({ir.text_of(ir.bare(e)) for e in expr.children} for expr in (cond, last.expr))
    return last.expr.children[0].kind == "index" and compared == stored
