"""Columns: blocks that each go down a column of an array run side by side, as threads along x of one wider block.

    o = blockIdx.x; for (i = threadIdx.x; i < n; i += blockDim.x) sum += x[i * width + o];
    ->   o = blockIdx.x * 64 + threadIdx.x; for (i = threadIdx.y; i < n; i += blockDim.y) sum += x[i * width + o];

One block alone reads 4 bytes of each line of 64 and nothing next to it; blocks side by side read lines in a row, as vectors. Shared memory gets one
more dimension. Within a block nothing moves: each sum stays what it was. (Sums of 384 columns of 1,024 rows, in doubles and then a tree: 0.27 ms by
blocks, 0.09 by 64 of them; a plain loop, in floats, takes 0.02.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.regions import Loop, Masked, MaskedLoop, Plan, Region, WarpGroup, children, meets, walk
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Declare, Expr, Stmt, Var
from warpwright.domains.transpile.passes.loops import reshaped
from warpwright.domains.transpile.passes.loops.reshaped import along

TOGETHER = (64, 16)
"""How many blocks stand side by side, where they divide the grid: four lines of memory in a row, which prefetching sees, or one. (0.11 ms by 16.)"""

WIDTH = "BX"
"""Their number, as the output writes it."""

GAIN = 4
"""By what loads and stores have to become cheaper: what is written here is a second text of the kernel."""


LEAST = 64
"""What loads and stores have to count: one in a loop that neighbouring threads do not read side by side."""


def columns(body: Sequence[Stmt], variables: Mapping[int, Var]) -> tuple[tuple[Stmt, ...], dict[int, Var]] | None:
    """Return the kernel for several blocks side by side; None where blocks have to stay apart."""
    changed = dict(variables)
    shared = {key: var for key, var in variables.items() if var.space in ("shared", "dynamic")}
    if sum(var.space == "dynamic" for var in shared.values()) > 1 or not _may_join(body, shared):
        return None
    for key, var in shared.items():
        if var.space == "shared":
            changed[key] = replace(var, dims=(*var.dims, WIDTH))
    moved = tuple(ir.map_expressions(stmt, lambda e: _moved(e, shared)) for stmt in body)
    return tuple(replace(s, var=changed[s.var.key]) if isinstance(s, Declare) and s.var.key in shared else s for s in moved), changed


def pays(before: Plan, after: Plan) -> bool:
    """Say whether blocks side by side read and write memory in rows that were columns; and whether all threads still meet at the barriers."""
    for node, _ in walk(after.nodes):
        if isinstance(node, MaskedLoop | WarpGroup) or (isinstance(node, Masked) and any(meets(inner, "block") for inner in node.body)):
            return False
    return cost(after) * GAIN <= cost(before)


def cost(plan: Plan) -> int:
    """Return what the plan's loads and stores of global memory count; those in loops more."""
    total, todo = 0, [(node, 1) for node in plan.nodes]
    while todo:
        node, times = todo.pop()
        if isinstance(node, Region):
            total += times * reshaped.cost(node.stmts, plan, of_block=False)
        deeper = times * (reshaped.DEEPER if isinstance(node, Loop) else 1)
        todo += [(inner, deeper) for inner in children(node)]
    return total


def fits(plan: Plan, together: int, threads: int) -> bool:
    """Say whether the arrays of so many blocks side by side are known to fit the stack of a CPU thread with room to spare."""
    total = 0
    kept = [(var, together * threads) for var in plan.in_order(plan.arrays)]
    shared = [(s.var, together) for s in plan.hoisted if isinstance(s, Declare) and s.var.space == "shared"]
    for var, times in (*kept, *shared):
        numbers = [part.strip(" ()") for dim in var.dims if dim != WIDTH for part in dim.split("*")]
        if not all(number.isdigit() for number in numbers):
            return False
        total += _BYTES.get(var.type.removeprefix("const "), 16) * math.prod(map(int, numbers)) * times
    return total <= STACK


_BYTES = {"float": 4, "int": 4, "unsigned int": 4, "bool": 1}
"""Bytes of a type; of others 16 are counted."""

STACK = 1 << 19
"""Bytes that a wide block's arrays may take: a thread of OpenMP has 2 or 8 MB of stack."""


def _may_join(body: Sequence[Stmt], shared: Mapping[int, Var]) -> bool:
    """Say whether nothing shows which block a thread is in, but its number, and shared memory is looked at by element."""
    joins = False
    top = {s.var.key for s in body if isinstance(s, Declare)}
    for stmt in ir.walk(tuple(body)):
        if isinstance(stmt, ir.Raw | ir.Collective | ir.Return) or (isinstance(stmt, ir.Barrier) and stmt.scope != "block"):
            return False
        if isinstance(stmt, Declare) and stmt.var.key in shared and (stmt.var.key not in top or stmt.init is not None):
            return False
        for expr in ir.own_expressions(stmt):
            nodes = list(expr.walk())
            axes = [n for n in nodes if n.kind == "member" and n.children and n.children[0].name in LAUNCH]
            if any((n.children[0].name, n.name) not in _AXES for n in axes) or len(axes) != sum(n.kind == "name" and n.name in LAUNCH for n in nodes):
                return False
            if any(n.kind in ("lambda", "lane", "other") or n.name == "warpSize" or (n.kind == "call" and n.name not in PURE_CALLS) for n in nodes):
                return False
            if sum(n.var in shared for n in nodes if n.kind == "name") != sum(_is_element(n, shared) for n in nodes):
                return False
            joins |= any(n.children[0].name == "blockIdx" for n in axes)
    return joins and all(var.space == "dynamic" or var.key in top for var in shared.values())


_AXES = (("threadIdx", "x"), ("blockIdx", "x"), ("blockDim", "x"))


def _is_element(expr: Expr, shared: Mapping[int, Var]) -> bool:
    element = tiles.element(expr) if expr.kind == "index" else None
    return element is not None and element[0] in shared and len(element[1]) == max(len(shared[element[0]].dims), 1)


def _moved(expr: Expr, shared: Mapping[int, Var]) -> Expr | None:
    """Return an expression as a thread of the wider block has it; None where only what is inside it changes."""
    if expr.kind == "member" and expr.children and expr.children[0].name in LAUNCH:
        name = expr.children[0].name
        if name == "blockIdx":
            return ir.paren(_sum(expr, along("threadIdx", "x", expr.line)))
        return along(name, "y", expr.line)
    if not _is_element(expr, shared):
        return None
    base, index = expr.children
    inside = index.map(lambda e: _moved(e, shared))
    across = along("threadIdx", "x", expr.line)
    if base.kind == "name" and base.var is not None and shared[base.var].space == "dynamic":
        return expr.with_children([base, _sum(ir.paren(inside), across)])
    outer = base.map(lambda e: _moved(e, shared))
    return Expr("index", (expr.with_children([outer, inside]), "[", across, "]"), expr.line, "", None, expr.type)


def _sum(number: Expr, across: Expr) -> Expr:
    """Return number * blocks side by side + across."""
    product = Expr("binary", (number, " * ", along("blockDim", "x", number.line)), number.line, "*", None, number.type)
    return Expr("binary", (product, " + ", across), number.line, "+", None, number.type)
