"""Sums in a loop over the same rows again and again, as in a product of matrices: the rows are packed once, and several sums go on at a time.

    for (y...) { float s = 0; for (x...) s += q[t * d + x] * k[y * d + x]; S[n * t + y] = s; }        t: the thread, a lane of a vector

    ->  row[x] = q[t * d + x] for each x
        for (y, four at a time) { for (x...) { s0 += row[x] * k[y * d + x]; s1 += row[x] * k[(y + 1) * d + x] ... } S[n * t + y] = s0; ... }

A vector of q[t * d + x] is as many loads as it has lanes, for one multiplication each, and an addition waits for the one before it. What stands
behind the sums runs afterwards, round by round in the order in which it stood, so that it must not write what they read: where memory lies is asked
when it runs, and where it overlaps the loop runs as it was. Each sum is what it was. (Attention with a row of queries a thread, AVX2: 0.56 of a plain
loop before, 1.75 so.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import changed
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import literal
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.passes.vectors.masked_values import VECTORS, Values, indented, plain_type

TOGETHER = 4
"""Sums at a time: each step of one waits four cycles for the step before, and each has a register."""

LONGEST = 256
"""Vectors that a packed row may have: 8 KiB of the stack with AVX2, 16 with AVX-512."""


@dataclass(frozen=True)
class _Counted:
    """`for (int name = first; name < end; ++name)`."""

    key: int
    name: str
    first: Expr
    end: Expr


@dataclass(frozen=True)
class Nest:
    """A loop of sums, and what stands behind them in its body."""

    outer: _Counted
    inner: _Counted
    sum: Declare
    step: Expr
    """What is added, `sum += step`."""
    row: Expr
    """The element that is read again in each round."""
    rest: tuple[Stmt, ...]


def nest(loop: For, values: Values) -> Nest | None:
    """Return what a loop is as such a nest; None where it is none."""
    if len(loop.body) < 2 or not isinstance(first := loop.body[0], Declare) or not isinstance(inside := loop.body[1], For):
        return None
    outer, inner, rest = _counted(loop), _counted(inside), loop.body[2:]
    added = inside.body[0] if len(inside.body) == 1 else None
    if outer is None or inner is None or not isinstance(added, Evaluate) or added.expr.name != "+=" or added.expr.kind != "assign":
        return None
    if not all(values.is_uniform(e) and not any(n.kind in ("index", "call") for n in e.walk()) for e in (inner.first, inner.end)):
        return None  # each thread has its own end
    place, step = added.expr.children
    if place.kind != "name" or place.var != first.var.key or first.init is None or plain_type(first.var.type) != "float":
        return None
    if {outer.key, first.var.key} & (inner.first.keys | inner.end.keys) or any(n.kind in ("index", "call", "name") for n in first.init.walk()):
        return None
    changing = {key for stmt in rest for key in changed(stmt)} | {first.var.key}
    if changing & (step.keys | inner.first.keys | inner.end.keys | outer.end.keys):
        return None
    if any(isinstance(s, For | ir.DoWhile | ir.Jump) for s in ir.walk(rest)):
        return None
    if any(_named_in(rest) & place.keys for place in _written(rest)):
        return None  # where it lies is asked before the first round
    counters, values.counters = values.counters, values.counters | {outer.key, inner.key}
    rows = [e for e in step.walk() if e.kind == "index" and not _names(e, {outer.key}, values) and values.step(e) not in (0, 1)]
    values.counters = counters
    calls = any(n.kind in ("call", "assign", "conditional", "lambda", "other") for n in step.walk())
    return Nest(outer, inner, first, step, rows[0], rest) if len(rows) == 1 and not calls else None


def _named_in(stmts: Sequence[Stmt]) -> Set[int]:
    """Return the keys of the variables that statements set by name or declare."""
    places = [ir.assigned(e) for e in ir.expressions(tuple(stmts))]
    return {p.var for p in places if p is not None and p.kind == "name" and p.var is not None} | {
        s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, Declare)
    }


def _counted(loop: For) -> _Counted | None:
    first = loop.init[0] if len(loop.init) == 1 else None
    if not isinstance(first, Declare) or first.init is None or loop.cond is None or loop.step is None or plain_type(first.var.type) != "int":
        return None
    key, cond, step = first.var.key, loop.cond, loop.step
    one = (step.kind == "unary" and step.name.startswith("++")) or (step.kind == "assign" and step.name == "+=" and literal(step.children[1]) == 1)
    if not one or step.children[0].var != key or cond.kind != "binary" or cond.name != "<" or ir.bare(cond.children[0]).var != key:
        return None
    kind, start = plain_type(cond.children[1].type), literal(first.init)
    if kind != "int" and not (kind == "unsigned int" and start is not None and start >= 0):
        return None  # compared as floats, or as an unsigned number that a negative one is not below, it has another end as an int
    return _Counted(key, first.var.name, first.init, cond.children[1])


def lines(found: Nest, values: Values, body: Callable[[Sequence[Stmt]], list[str]], as_it_was: Sequence[str]) -> list[str]:
    """Return the nest with its row packed, where nothing that it writes is read by its sums; else as it was. Raises DoesNotApply.

    body: prints statements for all threads of the vector.
    """
    outer, inner, printer = found.outer, found.inner, values.printer
    before = values.depth, values.counters
    values.depth, values.counters = values.depth + 2, values.counters | {outer.key, inner.key}
    reads = [_extent(e, "packed_read", values, found) for e in found.step.walk() if e.kind == "index"]
    writes = [_extent(place, "packed_written", values, found) for place in _written(found.rest)]
    source = values.element(found.row, "").text
    added = values.as_type(values.value(found.step), "float")
    if source not in added:
        raise DoesNotApply
    added = added.replace(source, f"packed_row[{inner.name} - packed_low]")
    rest = body(found.rest)
    values.depth, values.counters = before
    assert found.sum.init is not None  # asked when it was found
    name, start = f"{found.sum.var.name}_lanes", printer.expr(found.sum.init)
    ends = [f"const int packed_from = {printer.expr(outer.first)}, packed_to = {printer.expr(outer.end)};",
            f"const int packed_low = {printer.expr(inner.first)}, packed_high = {printer.expr(inner.end)};"]  # fmt: skip
    loop_x = f"for (int {inner.name} = packed_low; {inner.name} < packed_high; ++{inner.name})"
    return [
        "{", *indented(ends),
        "  ww::Extent packed_read, packed_written;",
        f"  const bool packed_some = packed_from < packed_to && packed_low < packed_high && (long)packed_high - packed_low <= {LONGEST};",
        *indented([line for one in (*reads, *writes) for line in one]),
        "  if (packed_some && ww::apart(packed_read, packed_written)) {",
        f"    {VECTORS[plain_type(found.row.type)]} packed_row[{LONGEST}];",
        f"    {loop_x} packed_row[{inner.name} - packed_low] = {source};",
        "    int packed_at = packed_from;",
        f"    for (; packed_at + {TOGETHER} <= packed_to; packed_at += {TOGETHER}) {{",
        *indented(indented(indented(_rounds(TOGETHER, outer.name, name, start, loop_x, added, rest)))),
        "    }",
        "    for (; packed_at < packed_to; ++packed_at) {",
        *indented(indented(indented(_rounds(1, outer.name, name, start, loop_x, added, rest)))),
        "    }",
        "  } else {", *indented(indented(as_it_was)), "  }",
        "}",
    ]  # fmt: skip


def _rounds(count: int, counter: str, name: str, start: str, loop_x: str, added: str, rest: Sequence[str]) -> list[str]:
    """Return so many rounds of the nest: their sums side by side, then the rest of each."""
    each = [
        f"#pragma GCC unroll {TOGETHER}",
        f"for (int nth = 0; nth < {count}; ++nth) {{",
        f"  [[maybe_unused]] const int {counter} = packed_at + nth;",
    ]
    return [
        f"ww::floats packed_sums[{count}];",
        *each[:2], f"  packed_sums[nth] = ww::spread<ww::floats>((float)({start}));", "}",
        f"{loop_x} {{", *indented([*each, f"  packed_sums[nth] += {added};", "}"]), "}",
        *each, f"  ww::floats {name} = packed_sums[nth];", *indented(rest), "}",
    ]  # fmt: skip


def _written(stmts: Sequence[Stmt]) -> list[Expr]:
    """Return the elements that statements write."""
    places = [ir.assigned(e) for e in ir.expressions(tuple(stmts))]
    return [place for place in places if place is not None and place.kind != "name"]


def _extent(place: Expr, name: str, values: Values, found: Nest) -> list[str]:
    """Return what adds the memory between the elements of the first and the last round to an extent. Raises DoesNotApply."""
    outer, inner = found.outer, found.inner
    counters = {outer.key, inner.key}
    if place.kind != "index" or plain_type(place.type) not in VECTORS or any(n.kind == "index" for n in place.children[1].walk()):
        raise DoesNotApply
    parts = values.parts(place)
    if parts is None or any(_degree(part, counters) > 1 for part in parts):
        raise DoesNotApply
    step = values.step(place)
    by = str(step) if step is not None else values.distance(place)
    text = values.printer.expr(place)
    lines = [f"const auto packed_place = [&]([[maybe_unused]] const int {outer.name}, [[maybe_unused]] const int {inner.name}) {{"]
    lines += [f"  {name}.add(&{text}, {by});", "};"]
    corners = [f"packed_place({one}, {other});" for one in ("packed_from", "packed_to - 1") for other in ("packed_low", "packed_high - 1")]
    return ["{", *indented([*lines, "if (packed_some) {", *indented(corners), "}"]), "}"]


def _names(expr: Expr, keys: Set[int], values: Values) -> bool:
    """Does an element's place depend on variables?"""
    parts = values.parts(expr)
    return parts is None or any(n.var in keys for part in parts for n in part.walk())


def _degree(expr: Expr, keys: Set[int]) -> int:
    """Return 0 where an expanded expression does not depend on variables, 1 where it is linear in them, and more for anything else."""
    if not any(n.var in keys for n in expr.walk()):
        return 0
    if expr.kind == "name":
        return 1
    if (expr.kind == "paren" and len(expr.children) == 1) or expr.kind == "cast":
        return _degree(expr.children[-1], keys)
    if expr.kind == "binary" and len(expr.children) == 2 and expr.name in ("+", "-", "*"):
        degrees = [_degree(child, keys) for child in expr.children]
        return sum(degrees) if expr.name == "*" else max(degrees)
    return 2
