"""Kernels whose threads look at nothing but their number in the grid: their blocks may run as one long row of threads.

With L = blockIdx.x * C + threadIdx.x and blocks of C threads, for t = threadIdx.x and any m that divides C:

    blockIdx.x * C + t = L    blockIdx.x * (C / m) + t / m = L / m    t % m = L % m    (and shifts and masks for powers of two)

Each holds for t >= C as well, where a block goes on into the next. So where a kernel uses the launch in these forms only, one loop over t runs many:
a block of 15 threads costs its set-up once and not 400 times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.bounds import is_index_as_signed
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Expr, Stmt
from warpwright.domains.transpile.regions import Masked, Node, Plan, Region

BLOCK_SIZE = "launch.block.x"
"""The size of a block where the kernel takes any, as it is written in the output."""

_LAUNCH_WORD = re.compile(rf"\b({'|'.join(LAUNCH)}|warpSize)\b|\bww_lane\b")


@dataclass
class _Forms:
    """What the forms of a kernel ask of C."""

    sizes: set[str] = field(default_factory=set)
    """C itself: a number, or BLOCK_SIZE."""
    divisors: set[int] = field(default_factory=set)
    """Each divides C."""


def block_size(body: Sequence[Stmt], plan: Plan, impure: frozenset[str]) -> str | None:
    """Return C as text if the blocks of the kernel may run as one row, and None if they may not."""
    if plan.hoisted or plan.arrays or plan.lane_arrays or plan.scalars or not all(_simple(node) for node in plan.nodes):
        return None
    forms = _Forms()
    for stmt in ir.walk(tuple(body)):
        if isinstance(stmt, ir.Raw | ir.Barrier | ir.Collect) or not all(_fits(e, forms, impure) for e in ir.own_expressions(stmt)):
            return None
    if len(forms.sizes) != 1:
        return None
    (size,) = forms.sizes
    if size == BLOCK_SIZE:
        return None if forms.divisors else size
    return size if all(int(size) % divisor == 0 for divisor in forms.divisors) else None


def _simple(node: Node) -> bool:
    return isinstance(node, Region) or (isinstance(node, Masked) and all(_simple(inner) for inner in node.body))


def _fits(expr: Expr, forms: _Forms, impure: frozenset[str]) -> bool:
    """Is the launch looked at in the forms only? Notes what they ask for."""
    if expr.kind == "call" and (expr.name in impure or expr.name.startswith(("atomic", "__shfl", "__ballot", "__any", "__all", "__sync", "printf"))):
        return False
    if not _LAUNCH_WORD.search(ir.text_of(expr)):
        return all(_fits(child, forms, impure) for child in expr.children)
    if _form(expr, forms):
        return True
    if expr.kind in ("lambda", "other", "lane", "name", "member"):
        return False
    return all(_fits(child, forms, impure) for child in expr.children)


def _form(expr: Expr, forms: _Forms) -> bool:
    """Is this one of the forms? Notes what it asks for."""
    bare = _bare(expr)
    if bare.kind != "binary" or len(bare.children) != 2:
        return False
    left, right = map(_bare, bare.children)
    if bare.name == "+":
        return _number(left, right, forms) or _number(right, left, forms)
    divisor = _literal(right)
    if not _is(left, "threadIdx") or divisor is None:
        return False
    if bare.name == "&" and divisor & (divisor + 1) == 0:
        forms.divisors.add(divisor + 1)
        return True
    if bare.name == "%" and divisor > 0:
        forms.divisors.add(divisor)
        return True
    return False


def _number(block: Expr, thread: Expr, forms: _Forms) -> bool:
    """Are these the two terms of L / m: blockIdx.x times C / m, and threadIdx.x divided by m?"""
    if block.kind != "binary" or block.name != "*" or len(block.children) != 2:
        return False
    one, other = map(_bare, block.children)
    index, factor = (one, other) if _is(one, "blockIdx") else (other, one)
    if not _is(index, "blockIdx"):
        return False
    if _is(thread, "threadIdx") and _is(factor, "blockDim"):
        forms.sizes.add(BLOCK_SIZE)
        return True
    share, divisor = _literal(factor), _divisor(thread)
    if share is None or divisor is None:
        return False
    forms.sizes.add(str(share * divisor))
    forms.divisors.add(divisor)
    return True


def _divisor(thread: Expr) -> int | None:
    """Return m of threadIdx.x / m; 1 of threadIdx.x itself."""
    if _is(thread, "threadIdx"):
        return 1
    if thread.kind != "binary" or len(thread.children) != 2 or not _is(_bare(thread.children[0]), "threadIdx"):
        return None
    given = _literal(_bare(thread.children[1]))
    if given is None or (thread.name == "/" and given < 1):
        return None
    return given if thread.name == "/" else 1 << given if thread.name == ">>" and given < 31 else None


def _bare(expr: Expr) -> Expr:
    """Return the expression without parentheses and casts of an index to a signed type."""
    while (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and is_index_as_signed(expr)):
        expr = expr.children[-1]
    return expr


def _is(expr: Expr, name: str) -> bool:
    """Is this `name.x`?"""
    return expr.kind == "member" and expr.name == "x" and bool(expr.children) and expr.children[0].name == name


def _literal(expr: Expr) -> int | None:
    text = ir.text_of(expr).rstrip("uUlL") if expr.kind == "literal" else ""
    return int(text) if text.isdigit() and int(text) < 1 << 31 else None
