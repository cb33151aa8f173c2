"""How each region's loop over threads is written: the technique is chosen here, before anything is printed.

In this order: a last narrow `if` split off; without the guards of `c ? a[i] : 0`, where they hold for a whole block; one vectorised
reduction; sums in registers; a row cut into segments; else a plain loop whose bounds are the guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions, vectorise
from warpwright.domains.transpile.analysis.bounds import Bounds, bounds, whole_block
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.analysis.settings import Settings
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Stmt
from warpwright.domains.transpile.passes.loops import (
    atomic_adds,
    if_conversion,
    index_set_splitting,
    neighbours,
    private_tiles,
    reductions,
    reshaped,
    rows,
    segments,
)
from warpwright.domains.transpile.passes.vectors import accumulators, masked_vectors, registers, thread_tiles, transposed_stores
from warpwright.domains.transpile.printing import Printer

_SEVERAL = frozenset(["float2", "float4", "int2", "int4", "uint2", "uint4", "double2"])


@dataclass(frozen=True)
class Scope:
    """Where a region stands."""

    plan: Plan
    settings: Settings
    printer: Printer
    row: str
    """How many threads run along x, as the output writes it."""
    masks: tuple[Expr, ...] = ()
    """Conditions under which a thread gets here."""
    in_warps: bool = False
    """The loop is over the lanes of a warp."""
    turns: bool = False
    """Threads may be looked at in another shape."""
    known: tuple[str, str] = ("BX", "BY")
    """The block's width and height where the compiler knows them, as the output writes them."""

    @property
    def vectors(self) -> bool:
        """Whether the loop may be vectorised."""
        return self.settings.vectors and not self.in_warps


@dataclass(frozen=True)
class Parts:
    """One loop after another; none where nothing is to be done."""

    parts: tuple[Form, ...] = ()


@dataclass(frozen=True)
class Interior:
    """Two forms of a region: one where the condition holds for a whole block (the guards of `c ? a[i] : 0`, say), and one where it does not."""

    condition: str
    inside: Form
    border: Form


@dataclass(frozen=True)
class Reduction:
    """A loop of one reduction that is vectorised, the same in every thread."""

    stmts: list[Stmt]


@dataclass(frozen=True)
class ThreadLoop:
    """A loop over threads."""

    region: list[Stmt]
    """The region as it was."""
    stmts: list[Stmt]
    """What is inside the loop: the region without the guards that became its bounds."""
    limits: Bounds
    simd: bool = False
    scalar: str = ""
    """Why it is not vectorised, though other loops may be."""
    registers: For | None = None
    """The loop whose sums are in registers, for blocks that are known to fit."""
    known: tuple[str, str] = ("BX", "BY")
    """Width and height of such a block, as the output writes them."""
    sums: accumulators.Sums | masked_vectors.Masked | None = None
    """The region as explicit vectors of threads; what is left of a row follows as the loop."""
    segments: segments.Segments | None = None
    adds: atomic_adds.Adds | None = None
    """The region with its atomic adds as plain ones."""
    joined: str = ""
    """The width of the rows that run as one: `rows.width`."""
    whole_values: bool = False
    """The threads have values of several numbers, float4 and the like, which `omp simd` keeps in memory."""
    tiles: thread_tiles.Tiles | None = None
    """The region as tiles of several threads at once, for blocks for which the compiler finds that they fit."""
    kept: frozenset[int] = frozenset()
    """Keys of the thread's own arrays that are copied for the loop's length, so that they may be in registers."""


@dataclass(frozen=True)
class Reshaped:
    """The region for a block in another shape, where the block has it; else as it is."""

    shape: reshaped.Shape
    inside: Form
    general: Form


@dataclass(frozen=True)
class Transposed:
    """Stores of four numbers of each thread as vectors of threads, for blocks for which the compiler finds that they fit; else as they are."""

    stores: transposed_stores.Stores
    general: Form


Form = Parts | Interior | Reduction | ThreadLoop | Reshaped | Transposed


def region_form(stmts: Sequence[Stmt], scope: Scope) -> Form:
    """Return how a region is written."""
    if scope.turns and scope.vectors and scope.row == rows.WIDTH:
        turned = _turned(stmts, scope)
        if turned is not None:
            return turned
    interior = _interior(stmts, scope) if scope.vectors and not scope.masks else None
    if interior is None:
        return loop_form(stmts, scope)
    condition, unguarded = interior
    return Interior(condition, loop_form(unguarded, scope), loop_form(stmts, scope))


def _turned(stmts: Sequence[Stmt], scope: Scope) -> Form | None:
    """Return a region for a block in another shape, as a whole or in parts; None where no shape is better."""
    straight = replace(scope, turns=False)
    kept = [s for s in stmts if not scope.plan.is_room(s)]
    whole = _shaped(kept, straight)
    if whole is not None:
        return whole
    cut = reshaped.parts(kept, scope.plan)
    forms = [_shaped(part, straight) for part in cut] if len(cut) > 1 else []
    if not any(form is not None for form in forms):
        return None
    return Parts(tuple(form if form is not None else region_form(part, straight) for form, part in zip(forms, cut, strict=True)))


