"""A region of a warp whose lanes run side by side, where 32 divides the block's width: cut into what is done once and what the lanes do in vectors.

    row = x / 32; v = a[row * n + lane]; v += shuffle(v)   ->   row once; a loop over lanes that loads; the shuffle for the whole warp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.lanes import EVEN, WHOLE, Lanes, is_for_whole_warp, is_strided, kind_of, only_lane
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt, Var
from warpwright.domains.transpile.passes.vectors import warp_exchange


@dataclass(frozen=True)
class WarpValue:
    """A value that is declared once for the warp."""

    stmt: Declare
    shared: bool
    """The same in all lanes; or else it moves by one from lane to lane, and the first lane's is declared."""


Piece = WarpValue | For | warp_exchange.Join | warp_exchange.Copy | list[Stmt]
"""Part of a region: a value declared once, a strided loop, what is done for the warp as a whole, or what its lanes do side by side."""


@dataclass(frozen=True)
class WarpRegion:
    """How a region is written for a warp."""

    recomputed: tuple[WarpValue, ...]
    guards: tuple[Expr, ...]
    """Masks that all lanes share: an `if` around the region."""
    pieces: tuple[Piece, ...]
    crossing: tuple[Var, ...]
    """What several pieces name: it lives in a per-lane array."""
    lanes: Lanes
    """What the warp shares, under the other masks."""


def warp_region(stmts: Sequence[Stmt], masks: Sequence[Expr], plan: Plan) -> WarpRegion:
    """Return how the statements are written for a warp, for the lanes for which the masks hold."""
    lanes = Lanes(plan, tuple(masks))
    recomputed = _recomputed(stmts, lanes)
    guards = tuple(m for m in masks if kind_of(m, lanes) in EVEN)
    lanes = replace(lanes, masks=tuple(m for m in masks if m not in guards))
    alone = replace(lanes, shared=set(lanes.shared), linear=set(lanes.linear))
    pieces = _pieces(stmts, lanes)
    crossing = _crossing(pieces, lanes)
    if crossing is None:
        return WarpRegion(recomputed, guards, (list(stmts),), (), alone)
    settled = (_value(piece, lanes) if isinstance(piece, Declare) else piece for piece in pieces)
    return WarpRegion(recomputed, guards, tuple(piece for piece in settled if piece is not None), tuple(crossing), lanes)


def _recomputed(stmts: Sequence[Stmt], lanes: Lanes) -> tuple[WarpValue, ...]:
    """Return what is computed again in this region and may be declared once for the warp; note it."""
    plan = lanes.plan
    declared = {s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, Declare)}
    keys = plan.closure(regions.used([*stmts, *map(Evaluate, lanes.masks)])) & plan.recomputed - declared
    values = []
    for var in plan.in_order(keys):
        value = _value(plan.facts.declared[var.key], lanes)
        if value is not None:
            (lanes.shared if value.shared else lanes.linear).add(var.key)
            values.append(value)
    return tuple(values)


def _value(stmt: Declare, lanes: Lanes) -> WarpValue | None:
    """Return a fixed value as it is declared for the warp; None where each lane has a value of its own kind."""
    assert stmt.init is not None
    kind = kind_of(stmt.init, lanes)
    if kind in EVEN:
        return WarpValue(stmt, True)
    return WarpValue(stmt, False) if kind is not None and stmt.var.type in WHOLE else None


_Uncut = Declare | For | warp_exchange.Join | warp_exchange.Copy | list[Stmt]


def _is_for_the_warp(stmt: Declare, lanes: Lanes) -> bool:
    """Say whether a declaration may be made once for the warp."""
    plan, var = lanes.plan, stmt.var
    if stmt.init is None or stmt.direct or var.dims or var.reference or var.space != "local" or var.key in plan.arrays | plan.lane_arrays:
        return False
    if plan.facts.assigned.get(var.key) or var.key in plan.facts.addressed:
        return False
    kind = kind_of(stmt.init, lanes)
    return kind in EVEN or (kind is not None and var.type in WHOLE)


def _pieces(stmts: Sequence[Stmt], lanes: Lanes) -> list[_Uncut]:
    """Return the statements cut at what the warp shares and at strided loops."""
    pieces: list[_Uncut] = []
    done = 0
    for at, stmt in enumerate(stmts):
        if at < done:
            continue
        whole = None if lanes.masks else warp_exchange.join(stmts[at:], lanes.plan) or warp_exchange.copy(stmt, lanes.plan)
        if whole is not None and (isinstance(whole, warp_exchange.Copy) or is_for_whole_warp(whole.taken, lanes)):
            pieces.append(whole)
            done = at + len(whole.stmts)
        elif isinstance(stmt, Declare) and stmt.init is not None and _is_for_the_warp(stmt, lanes):
            (lanes.shared if kind_of(stmt.init, lanes) in EVEN else lanes.linear).add(stmt.var.key)
            pieces.append(stmt)
        elif isinstance(stmt, For) and is_strided(stmt, lanes):
            pieces.append(stmt)
        elif pieces and isinstance(pieces[-1], list) and not only_lane([stmt], lanes) and not only_lane(pieces[-1], lanes):
            pieces[-1].append(stmt)
        else:
            pieces.append([stmt])
    return pieces


def _stmts(piece: _Uncut) -> Sequence[Stmt]:
    if isinstance(piece, list):
        return piece
    return piece.stmts if isinstance(piece, warp_exchange.Join | warp_exchange.Copy) else [piece]


def _crossing(pieces: Sequence[_Uncut], lanes: Lanes) -> list[Var] | None:
    """Return the variables that live in several pieces; None where one cannot be kept for each lane."""
    known = lanes.shared | lanes.linear | lanes.plan.arrays | lanes.plan.lane_arrays
    crossing: list[Var] = []
    for number, piece in enumerate(pieces):
        if not isinstance(piece, list):
            continue
        others = regions.used([s for i, p in enumerate(pieces) if i != number for s in _stmts(p)])
        for stmt in piece:
            if not isinstance(stmt, Declare) or stmt.var.key in known or stmt.var.key not in others:
                continue
            var = stmt.var
            if var.reference or var.dims or "auto" in var.type.split() or var.key in lanes.plan.facts.addressed:
                return None
            crossing.append(var)
    return crossing
