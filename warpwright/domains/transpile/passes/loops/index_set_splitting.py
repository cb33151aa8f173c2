"""Guards that leave few threads, such as `if (lane == 0) s[warp] = v;` after what all threads do: they get a loop of their own over those threads.

Inside the loop over all of them the compiler would mask the store, or leave the whole loop scalar.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.bounds import bounds, conjuncts, expand, mentions_x
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Expr, If, Stmt
from warpwright.domains.transpile.passes.loops import segments
from warpwright.domains.transpile.printing import Printer

_INTS = ("", "int", "unsigned int", "unsigned")


def split(stmts: Sequence[Stmt], plan: Plan, printer: Printer) -> tuple[list[Stmt], list[Stmt]] | None:
    """Return the statements of a region before its last, a narrow `if`, and that with the values it needs; None where they belong together."""
    *head, last = stmts
    if not head or not isinstance(last, If) or last.other or last.constexpr or not any(not isinstance(s, Declare) for s in head):
        return None
    declared = {s.var.key: s for s in head if isinstance(s, Declare)}
    changed = {key for s in ir.walk(tuple(head)) if not isinstance(s, Declare) for key in regions.changed(s)}
    changed |= {key for s in head if isinstance(s, Declare) for key in regions.changed(s) - {s.var.key}}
    needed, todo = set(regions.used([last])), list(regions.used([last]))
    while todo:
        declaration = declared.get(todo.pop())
        if declaration is not None and declaration.var.key not in plan.arrays:
            new = regions.used([declaration]) - needed
            needed |= new
            todo += new
    again = [s for s in head if isinstance(s, Declare) and s.var.key in needed and s.var.key not in plan.arrays]
    if any(s.init is None or s.direct or not ir.is_quiet(s.init) or s.var.reference or s.var.dims for s in again):
        return None
    if any(not _may_wait(key, plan, changed) for key in needed) or any(regions.used([s]) & changed for s in again):
        return None
    rest = [opened(guard, set(declared), plan) for guard in bounds(conjuncts(last.cond), plan, printer).rest]
    cut = segments.split([], rest, plan, printer, "dim_x") if rest else None
    return (head, [*again, last]) if not rest or (cut is not None and not cut.only_if and len(cut.only) == len(rest)) else None


def parts(stmts: Sequence[Stmt], guards: Sequence[Expr], plan: Plan, printer: Printer) -> list[list[Stmt]] | None:
    """Return what is under common guards in runs, each with the values and guards it needs: a narrow `if` is a run of its own.

    `if (in) { s[t] = a[i]; if (t == 0) s[0] = a[i - 1]; if (t == 15) s[17] = a[i + 1]; }`, as tiles with borders are loaded, is three. None
    where there
    is no narrow `if`, or runs share values that are loaded or change.
    """
    heads = [s for s in stmts if isinstance(s, Declare)]
    body = [s for s in stmts if not isinstance(s, Declare)]
    if len(body) < 2 or not any(isinstance(s, If) for s in body):
        return None
    if any(s.init is None or s.direct or not ir.is_quiet(s.init) or s.var.reference or s.var.dims or s.var.key in plan.arrays for s in heads):
        return None
    changed = {key for s in ir.walk(tuple(body)) for key in regions.changed(s)} | plan.by_reference(body)
    named = set().union(*(e.keys for e in [*guards, *(s.init for s in heads if s.init is not None)])) | {s.var.key for s in heads}
    conds = [s.cond for s in body if isinstance(s, If)]
    if named & changed or any(not ir.is_quiet(c) for c in (*guards, *conds)) or any(c.keys & changed for c in conds):
        return None
    runs: list[list[Stmt]] = []
    wide = False
    for stmt in body:
        narrow = isinstance(stmt, If) and _is_narrow(stmt, plan, printer)
        if narrow or not wide:
            runs.append([stmt])
        else:
            runs[-1].append(stmt)
        wide = not narrow
    local = [{key for s in run for key in regions.changed(s) if key not in plan.variables or plan.variables[key].space == "local"} for run in runs]
    used = [regions.used(run) for run in runs]
    if len(runs) < 2 or any(mine & theirs for i, mine in enumerate(local) for j, theirs in enumerate(used) if i != j):
        return None
    return [_guarded([*_needed(heads, run), *run], guards, heads) for run in runs]


def alternatives(stmts: Sequence[Stmt], plan: Plan, printer: Printer) -> tuple[list[Stmt], list[Stmt]] | None:
    """Return `values; if (c) A else B`, also as `if (c) A; if (!c) B`, as a loop for each, where c follows from the thread's number.

    Masked, the threads of a vector that wait would go through the other's loop, or store, too; apart, c bounds the threads of each. Where neither
    loops, c has to come to bounds alone. (Sums of 256 numbers in eight steps of `if (t >= d) ... else ...`: 620 ns masked, 160 apart.)
    """
    *heads, last = stmts
    first = heads.pop() if heads and isinstance(heads[-1], If) else None
    if not isinstance(last, If) or last.constexpr or not all(isinstance(s, Declare) and s.init is not None for s in heads):
        return None
    if first is None:
        one, other = replace(last, other=()), If(_not(last.cond), last.other, line=last.line)
    elif isinstance(first, If) and not (first.other or last.other or first.constexpr) and _is_not(last.cond, first.cond):
        one, other = first, last
    else:
        return None
    if not (one.then and other.then) or not _follows(one.cond, plan):
        return None
    if not any(isinstance(s, ir.For) for s in ir.walk((one, other))) and not _are_bounds((one, other), plan, printer):
        return None
    values = [s for s in heads if isinstance(s, Declare) and s.init is not None]
    if any(s.direct or s.var.reference or s.var.dims or s.var.key in plan.arrays or not ir.is_quiet(s.init) for s in values if s.init is not None):
        return None
    changed = {key for stmt in (one, other) for key in regions.changed(stmt)} | plan.by_reference([one, other])
    if changed & {key for s in values if s.init is not None for key in (s.var.key, *s.init.keys)}:
        return None
    return [*heads, one], [*heads, other]


def _follows(cond: Expr, plan: Plan) -> bool:
    whole = expand(cond, plan)
    return whole is not None and mentions_x(whole)


def _are_bounds(pair: Sequence[If], plan: Plan, printer: Printer) -> bool:
    """Say whether both conditions come to one run of threads each, and both alternatives store to memory."""
    for stmt in pair:
        limits = bounds(conjuncts(stmt.cond), plan, printer)
        if limits.rest or limits.every is not None or not (limits.low or limits.high):
            return False
        if not any((place := ir.assigned(e)) is not None and place.kind == "index" for e in ir.expressions(stmt.then)):
            return False
    return True


def _not(cond: Expr) -> Expr:
    return Expr("unary", ("!", ir.paren(cond)), cond.line, "!", None, "bool")


def _is_not(cond: Expr, other: Expr) -> bool:
    inner = ir.bare(cond)
    return inner.kind == "unary" and inner.name == "!" and ir.text_of(ir.bare(inner.children[0])) == ir.text_of(ir.bare(other))


def _is_narrow(stmt: If, plan: Plan, printer: Printer) -> bool:
    if stmt.other or stmt.constexpr:
        return False
    limits = bounds(conjuncts(stmt.cond), plan, printer)
    return not limits.rest and any(e.name == "==" for part in conjuncts(stmt.cond) for e in part.walk() if e.kind == "binary")


def _needed(heads: Sequence[Declare], run: Sequence[Stmt]) -> list[Stmt]:
    keys = set(regions.used(run))
    kept: list[Stmt] = []
    for stmt in reversed(heads):
        if stmt.var.key in keys:
            keys |= regions.used([stmt])
            kept.insert(0, stmt)
    return kept


def _guarded(stmts: list[Stmt], guards: Sequence[Expr], heads: Sequence[Declare]) -> list[Stmt]:
    """Return the statements under the guards, with the declarations that these need in front."""
    for guard in reversed(guards):
        stmts = [If(guard, tuple(stmts), line=guard.line)]
    if not guards:
        return stmts
    keys = set().union(*(guard.keys for guard in guards))
    before = _needed(heads, [ir.Evaluate(guard) for guard in guards]) if keys else []
    declared = {s.var.key for s in before if isinstance(s, Declare)}
    inside = [ir.map_expressions(s, lambda e: None) for s in stmts]
    return [*before, *(_without(s, declared) for s in inside)]


def _without(stmt: Stmt, keys: Set[int]) -> Stmt:
    """Return a guarded list without the declarations of these keys, which stand in front of it."""
    if not isinstance(stmt, If):
        return stmt
    return replace(stmt, then=tuple(_without(s, keys) for s in stmt.then if not (isinstance(s, Declare) and s.var.key in keys)))


def _may_wait(key: int, plan: Plan, changed: Set[int]) -> bool:
    """Is the variable the same after the loop over all threads: unchanged by it, or in a per-thread array?"""
    return key not in changed or key in plan.arrays or plan.variables[key].space in ("shared", "dynamic")


def opened(guard: Expr, declared: Set[int], plan: Plan) -> Expr:
    """Return `value == number`, or a comparison of `t ^ j`, on the region's own values with what these are computed from, where that is the same."""
    if guard.kind != "binary" or guard.name not in ("==", "<", "<=", ">", ">=") or not any(e.var in declared for e in guard.walk()):
        return guard
    whole = expand(guard, plan)
    if whole is None or not all(e.kind != "paren" or e.type in _INTS for e in whole.walk()):
        return guard
    fits = literal(guard.children[-1]) is not None if guard.name == "==" else any(e.kind == "binary" and e.name == "^" for e in whole.walk())
    fits = fits or (guard.name == "==" and any(e.kind == "binary" and e.name in ("&", "^") for e in whole.walk()))
    return whole if fits else guard