def _shaped(stmts: Sequence[Stmt], scope: Scope) -> Form | None:
    settings = scope.settings
    shape = reshaped.shape(stmts, scope.masks, scope.plan, settings.impure, settings.constants)
    if shape is None:
        return None
    masks = tuple(m.map(shape.change) for m in scope.masks)
    inside = replace(scope, plan=shape.plan, masks=masks, known=shape.known or ("", ""))
    return Reshaped(shape, region_form(shape.stmts(stmts), inside), region_form(stmts, scope))


def loop_form(stmts: Sequence[Stmt], scope: Scope) -> Form:
    """Return how the statements are written as a loop over threads."""
    plan = scope.plan
    stmts = [s for s in stmts if not plan.is_room(s)]
    if not stmts:
        return Parts()
    if scope.vectors and not scope.masks:
        parts = index_set_splitting.split(stmts, plan, scope.printer)
        if parts is not None:
            return Parts(tuple(region_form(part, scope) for part in parts))
        apart = index_set_splitting.alternatives(stmts, plan, scope.printer)
        if apart is not None:
            return Parts(tuple(region_form(part, scope) for part in apart))
        stmts = if_conversion.guard_around(stmts, plan)
        inside, guards = _peel(stmts, plan)
        cut = index_set_splitting.parts(inside, guards, plan, scope.printer)
        if cut is not None:
            return Parts(tuple(region_form(part, scope) for part in cut))
        reduction = reductions.vectorised(stmts, plan)
        if reduction is not None:
            return Reduction(reduction)
    if not scope.vectors:
        return _plain_loop(stmts, scope)
    own_shape = not scope.masks and scope.known == ("BX", "BY") and scope.row == rows.WIDTH
    if own_shape and (transposed := transposed_stores.cut(stmts, plan, scope.settings.constants)) is not None:
        before, stores, after = transposed
        general = _thread_loop(stores.whole, scope)
        return Parts((loop_form(before, scope), Transposed(stores, general), loop_form(after, scope)))
    ahead = thread_tiles.cut(stmts, plan) if len(stmts) > 1 and not scope.masks else None
    if ahead is not None and thread_tiles.suits(ahead[1], plan, scope.settings.constants) is not None:
        return Parts((region_form(ahead[0], scope), loop_form(ahead[1], scope)))
    plain = _plain_adds(stmts, scope)
    if plain is None:
        return _thread_loop(stmts, scope)
    return plain if plain.adds is not None and plain.adds.everywhere else Interior("ww::alone()", plain, _thread_loop(stmts, scope))


def _plain_adds(stmts: list[Stmt], scope: Scope) -> ThreadLoop | None:
    """Return a loop whose atomic adds are plain ones; None where it has none, or they may meet."""
    plan = scope.plan
    if not any(e.kind == "call" and e.name == "atomicAdd" for e in ir.expressions(tuple(stmts))):
        return None
    inner, own = _peel(stmts, plan)
    inner, limits = _opened(inner, stmts, bounds([*scope.masks, *own], plan, scope.printer), scope)
    if limits.rest or limits.every is not None:
        return None
    cut = segments.split(inner, (), plan, scope.printer, scope.row)
    if cut is not None and (cut.only or cut.inside or cut.plan is None):
        return None
    inside, within = (inner, plan) if cut is None or cut.plan is None else (cut.stmts, cut.plan)
    adds = atomic_adds.apart(inside, within, "thread_x - chunk_x", atomic_adds.along_threads(inside, within))
    return ThreadLoop(stmts, inner, limits, segments=cut, adds=adds) if adds is not None else None


def _plain_loop(stmts: list[Stmt], scope: Scope) -> ThreadLoop:
    """Return a loop that is not vectorised: its guards stay guards."""
    limits = Bounds(rest=list(scope.masks))
    inner, limits = _opened(stmts, stmts, limits, scope)
    return ThreadLoop(stmts, inner, limits, kept=private_tiles.kept(stmts, scope.plan) if scope.settings.vectors else frozenset())


