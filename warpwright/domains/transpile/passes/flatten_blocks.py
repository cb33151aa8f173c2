"""Kernels whose threads look along x at nothing but their number in the grid: their blocks may run as one long row of threads.

With L = blockIdx.x * C + threadIdx.x and blocks of C threads, for t = threadIdx.x and any m that divides C:

    blockIdx.x * C + t = L    blockIdx.x * (C / m) + t / m = L / m    t % m = L % m    (and shifts and masks for powers of two)

Each holds for t >= C as well, where a block goes on into the next, and so does (blockIdx.x * k + t / m) % n = (L / m) % n where k and C / m have
the same rest by n. So where a kernel uses the launch in these forms only, one loop over t runs many: a block of 15 threads costs its set-up once and
not 400 times.

The other axes stay as they are: rows of a sheet of blocks are joined along x where the kernel has no loop, in which blocks would reuse what lies in
the caches (a product of matrices reads its operand once a block, and would read it once a row).

A kernel of small blocks that looks at blockIdx.x or t in another way gets a second text for rows, in which they are blockIdx.x + t / C and t % C.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import is_index_as_signed
from warpwright.domains.transpile.analysis.regions import Masked, Node, Plan, Region
from warpwright.domains.transpile.integers import LAUNCH, literal
from warpwright.domains.transpile.ir import Expr, Stmt

BLOCK_SIZE = "launch.block.x"
"""The size of a block where the kernel takes any, as it is written in the output."""

SMALL = 64
"""Threads of a block, up to which a second text for rows pays."""

_LAUNCH_WORD = re.compile(rf"\b({'|'.join(LAUNCH)}|warpSize)\b|\bww_lane\b")


@dataclass
class _Forms:
    """What the forms of a kernel ask of C."""

    sizes: set[str] = field(default_factory=set)
    """C itself: a number, or BLOCK_SIZE."""
    divisors: set[int] = field(default_factory=set)
    """Each divides C."""
    rests: set[tuple[int, int, int]] = field(default_factory=set)
    """k, m and n: k and C / m have the same rest by n."""
    other_axes: bool = False
    """Is the launch looked at along y or z?"""

    def size(self) -> str | None:
        """Return C if there is one."""
        if len(self.sizes) != 1:
            return None
        (size,) = self.sizes
        if size == BLOCK_SIZE:
            return None if self.divisors or self.rests else size
        fits = all(int(size) % m == 0 for m in self.divisors) and all((int(size) // m - k) % n == 0 for k, m, n in self.rests)
        return size if fits else None


def block_size(body: Sequence[Stmt], plan: Plan, impure: frozenset[str]) -> str | None:
    """Return C as text if the blocks of the kernel may run as one row, and None if they may not."""
    if not is_apart(plan):
        return None
    forms = _Forms()
    for stmt in ir.walk(tuple(body)):
        if not _may_move(stmt) or not all(_fits(e, forms, impure) for e in ir.own_expressions(stmt)):
            return None
    loops = any(isinstance(stmt, ir.For | ir.DoWhile) for stmt in ir.walk(tuple(body)))
    return None if forms.other_axes and loops else forms.size()


def for_rows(
    body: Sequence[Stmt], plan: Plan, impure: frozenset[str], blocks: Sequence[tuple[int, int, int]] = ()
) -> tuple[str, tuple[Stmt, ...]] | None:
    """Return C, and the body of a kernel of small blocks written for rows; None where its blocks have to stay apart.

    blocks: shapes that the kernel is known to be launched with. What is written holds for any C, so that it may be a guess.
    """
    if plan.hoisted or plan.arrays or plan.lane_arrays or not all(map(_may_move, ir.walk(tuple(body)))):
        return None
    exprs = list(ir.expressions(tuple(body)))
    forms = _Forms()
    for expr in exprs:
        _form(expr, forms)
        if _calls_launch(expr, impure) or expr.kind in ("lambda", "other", "lane") or expr.name in ("warpSize", "ww_lane"):
            return None
        if expr.kind == "member" and expr.children and expr.children[0].name in LAUNCH and not (_is(expr, "blockIdx") or _is(expr, "threadIdx")):
            return None
    known = [x for x, y, z in blocks if y * z == 1]
    size = known[0] if known else max((int(size) for size in forms.sizes if size != BLOCK_SIZE), default=0)
    if not 1 < size <= SMALL:
        if not any(_is(e, "blockIdx") for e in exprs) or any(_is(e, "threadIdx") for e in exprs) or any(isinstance(s, ir.For) for s in body):
            return None
        size = 1  # a kernel that looks at blockIdx.x alone has one thread a block
    return str(size), tuple(ir.map_expressions(s, lambda e: _moved(e, size)) for s in body)


def _may_move(stmt: Stmt) -> bool:
    return not isinstance(stmt, ir.Raw | ir.Barrier | ir.Collective)


def _moved(expr: Expr, size: int) -> Expr | None:
    """Return an expression as a row has it; None where only what is inside it changes."""
    if not _LAUNCH_WORD.search(ir.text_of(expr)):
        return expr
    forms = _Forms({str(size)})
    if _form(expr, forms) and forms.size() is not None:
        return expr
    shared = _share_of_rest(expr, size)
    if shared is not None:
        return shared
    for name, operator, pattern in (("blockIdx", "+", "({0} + {1})"), ("threadIdx", "%", "")):
        if _is(_bare(expr), name) and expr.kind in ("member", "cast"):
            thread = expr.map(lambda n: replace(n, name="threadIdx", parts=("threadIdx",)) if n.kind == "name" and n.name == "blockIdx" else None)
            part = _binary(thread, "/" if pattern else "%", size) if size > 1 else thread
            return ir.paren(Expr("binary", (expr, f" {operator} ", part), expr.line, operator, None, expr.type)) if pattern else part
    return None


def _share_of_rest(expr: Expr, size: int) -> Expr | None:
    """Return (blockIdx.x % p) * q + t / m, where q m = C, as (blockIdx.x * q + t / m) % (p q)."""
    bare = _bare(expr)
    if bare.kind != "binary" or bare.name != "+" or len(bare.children) != 2:
        return None
    for block, thread in (bare.children, bare.children[::-1]):
        product, divisor = _bare(block), _divisor(_bare(thread))
        if product.kind != "binary" or product.name != "*" or divisor is None:
            continue
        rest, share = _bare(product.children[0]), literal(_bare(product.children[1]))
        if rest.kind != "binary" or not _is(_bare(rest.children[0]), "blockIdx") or share is None or share * divisor != size:
            continue
        modulus = literal(_bare(rest.children[1]))
        if modulus is not None and rest.name == "&" and modulus & (modulus + 1) == 0:
            modulus += 1
        elif modulus is None or rest.name != "%" or modulus < 1:
            continue
        number = _binary(rest.children[0], "*", share)
        whole = Expr("binary", (number, " + ", thread), expr.line, "+", None, bare.type)
        return _binary(ir.paren(whole), "%", modulus * share)
    return None


def _binary(left: Expr, operator: str, number: int) -> Expr:
    return ir.paren(Expr("binary", (left, f" {operator} ", ir.number(number, left.line)), left.line, operator, None, left.type))


def is_apart(plan: Plan) -> bool:
    """Say whether threads share nothing: one loop over them, under guards, is the whole kernel."""
    return not (plan.hoisted or plan.arrays or plan.lane_arrays or plan.scalars) and all(_simple(node) for node in plan.nodes)


def _simple(node: Node) -> bool:
    return isinstance(node, Region) or (isinstance(node, Masked) and all(_simple(inner) for inner in node.body))


def _fits(expr: Expr, forms: _Forms, impure: frozenset[str]) -> bool:
    """Is the launch looked at in the forms only? Notes what they ask for."""
    if not _LAUNCH_WORD.search(ir.text_of(expr)):
        return not any(_calls_launch(inner, impure) for inner in expr.walk())
    if _calls_launch(expr, impure):
        return False
    if _form(expr, forms):
        return True
    if expr.kind == "member" and expr.name in ("y", "z") and expr.children[0].name in LAUNCH:
        forms.other_axes = True
        return True
    if expr.kind in ("lambda", "other", "lane", "name", "member"):
        return False
    return all(_fits(child, forms, impure) for child in expr.children)


def _calls_launch(expr: Expr, impure: frozenset[str]) -> bool:
    """Is this a call whose effect depends on who makes it, or in which order?"""
    ordered = ("atomic", "__shfl", "__ballot", "__any", "__all", "__sync", "printf")
    return expr.kind == "call" and (expr.name in impure or expr.name.startswith(ordered))


def _form(expr: Expr, forms: _Forms) -> bool:
    """Is this one of the forms? Notes what it asks for."""
    bare = _bare(expr)
    if bare.kind != "binary" or len(bare.children) != 2:
        return False
    left, right = map(_bare, bare.children)
    if bare.name == "+":
        return _number(left, right, forms) or _number(right, left, forms)
    divisor = literal(right)
    if divisor is not None and _rest_of_number(bare.name, left, divisor, forms):
        return True
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
    share, divisor = literal(factor), _divisor(thread)
    if share is None or divisor is None:
        return False
    forms.sizes.add(str(share * divisor))
    forms.divisors.add(divisor)
    return True


def _rest_of_number(operator: str, left: Expr, divisor: int, forms: _Forms) -> bool:
    """Is this the rest by n of blockIdx.x * k + threadIdx.x / m?"""
    if operator == "&" and divisor & (divisor + 1) == 0:
        divisor += 1
    elif operator != "%" or divisor < 1:
        return False
    if left.kind != "binary" or left.name != "+" or len(left.children) != 2:
        return False
    for one, other in (left.children, left.children[::-1]):
        block, m = _bare(one), _divisor(_bare(other))
        factor = 1 if _is(block, "blockIdx") else None
        if block.kind == "binary" and block.name == "*" and _is(_bare(block.children[0]), "blockIdx"):
            factor = literal(_bare(block.children[1]))
        if factor is not None and m is not None:
            forms.rests.add((factor, m, divisor))
            forms.divisors.add(m)
            return True
    return False


def _divisor(thread: Expr) -> int | None:
    """Return m of threadIdx.x / m; 1 of threadIdx.x itself."""
    if _is(thread, "threadIdx"):
        return 1
    if thread.kind != "binary" or len(thread.children) != 2 or not _is(_bare(thread.children[0]), "threadIdx"):
        return None
    number = literal(_bare(thread.children[1]))
    if number is None or (thread.name == "/" and number < 1):
        return None
    return number if thread.name == "/" else 1 << number if thread.name == ">>" and number < 31 else None


def _bare(expr: Expr) -> Expr:
    """Return the expression without parentheses and casts of an index to a signed type."""
    while (expr.kind == "paren" and len(expr.children) == 1) or (expr.kind == "cast" and is_index_as_signed(expr)):
        expr = expr.children[-1]
    return expr


def _is(expr: Expr, name: str) -> bool:
    """Is this `name.x`?"""
    return expr.kind == "member" and expr.name == "x" and bool(expr.children) and expr.children[0].name == name
