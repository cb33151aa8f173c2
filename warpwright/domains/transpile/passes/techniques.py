"""Chooses a technique for each region of a plan, so that what writes the plan only has to look it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import Branch, Loop, Masked, MaskedLoop, Node, Plan, Region, WarpGroup, changed_in
from warpwright.domains.transpile.analysis.settings import Settings
from warpwright.domains.transpile.ir import Evaluate, Expr, Stmt
from warpwright.domains.transpile.passes import trees
from warpwright.domains.transpile.passes.block_fusion import FusedPrologue
from warpwright.domains.transpile.passes.loops import warp_invariant
from warpwright.domains.transpile.passes.loops.rows import WIDTH
from warpwright.domains.transpile.passes.loops.thread_loops import Form, Scope, loop_form, region_form
from warpwright.domains.transpile.passes.vectors.warp_vectors import WarpRegion, warp_region
from warpwright.domains.transpile.printing import Printer


@dataclass(frozen=True)
class Lowered:
    """A kernel that is ready to be written: its plan, and what was chosen for each part of it."""

    plan: Plan
    one_row: str | None = None
    """Size of the blocks that may run as one row of threads (`flatten_blocks.block_size`)."""
    prologue: FusedPrologue | None = None
    """What neighbouring blocks go through together (`block_fusion.py`)."""
    down: bool = False
    """Whether blocks follow one another along y."""
    forms: Mapping[int, Form] = field(default_factory=dict)
    """Number of a region, or of a masked loop (its condition) -> its loop over threads or lanes."""
    warp_regions: Mapping[int, WarpRegion] = field(default_factory=dict)
    """The same numbers -> how the lanes of a warp do it side by side."""
    once: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Number of a region -> keys of the arrays that it fills with what is the same in all threads."""
    trees: Mapping[int, trees.Tree] = field(default_factory=dict)
    """Number of the region that is the body of a loop -> the tree that the loop is."""
    groups: Mapping[int, warp_invariant.Values] = field(default_factory=dict)
    """Number of a group of warps that all do the same -> what it writes."""

    @property
    def row(self) -> str:
        """How many threads run along x, as the output writes it."""
        return "row_x" if self.one_row else WIDTH


def choose(lowered: Lowered, settings: Settings) -> Lowered:
    """Return the kernel with a technique for each region."""
    chooser = _Chooser(lowered, settings)
    plan = lowered.plan
    printer = Printer(plan.variables, settings.calls, times=settings.choices.unroll)
    chooser.nodes(plan.nodes, Scope(plan, settings, printer, lowered.row, turns=lowered.prologue is None))
    return replace(lowered, forms=chooser.forms, warp_regions=chooser.warp_regions, once=chooser.once, trees=chooser.trees, groups=chooser.groups)


class _Chooser:
    """Walks a plan in the order in which it runs."""

    def __init__(self, lowered: Lowered, settings: Settings) -> None:
        self.plan, self.settings = lowered.plan, settings
        self.forms: dict[int, Form] = {}
        self.warp_regions: dict[int, WarpRegion] = {}
        self.once: dict[int, frozenset[int]] = {}
        self.trees: dict[int, trees.Tree] = {}
        self.groups: dict[int, warp_invariant.Values] = {}
        self.same: set[int] = set()
        """Keys of arrays that have the same value in all threads here, where 32 divides the block's width."""

    def nodes(self, nodes: Sequence[Node], scope: Scope) -> None:
        for node in nodes:
            self.node(node, scope)

    def node(self, node: Node, scope: Scope) -> None:
        if isinstance(node, Region):
            self.region(node, scope)
            if node.number in self.once:
                self.same |= self.once[node.number]
                return
        unchanged = self.same - changed_in(node, self.plan)
        self.same = set(unchanged)
        self.inside(node, scope)
        self.same = unchanged | (self.same if isinstance(node, WarpGroup) else set())

    def inside(self, node: Node, scope: Scope) -> None:
        if isinstance(node, Branch):
            self.nodes(node.then, scope)
            self.nodes(node.other, scope)
        elif isinstance(node, Loop):
            if scope.vectors and not scope.masks and scope.row == WIDTH and (tree := trees.tree(node, self.plan)) is not None:
                self.trees |= {inner.number: tree for inner in node.body if isinstance(inner, Region)}
            self.nodes(node.body, scope)
        elif isinstance(node, Masked):
            self.nodes(node.body, replace(scope, masks=(*scope.masks, node.cond)))
        elif isinstance(node, MaskedLoop):
            stmts = still_inside(node)
            self.forms[node.number] = loop_form(stmts, scope)
            self.side_by_side(node.number, stmts, scope)
            self.nodes(node.body, replace(scope, masks=(*scope.masks, ir.name_of(node.flag))))
        elif isinstance(node, WarpGroup):
            self.group(node, scope)

    def region(self, region: Region, scope: Scope) -> None:
        if scope.vectors and not scope.masks:
            results = warp_invariant.once(region, self.same, self.plan, self.settings.own)
            if results:
                self.once[region.number] = results
        self.forms[region.number] = region_form(region.stmts, scope)
        self.side_by_side(region.number, region.stmts, scope)

    def side_by_side(self, number: int, stmts: Sequence[Stmt], scope: Scope) -> None:
        if not scope.in_warps or not self.settings.vectors:
            return
        stmts = [s for s in stmts if not self.plan.is_room(s)]
        if stmts:
            self.warp_regions[number] = warp_region(stmts, scope.masks, self.plan)

    def group(self, node: WarpGroup, scope: Scope) -> None:
        invariant = warp_invariant.of_warps(node, self.plan, self.settings.own) if scope.vectors and not scope.masks else None
        self.nodes(node.body, replace(scope, in_warps=True))
        if invariant is not None:
            self.groups[node.number] = invariant
            self.same |= invariant.same & invariant.written


def still_inside(node: MaskedLoop) -> list[Stmt]:
    """Return the statements by which a thread learns whether it is still in the loop, and the block whether any thread is."""
    flag = ir.name_of(node.flag)
    return [
        Evaluate(Expr("assign", (flag, " = ", flag, " && (", node.cond, ")"), node.line, "=")),
        Evaluate(Expr("other", (f"any_active |= {node.flag.name}",), node.line)),
    ]