def _thread_loop(stmts: list[Stmt], scope: Scope) -> ThreadLoop:
    plan = scope.plan
    inner, own = _peel(if_conversion.guards_apart(stmts, plan), plan)
    guards = [*scope.masks, *own]
    inner, limits = _opened(inner, stmts, bounds(guards, plan, scope.printer), scope)
    inner = if_conversion.without_branches(inner, plan)
    if limits.every is not None:
        simd = limits.every[1].isdigit() and not vectorise.unvectorisable(stmts, plan, scope.settings.simple, scope.settings.own)
        return ThreadLoop(stmts, inner, limits, simd)
    if not limits.rest and scope.settings.choices.lanes <= 0 and (sums := _sums(inner, scope)) is not None:
        return ThreadLoop(stmts, inner, limits, True, sums=sums)
    cut = segments.split(inner, limits.rest, plan, scope.printer, scope.row)
    if cut is not None and not (cut.guards or cut.only or cut.inside) and cut.plan is not None and scope.settings.choices.lanes <= 0:
        in_stretches = accumulators.suits(cut.stmts, cut.plan, scope.printer) or masked_vectors.suits(cut.stmts, cut.plan, scope.printer)
        if in_stretches is not None:
            return ThreadLoop(stmts, inner, limits, True, sums=in_stretches, segments=cut)
    kept = private_tiles.kept(stmts, plan)
    if private_tiles.along(stmts, kept, plan):
        own_shape = scope.known == ("BX", "BY") and scope.row == rows.WIDTH  # in another shape, rows are of other lengths
        free = own_shape and not (limits.low or limits.high or limits.rows or limits.rest)
        tiled = thread_tiles.suits(inner, plan, scope.settings.constants) if free else None
        return ThreadLoop(stmts, inner, limits, kept=kept, tiles=tiled)
    alone = not limits.rest and cut is None and not kept and scope.settings.choices.lanes <= 0
    if alone and (masked := masked_vectors.suits(inner, plan, scope.printer)) is not None:
        return ThreadLoop(stmts, inner, limits, True, sums=masked)
    scalar = vectorise.unvectorisable(cut.stmts if cut is not None else stmts, plan, scope.settings.simple, scope.settings.own)
    if scalar:
        return ThreadLoop(stmts, inner, limits, scalar=scalar, kept=kept)
    fits = scope.known[0] not in ("BX", "BY", "") or (scope.settings.blocks and scope.known[0])
    in_registers = registers.suits(inner, plan) if not guards and fits else None
    if in_registers is not None:
        return ThreadLoop(stmts, inner, limits, True, registers=in_registers, known=scope.known)
    if cut is not None and cut.plan is not None:
        cut.stmts = neighbours.shown(cut.stmts, cut.plan, scope.printer, in_stretch=True)
    joined = rows.width([*stmts, *(Evaluate(m) for m in scope.masks)], plan, scope.settings.impure) if scope.row == rows.WIDTH else None
    return ThreadLoop(stmts, inner if cut is not None else neighbours.shown(inner, plan, scope.printer), limits, True, segments=cut, joined=joined or "",  # noqa: E501
                      whole_values=any(isinstance(s, Declare) and s.var.type in _SEVERAL for s in inner))  # fmt: skip


def _sums(inner: list[Stmt], scope: Scope) -> accumulators.Sums | None:
    own_shape = scope.known == ("BX", "BY") and scope.row == rows.WIDTH
    return accumulators.suits(inner, scope.plan, scope.printer, lasting=own_shape)


def _opened(inner: list[Stmt], stmts: list[Stmt], limits: Bounds, scope: Scope) -> tuple[list[Stmt], Bounds]:
    """Return what is inside the loop and its bounds, those guards opened that need the region's own values; one that stays so stays inside."""
    declared = {s.var.key for s in inner if isinstance(s, Declare)}
    limits.rest = [index_set_splitting.opened(guard, declared, scope.plan) for guard in limits.rest]
    if any(e.var in declared for guard in limits.rest for e in guard.walk()):
        limits.rest = bounds(scope.masks, scope.plan, scope.printer).rest  # the others stay inside as well as in the bounds
        return stmts, limits
    return inner, limits


def _peel(stmts: list[Stmt], plan: Plan) -> tuple[list[Stmt], list[Expr]]:
    """Return `declarations; if (c) { body }` as the declarations with the body, and its guards; other statements, and exchanges, as they are."""
    *head, last = stmts
    in_arrays = plan.arrays | plan.lane_arrays
    if (
        not isinstance(last, If)
        or last.other
        or last.constexpr
        or not all(isinstance(s, Declare) and s.var.key not in in_arrays and s.init is not None and ir.is_quiet(s.init) for s in head)
        or if_conversion.is_exchange(last, plan)
    ):
        return stmts, []
    inner, guards = _peel(list(last.then), plan) if last.then else ([], [])
    return [*head, *inner], [last.cond, *guards]


def _interior(stmts: Sequence[Stmt], scope: Scope) -> tuple[str, list[Stmt]] | None:
    """Return when all guards in expressions hold for a whole block, and the statements without them."""
    texts: dict[str, None] = {}

    def unguarded(expr: Expr) -> Expr | None:
        if expr.kind != "conditional" or len(expr.children) != 3 or not any(n.kind == "index" for n in expr.children[1].walk()):
            return None
        text = whole_block(expr.children[0], scope.plan, scope.printer, scope.row)
        if text is None:
            return None
        texts[text] = None
        return Expr("paren", ("(", expr.children[1], ")"), expr.line, "", None, expr.type)

    if any(isinstance(s, For | If) for s in ir.walk(tuple(stmts))) or any(regions.changed(s) & scope.plan.recomputed for s in stmts):
        return None
    opened = [ir.map_expressions(s, unguarded) for s in stmts]
    return (" && ".join(texts), opened) if texts else None
