"""Arrays in global memory of which each thread touches places by its own number alone: `s[i]`, `s[i ^ j]`, i = blockIdx.x * blockDim.x + threadIdx.x.

What such a thread has read and not changed, it may write back: the one other thread that could touch the place would race with the read. An array
that is also touched by a number from memory (`seen[edge[i]] = 1`) is none of them: there the write would undo what another thread has set.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import expand, is_index_as_signed
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Expr, Stmt


def own_places(body: Sequence[Stmt], plan: Plan) -> frozenset[int]:
    """Return the keys of such parameters of a kernel; none where it looks at the launch along y or z, in which numbers come twice."""
    own: set[int] = set()
    others: set[int] = set()
    for expr in ir.expressions(tuple(body)):
        if expr.kind == "member" and expr.children and expr.children[0].name in LAUNCH and expr.name != "x":
            return frozenset()
        if expr.kind in ("lambda", "other"):
            others |= {node.var for node in expr.walk() if node.var is not None}
        array = expr.children[0] if expr.kind == "index" else None
        if array is not None and array.kind == "name" and array.var is not None:
            (own if _is_own(expr.children[1], plan) else others).add(array.var)
    named = [expr.var for expr in ir.expressions(tuple(body)) if expr.kind == "name" and expr.var in own]
    indexed = [e.children[0].var for e in ir.expressions(tuple(body)) if e.kind == "index" and e.children[0].kind == "name"]
    alone = {key for key in own - others if key is not None and named.count(key) == indexed.count(key)}
    return frozenset(key for key in alone if _is_plain(key, plan))


def _is_plain(key: int, plan: Plan) -> bool:
    """Is the variable a parameter `T* p`?"""
    var = plan.variables[key]
    return var.space == "parameter" and var.type.count("*") == 1 and "volatile" not in var.type and not var.reference and not var.dims


def _is_own(index: Expr, plan: Plan) -> bool:
    """Is this the thread's number in the grid, or that number with the bits of a value that all threads share exchanged?"""
    whole = expand(index, plan)
    if whole is None:
        return False
    bare = _bare(whole)
    if bare.kind != "binary" or bare.name != "^" or len(bare.children) != 2:
        return _is_number(bare)
    one, other = map(_bare, bare.children)
    return (_is_number(one) and _is_shared(other)) or (_is_number(other) and _is_shared(one))


def _is_number(expr: Expr) -> bool:
    if expr.kind != "binary" or expr.name != "+" or len(expr.children) != 2:
        return False
    one, other = map(_bare, expr.children)
    product, thread = (other, one) if _is_launch(one, "threadIdx") else (one, other)
    if not _is_launch(thread, "threadIdx") or product.kind != "binary" or product.name != "*":
        return False
    left, right = map(_bare, product.children)
    return (_is_launch(left, "blockIdx") and _is_launch(right, "blockDim")) or (_is_launch(left, "blockDim") and _is_launch(right, "blockIdx"))


def _is_launch(expr: Expr, name: str) -> bool:
    return expr.kind == "member" and expr.name == "x" and bool(expr.children) and expr.children[0].name == name


def _is_shared(expr: Expr) -> bool:
    return not any(node.kind == "name" and node.name in LAUNCH for node in expr.walk())


def _bare(expr: Expr) -> Expr:
    while (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and is_index_as_signed(expr)):
        expr = expr.children[-1]
    return expr
