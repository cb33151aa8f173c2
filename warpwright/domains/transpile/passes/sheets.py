"""Sheets: stencils in three dimensions whose blocks go from sheet to sheet, each through a copy in shared memory and a queue in registers.

    for (z = 1; z < D - 1; z++) { at += sheet; before = here; here = after; after = in[at + sheet]; __syncthreads(); s[ty][tx] = here; ...
      __syncthreads(); out[at] = s[ty][tx - 1] + ... + before + after; }
    ->   z = blockIdx.z + 1, of more blocks; at = y * W + x + z * sheet; out[at] = in[at - 1] + ... + in[at - sheet] + in[at + sheet]

What a register holds in a round lies in memory where the queue says: `here` is what `after` was a round before. So no round needs another one, and
the rounds are an axis of the grid, along which blocks follow one another as along y. A block that goes down all sheets alone reads short rows that
lie pages apart. (Seven points, 32 sheets of 256 x 256, an EPYC without AVX-512: 4.9 -> 1.0 ms.) Only where each element that is read has been
written for certain; the rest is as in `unstaged.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import polynomials
from warpwright.domains.transpile.analysis.arrays import tiles, windows
from warpwright.domains.transpile.analysis.polynomials import Polynomial, added, multiplied
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Barrier, Declare, Evaluate, Expr, For, Shape, Stmt, Var
from warpwright.domains.transpile.passes.unstaged import Unstaged, rewritten

ROUND = "blockIdx.z"
"""The number of a round, from 0 on: rounds become blocks."""


def unstaged(body: Sequence[Stmt], variables: Mapping[int, Var], block: Shape) -> Unstaged | None:
    """Return a kernel whose rounds are blocks, without its copies, for blocks of one shape; None for another kernel."""
    loop = body[-1] if body else None
    if not isinstance(loop, For) or not all(isinstance(s, Declare) for s in body[:-1]) or any(_is_round(e) for e in ir.expressions(tuple(body))):
        return None
    inside = list(loop.body)
    places = [i for i, stmt in enumerate(inside) if isinstance(stmt, Barrier)]
    meetings = [stmt for stmt in ir.walk(tuple(body)) if isinstance(stmt, Barrier | ir.Collective)]
    if len(places) != 2 or len(meetings) != 2 or any(stmt.scope != "block" for stmt in meetings):
        return None
    try:
        return _unstaged(body[:-1], loop, places, variables, block)
    except DoesNotApply:
        return None


def _is_round(expr: Expr) -> bool:
    return expr.kind == "member" and expr.name == "z" and bool(expr.children) and expr.children[0].name in ("blockIdx", "gridDim")


def _unstaged(before: Sequence[Stmt], loop: For, places: Sequence[int], variables: Mapping[int, Var], block: Shape) -> Unstaged:
    arrays = frozenset(s.var.key for s in before if isinstance(s, Declare) and s.var.space == "shared")
    changed = frozenset(key for expr in ir.expressions((*before, loop)) for key in expr.changes)
    values = windows.Values(variables, block, changed)
    starts: dict[int, Expr | None] = {}
    for stmt in before:
        assert isinstance(stmt, Declare)
        values.declare(stmt)
        if stmt.var.key in changed:
            starts[stmt.var.key] = stmt.init
    rounds = _rounds(loop, values)
    first, last = places
    at_end = last == len(loop.body) - 1
    begun = next((i for i, s in enumerate(loop.body[:first]) if not _is_move(s, starts)), first) if at_end else first
    queue, staged, then = loop.body[:begun], loop.body[begun:first], loop.body[first + 1 : last]
    if not at_end:
        staged, then = loop.body[first + 1 : last], loop.body[last + 1 :]
    moves = _moves(queue, starts, values)
    values.registers |= _registers(queue, moves, starts, values)
    values.known |= {key: added(value, step) for key, (value, step) in moves.items()}
    copies = windows.copies(staged, values)
    uses = windows.uses(then, arrays, values)
    kept = [s for s in before if isinstance(s, Declare) and s.var.space == "local" and s.var.key not in starts]
    made = rewritten(kept, then, copies, uses, values, rounds)
    gone = {*starts, *(s.var.key for s in loop.init if isinstance(s, Declare))}
    if any(asked != "true" for asked in made.inside.values()) or gone & {key for e in ir.expressions(made.body) for key in e.keys}:
        raise DoesNotApply
    return made


def _is_move(stmt: Stmt, starts: Mapping[int, Expr | None]) -> bool:
    """Does the statement change a variable from outside of the loop?"""
    return isinstance(stmt, Evaluate) and stmt.expr.kind == "assign" and stmt.expr.children[0].var in starts


def _rounds(loop: For, values: windows.Values) -> str:
    """Return how many rounds there are, and note the counter as a number of the round."""
    counted = values.loop(loop)
    if counted is None or counted.step != 1 or len(counted.goes_on) != 1 or counted.goes_on[0].unsigned or len(counted.goes_on[0].parts) != 1:
        raise DoesNotApply
    key = int(counted.counter[1:])
    values.known[key] = added(counted.start, polynomials.symbol(ROUND))
    whole = polynomials.put(counted.goes_on[0].parts[0], counted.counter, values.known[key] or {})
    rest = {product: factor for product, factor in whole.items() if product != (ROUND,)}
    if whole.get((ROUND,)) != 1 or any(not name.startswith("#") for product in rest for name in product):
        raise DoesNotApply
    return windows.text(added(polynomials.number(1), rest, -1), values, {})


def _moves(queue: Sequence[Stmt], starts: Mapping[int, Expr | None], values: windows.Values) -> dict[int, tuple[Polynomial, Polynomial]]:
    """Return what whole numbers are before a round moves them, and by what it does."""
    moves: dict[int, tuple[Polynomial, Polynomial]] = {}
    for stmt in queue:
        expr = stmt.expr if isinstance(stmt, Evaluate) and _is_move(stmt, starts) else None
        key = expr.children[0].var if expr is not None and expr.name == "+=" else None
        begin = starts[key] if key is not None and key not in moves else None
        if expr is None or key is None or begin is None:
            continue
        added_each, var = ir.bare(expr.children[1]), values.variables[key]
        if var.type == "long" and var.name.endswith("_moved"):  # as `induction_variables.py` writes an int's change
            added_each = added_each.children[-1] if added_each.kind == "cast" else added_each
        elif var.type not in ("int", "unsigned int"):
            raise DoesNotApply
        start, step = values.of(begin), values.of(added_each)
        if start is None or step is None or any(not name.startswith("#") for product in step for name in product):
            raise DoesNotApply
        moves[key] = (added(start, multiplied(step, polynomials.symbol(ROUND))), step)
    return moves


def _registers(
    queue: Sequence[Stmt], moves: Mapping[int, tuple[Polynomial, Polynomial]], starts: Mapping[int, Expr | None], values: windows.Values
) -> dict[int, tuple[int, Polynomial]]:
    """Return where in memory the numbers lie that registers hold when the queue has moved. Raises DoesNotApply for other statements."""
    ends: dict[int, tuple[int, Polynomial]] = {}
    for _ in range(len(queue) + 1):  # each time one more register is known, from which the next one took its number
        now = {key: held for key, (source, end) in ends.items() if (held := _round_before(source, end, starts[key], moves, values)) is not None}
        values.known |= {key: value for key, (value, _) in moves.items()}
        for stmt in queue:
            if not isinstance(stmt, Evaluate) or not _is_move(stmt, starts) or (key := (expr := stmt.expr).children[0].var) is None:
                raise DoesNotApply
            if key in moves:
                values.known[key] = added(*moves[key])
                continue
            values.registers = now
            held = _held(expr.children[1], values) if expr.name == "=" else None
            if held is None:
                now.pop(key, None)
            else:
                now[key] = held
        if now == ends:
            return ends
        ends = now
    raise DoesNotApply


def _held(expr: Expr, values: windows.Values) -> tuple[int, Polynomial] | None:
    try:
        return values.read(expr)
    except DoesNotApply:
        return None


def _round_before(
    source: int, end: Polynomial, start: Expr | None, moves: Mapping[int, tuple[Polynomial, Polynomial]], values: windows.Values
) -> tuple[int, Polynomial] | None:
    """Return where the number lies that a register holds as a round begins: where it was left, and at first where it began, which has to fit."""
    values.known |= {key: polynomials.at(value, {ROUND: 0}) for key, (value, _) in moves.items()}
    place = tiles.element(ir.bare(start)) if start is not None else None
    address = values.of(place[1][0]) if place is not None and place[0] == source and len(place[1]) == 1 else None
    if address is None or address != polynomials.at(end, {ROUND: -1}):
        return None
    return source, polynomials.put(end, ROUND, added(polynomials.symbol(ROUND), polynomials.number(-1)))
