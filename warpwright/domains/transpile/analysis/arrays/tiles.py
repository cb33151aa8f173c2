"""Arrays of one thread: loops that write a whole one, and loops in which its elements are used again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import jumps
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt, Var

PLAIN = frozenset(["float", "double", "int", "unsigned int", "uint", "unsigned", "long", "half", "__half", "float2", "float4", "int4", "short", "uint32_t"])  # noqa: E501
"""Element types whose values are their bytes."""


@dataclass(frozen=True)
class Counter:
    """The counter of `for (T i = 0; i < end; ++i)`."""

    key: int
    end: str
    """As it is written, without blanks and outer parentheses."""


def counter(stmt: Stmt, any_start: bool = False) -> Counter | None:
    """Return the counter of a loop that counts from zero (or from anywhere) by one and that nothing leaves; None for another statement."""
    if not isinstance(stmt, For) or len(stmt.init) != 1 or not isinstance(first := stmt.init[0], Declare):
        return None
    if first.init is None or (literal(first.init) != 0 and not any_start) or stmt.cond is None or stmt.step is None:
        return None
    key, cond, step = first.var.key, stmt.cond, stmt.step
    if cond.kind != "binary" or cond.name != "<" or cond.children[0].var != key or step.children[0].var != key:
        return None
    by_one = (step.kind == "unary" and step.name == "++") or (step.kind == "assign" and step.name == "+=" and literal(step.children[1]) == 1)
    if not by_one or any(jumps(s) or isinstance(s, ir.Return | ir.Raw) for s in ir.walk(stmt.body) if s is not stmt):
        return None
    if any(key in e.changes for e in ir.expressions(stmt.body)):
        return None
    return Counter(key, written(cond.children[1]))


def written(expr: Expr | str) -> str:
    """Return the text of a size without blanks and outer parentheses."""
    text = re.sub(r"\s+", "", expr if isinstance(expr, str) else ir.text_of(ir.bare(expr)))
    while text.startswith("(") and _closes(text):
        text = text[1:-1]
    return text


def _closes(text: str) -> bool:
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return at == len(text) - 1
    return False


def element(expr: Expr) -> tuple[int, tuple[Expr, ...]] | None:
    """Return the key and the indices of `a[i]` or `a[i][j]`."""
    indices: list[Expr] = []
    while expr.kind == "index" and len(expr.children) == 2:
        indices.insert(0, expr.children[1])
        expr = expr.children[0]
    return (expr.var, tuple(indices)) if indices and expr.kind == "name" and expr.var is not None else None


def elements(stmts: Sequence[Stmt]) -> Iterator[tuple[int, tuple[Expr, ...]]]:
    """Yield each element of an array that the statements name."""
    for expr in ir.expressions(tuple(stmts)):
        if expr.kind == "index" and (place := element(expr)) is not None:
            yield place


def used_by_element(stmts: Sequence[Stmt], var: Var) -> bool:
    """Say whether the statements use an array by whole elements only: nothing takes its address, hands it on or refers to it."""
    names = sum(e.var == var.key for e in ir.expressions(tuple(stmts)))
    whole = sum(place[0] == var.key and len(place[1]) == len(var.dims) for place in elements(stmts))
    taken = any(e.kind in ("lambda", "other") or (e.kind == "unary" and e.name == "&" and _roots(e, var.key)) for e in ir.expressions(tuple(stmts))
                if var.key in e.keys)  # fmt: skip
    return names == whole and not taken


def _roots(expr: Expr, key: int) -> bool:
    root = ir.target(expr.children[0])
    return root is not None and root.var == key


def writes_whole(stmt: Stmt, var: Var, around: tuple[Counter, ...] = ()) -> bool:
    """Say whether a statement writes each element of an array before anything reads one: a nest of counting loops around `a[i * n + j] = value`."""
    if isinstance(stmt, Evaluate):
        expr = stmt.expr
        if expr.kind != "assign" or expr.name != "=" or (place := element(expr.children[0])) is None or place[0] != var.key:
            return False
        reads = [*expr.children[1].nodes, *(n for index in place[1] for n in index.walk())]
        return not any(n.var == var.key for n in reads) and _covers(place[1], var, around)
    inner = counter(stmt)
    if inner is None:
        return False
    assert isinstance(stmt, For)
    for one in stmt.body:
        if any(e.var == var.key for e in ir.expressions((one,))):
            return writes_whole(one, var, (*around, inner))
    return False


def _covers(indices: Sequence[Expr], var: Var, around: Sequence[Counter]) -> bool:
    """Say whether the indices run through all elements while the counters do."""
    if len(indices) != len(var.dims):
        return False
    by_key = {one.key: one for one in around}  # each of them: a loop that picks no element may run no time
    seen: list[int] = []
    for index, dim in zip(indices, var.dims, strict=True):
        digits = _digits(ir.bare(index), by_key)
        if digits is None or not _same_size([by_key[key].end for key in digits], dim):
            return False
        seen += digits
    return sorted(seen) == sorted(by_key)


def _digits(index: Expr, counters: Mapping[int, Counter]) -> list[int] | None:
    """Return the counters i, j of `i * (end of j) + j`, of `i` alone, or of deeper sums."""
    index = ir.bare(index)
    if index.kind == "name" and index.var is not None and index.var in counters:
        return [index.var]
    if index.kind != "binary" or index.name != "+" or len(index.children) != 2:
        return None
    for high, low in (index.children, index.children[::-1]):
        last, product = ir.bare(low), ir.bare(high)
        if last.kind != "name" or last.var is None or last.var not in counters or product.kind != "binary" or product.name != "*":
            continue
        for one, other in (product.children, product.children[::-1]):
            if written(other) == counters[last.var].end and (more := _digits(one, counters)) is not None:
                return [*more, last.var]
    return None


def _same_size(ends: Sequence[str], dim: str) -> bool:
    """Say whether a product of sizes is the array's."""
    size = written(dim)
    if all(end.isdigit() for end in ends) and size.isdigit():
        product = 1
        for end in ends:
            product *= int(end)
        return product == int(size)
    return sorted(written(f) for f in _factors(size)) == sorted(f for end in ends for f in _factors(end))


