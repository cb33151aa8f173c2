"""Blocks that take the steps of a grid-stride loop together: what lies between two steps of one block is what its neighbours read.

`for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];` reads 1 KiB in a row and then jumps by the width of
the grid: the memory's prefetching is defeated. A group of neighbouring blocks goes through the kernel's prologue, up to its last such loop, side by
side: each step reads some 16 KiB in a row. After it each block goes on alone. What a block holds in that prologue, private or shared, is
stored once per block of the group. CUDA orders no block before another; within a block nothing moves, so that sums of floats keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import bounds, regions
from warpwright.domains.transpile.analysis.regions import Loop, Node, Plan, Region, Single, Sync
from warpwright.domains.transpile.ir import Expr, Stmt
from warpwright.domains.transpile.printing import Printer

_ORDERED = ("atomic", "printf", "clock", "curand")
"""FusedPrologues of the names of functions whose effect depends on which block comes first."""


@dataclass(frozen=True)
class FusedPrologue:
    """The part of a kernel that blocks go through together."""

    nodes: int
    """How many of the plan's nodes."""
    arrays: frozenset[int]
    """Keys of what is stored once per thread of each block."""
    shared: frozenset[int]
    """Keys of the shared memory that each block of the group has for itself."""


def fused_prologue(plan: Plan, impure: frozenset[str]) -> FusedPrologue | None:
    """Return the part that ends with the last grid-stride loop; None where there is none, or where blocks have to stay apart."""
    printer = Printer(plan.variables)
    count = 0
    for place, node in enumerate(plan.nodes, 1):
        if not _may_join(node, plan, printer):
            break
        if isinstance(node, Loop) and node.cond is not None and _looks_at_block(node.cond):
            count = place
    nodes, rest = plan.nodes[:count], plan.nodes[count:]
    if not nodes or _needs_index(plan, impure):
        return None
    common = {key for node in nodes if not isinstance(node, Region) for stmt in regions.node_stmts(node) for key in regions.changed(stmt)}
    if common & {key for stmt in _stmts(rest) for key in regions.changed(stmt)}:
        return None  # one value for the group, which each block goes on to change
    keys = regions.used(list(_stmts(nodes)))
    shared = {key for key in keys if key in plan.variables and plan.variables[key].space in ("shared", "dynamic")}
    if any(plan.variables[key].space == "dynamic" for key in shared):
        return None  # of unknown size
    return FusedPrologue(count, frozenset(keys & plan.arrays), frozenset(shared))


def _may_join(node: Node, plan: Plan, printer: Printer) -> bool:
    """May blocks go through the node together?"""
    if isinstance(node, Sync):
        return node.scope == "block"
    if isinstance(node, Region):
        return all(_is_apart(stmt, printer) for stmt in ir.walk(tuple(node.stmts)))
    if isinstance(node, Single):
        return not isinstance(node.stmt, ir.Raw) and all(_is_common(e, plan) for s in ir.walk((node.stmt,)) for e in ir.own_expressions(s))
    if not isinstance(node, Loop) or not node.reach or node.cond is None or node.step is None:
        return False
    value, end = node.cond.children
    grows = not _looks_at_block(value) or bounds.grows(value, mentions=_looks_at_block)
    return (
        grows and _is_common(value, plan, True) and _is_common(end, plan) and _is_common(node.step, plan)
        and all(_may_join(inner, plan, printer) for inner in node.body)
    )  # fmt: skip


def _is_apart(stmt: Stmt, printer: Printer) -> bool:
    """Is the statement free of what depends on the order of blocks?"""
    if isinstance(stmt, ir.Raw | ir.Return):
        return False
    for expr in (e for own in ir.own_expressions(stmt) for e in own.walk()):
        if expr.kind == "lambda":
            return False
        if expr.kind == "call" and expr.name.startswith(_ORDERED) and not (len(expr.children) > 1 and printer.is_shared(expr.children[1])):
            return False
    return True


def _is_common(expr: Expr, plan: Plan, of_block: bool = False) -> bool:
    """Is the value the same for all blocks, wherever it is computed? `of_block`: or one that blockIdx.x alone makes another."""
    for node in expr.walk():
        if node.kind in ("index", "lane", "lambda") or (node.kind == "unary" and node.name in ("*", "&")) or (_is_block(node) and not of_block):
            return False
        if node.kind == "call" and node.name not in ("min", "max"):
            return False
        if node.kind == "name" and node.var is not None and node.var in plan.variables:
            var = plan.variables[node.var]
            if var.dims or var.space not in ("local", "parameter", "constant") or node.var in plan.facts.addressed:
                return False
    return True


def _looks_at_block(expr: Expr) -> bool:
    return any(_is_block(node) for node in expr.walk())


def _is_block(expr: Expr) -> bool:
    return expr.kind == "member" and expr.name == "x" and bool(expr.children) and expr.children[0].name == "blockIdx"


def _needs_index(plan: Plan, impure: frozenset[str]) -> bool:
    """Does something ask for the index of the block as a whole, as functions that look themselves do?"""
    for expr in (e for stmt in [*_stmts(plan.nodes), *plan.hoisted] for e in ir.expressions((stmt,))):
        if expr.kind == "call" and expr.name in impure:
            return True
        if expr.kind == "lambda" or (expr.kind == "other" and "blockIdx" in ir.text_of(expr)):
            return True
    whole = sum(expr.kind == "name" and expr.name == "blockIdx" for stmt in _stmts(plan.nodes) for expr in ir.expressions((stmt,)))
    parts = sum(
        expr.kind == "member" and expr.children[:1] != () and expr.children[0].name == "blockIdx"
        for stmt in _stmts(plan.nodes)
        for expr in ir.expressions((stmt,))
    )
    return whole != parts


def _stmts(nodes: Sequence[Node]) -> Iterator[Stmt]:
    for node, _ in regions.walk(nodes):
        yield from regions.node_stmts(node)