def _factors(text: str) -> list[str]:
    """Return the factors of a product."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "*" and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        elif letter in "+-/%" and depth == 0:
            return [text]
    parts.append(text[start:])
    return [factor for part in parts for factor in (_factors(written(part)) if written(part) != text else [part])]


# --- reuse ----------------------------------------------------------------------------------------------------------------------------


def reused(stmts: Sequence[Stmt], var: Var) -> bool:
    """Say whether loops come back to elements of an array: each use is in a loop, and one of them in a loop whose counter picks no element."""
    uses = list(_uses(tuple(stmts), var.key, ()))
    return bool(uses) and all(loops for loops, _ in uses) and any(
        counter(loop) is None or not any(n.var == _key(loop) for i in indices for n in i.walk()) for loops, indices in uses for loop in loops
    )  # fmt: skip


def _key(loop: For) -> int | None:
    return loop.init[0].var.key if loop.init and isinstance(loop.init[0], Declare) else None


def _uses(stmts: tuple[Stmt, ...], key: int, loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], tuple[Expr, ...]]]:
    for stmt in stmts:
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        for expr in ir.own_expressions(stmt):
            for node in expr.walk():
                if node.kind == "index" and (place := element(node)) is not None and place[0] == key:
                    yield inner, place[1]
        for body in ir.bodies(stmt):
            yield from _uses(body, key, inner)


def along_the_array(stmts: Sequence[Stmt], keys: Mapping[int, Var]) -> bool:
    """Say whether the innermost loops that add up in one of these arrays run along it, and along what else they read: vectors of one thread.

    `for (i...) for (j < 8) sum[i * 8 + j] += a[i] * b[j]` does. Neighbouring threads then need not touch neighbouring memory.
    """
    deepest = list(_innermost(tuple(stmts), 0))
    depth = max((d for d, _ in deepest), default=0)
    sums = [loop for d, loop in deepest if d == depth and depth > 1 and any(_adds(s, keys) for s in loop.body)]
    return bool(sums) and all(_runs_along(loop, keys) for loop in sums)


def _adds(stmt: Stmt, keys: Mapping[int, Var]) -> bool:
    place = element(target) if (target := ir.assigned(stmt.expr) if isinstance(stmt, Evaluate) else None) is not None else None
    return place is not None and place[0] in keys


def _innermost(stmts: tuple[Stmt, ...], depth: int) -> Iterator[tuple[int, For]]:
    for stmt in stmts:
        if isinstance(stmt, For) and not any(isinstance(s, For | ir.DoWhile) for s in ir.walk(stmt.body)):
            yield depth + 1, stmt
        for body in ir.bodies(stmt):
            yield from _innermost(body, depth + isinstance(stmt, For))


def _runs_along(loop: For, keys: Mapping[int, Var]) -> bool:
    inner = counter(loop)
    if inner is None or not all(isinstance(s, Evaluate | Declare) for s in loop.body):
        return False
    for _, indices in elements(loop.body):
        steps = [step(index, inner.key) for index in indices]
        if any(s is None for s in steps) or any(steps[:-1]) or steps[-1] not in (0, 1):
            return False
    targets = [ir.assigned(e) for e in ir.expressions(loop.body)]
    places = [element(t) for t in targets if t is not None]
    return all(place is not None and place[0] in keys and step(place[1][-1], inner.key) == 1 for place in places)


def step(index: Expr, key: int) -> int | None:
    """Return by how much a sum of products moves while a counter moves by one; None where that is not a number."""
    index = ir.bare(index)
    if not any(n.var == key for n in index.walk()):
        return 0
    if index.kind == "name":
        return 1
    if index.kind == "cast":
        return step(index.children[-1], key)
    if index.kind != "binary" or len(index.children) != 2:
        return None
    left, right = (step(child, key) for child in index.children)
    if index.name in ("+", "-") and left is not None and right is not None:
        return left + right if index.name == "+" else left - right
    if index.name == "*":
        for factor, moving in (index.children, index.children[::-1]):
            number, inner = literal(factor), step(moving, key)
            if number is not None and inner is not None:
                return number * inner
    return None
