"""Write the nodes of a plan: the control around regions, groups of warps, and what the threads of a scope collect."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions as plans
from warpwright.domains.transpile.analysis.regions import (
    Branch,
    CollectiveNode,
    Leave,
    Loop,
    Masked,
    MaskedLoop,
    Node,
    Region,
    Single,
    Sync,
    WarpGroup,
)
from warpwright.domains.transpile.emit import control, regions, warps
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.ir import Evaluate
from warpwright.domains.transpile.passes.vectors import thread_tiles
from warpwright.domains.transpile.printing import declarator

_JOINS = {
    "ballot": ("0", "{r} |= (unsigned)(({o}) != 0) << lane_index"), "or": ("0", "{r} |= ({o}) != 0"), "and": ("1", "{r} &= ({o}) != 0"),
    "count": ("0", "{r} += ({o}) != 0"), "add": ("0", "{r} += {o}"), "bits_and": ("~0", "{r} &= {o}"), "bits_or": ("0", "{r} |= {o}"), "bits_xor": ("0", "{r} ^= {o}"),  # noqa: E501
    "min": ("", "if (first_{r} || {o} < {r}) {r} = {o}; first_{r} = false"), "max": ("", "if (first_{r} || {o} > {r}) {r} = {o}; first_{r} = false"),
}  # fmt: skip
"""Operation -> its neutral element and one step, of `r` the result and `o` what a thread offers."""


def write(writer: Writer, nodes: Sequence[Node]) -> None:
    """Write the nodes, one after another."""
    for node in nodes:
        _node(writer, node)


def _node(writer: Writer, node: Node) -> None:
    if isinstance(node, Region):
        _region(writer, node)
    elif isinstance(node, Single):
        writer.lines += writer.printer.statement(node.stmt, writer.depth)
    elif isinstance(node, Sync):
        writer.line(f"// {'__syncthreads()' if node.scope == 'block' else 'the warp meets'}, line {node.line}")
    elif isinstance(node, CollectiveNode):
        _collect(writer, node)
    elif isinstance(node, Branch):
        _branch(writer, node)
    elif isinstance(node, Loop):
        _loop(writer, node)
    elif isinstance(node, Masked):
        braces = control.open_masked(writer, node)
        _under(writer, node.cond, node.body)
        for _ in range(braces):
            writer.close()
    elif isinstance(node, MaskedLoop):
        control.open_masked_loop(writer, node)
        _under(writer, ir.name_of(node.flag), node.body)
        writer.close()
    elif isinstance(node, WarpGroup):
        _group(writer, node)
    elif isinstance(node, Leave):
        writer.line(f"{node.word};")


def _loop(writer: Writer, node: Loop) -> None:
    """Write a loop; one that is a tree over neighbours as one operation, for blocks of one row."""
    tree = next((writer.lowered.trees[n.number] for n in node.body if isinstance(n, Region) and n.number in writer.lowered.trees), None)
    if tree is not None:
        writer.open("if (one_row)")
        writer.line(f"ww::tree_of_neighbours<{'true' if tree.only_first else 'false'}>({tree.array.name}, dim_x);  // line {node.line}")
        writer.otherwise()
    tiles, before = _tiles(writer, node), writer.joined_tiles
    for tile in tiles:
        name = writer.plan.variables[tile.sums].name
        writer.line(f"constexpr bool {name}_joined = {tile.condition(writer.plan)};")
        writer.line(f"if constexpr ({name}_joined) {tile.joined(writer.plan)}")
    writer.joined_tiles |= {tile.sums for tile in tiles}
    control.open_steps(writer, node)
    write(writer, node.body)
    writer.close()
    writer.joined_tiles = before
    for tile in tiles:
        writer.line(f"if constexpr ({writer.plan.variables[tile.sums].name}_joined) {tile.joined(writer.plan, back=True)}")
    if tree is not None:
        writer.close()


def _tiles(writer: Writer, node: Loop) -> list[thread_tiles.Tiles]:
    """Return the tiles of threads that a loop of barriers comes back to, and that nothing else in it reads: they can stay vectors."""
    if writer.in_warps or writer.masks or writer.lowered.prologue is not None:
        return []
    forms = [writer.lowered.forms.get(n.number) for n, _ in plans.walk(node.body) if isinstance(n, Region)]
    tiles = [tile for form in forms if form is not None for tile in regions.tiles_of(form) if tile.sums not in writer.joined_tiles]
    stmts = [*plans.all_stmts(node.body), *map(Evaluate, (e for e in (node.cond, node.step) if e is not None)), *node.init]
    return [tile for tile in tiles if sum(one.sums == tile.sums for one in tiles) == 1 and tile.is_alone(stmts, writer.plan)]


def _under(writer: Writer, mask: ir.Expr, nodes: Sequence[Node]) -> None:
    """Write the nodes for the threads for which the mask holds."""
    writer.masks.append(mask)
    write(writer, nodes)
    writer.masks.pop()


def _branch(writer: Writer, node: Branch) -> None:
    writer.open(f"if {'constexpr ' if node.stmt.constexpr else ''}({writer.printer.expr(node.cond)})")
    write(writer, node.then)
    if node.other:
        writer.otherwise()
        write(writer, node.other)
    writer.close()


def _region(writer: Writer, node: Region) -> None:
    """Write a region; one that computes with what is the same in all threads, once, for blocks of whole warps."""
    same = writer.lowered.once.get(node.number)
    if not same:
        regions.numbered(writer, node.number)
        return
    writer.open("if (dim_x % 32 == 0)")
    writer.line("constexpr int thread = 0;  // all threads have the same")
    writer.values(node.stmts, plans.used(node.stmts))
    writer.lines += writer.statements(node.stmts)
    for var in writer.plan.in_order(same):
        writer.line(f"std::fill_n({var.name}_t, threads, {var.name});")
    writer.otherwise()
    regions.numbered(writer, node.number)
    writer.close()


def _group(writer: Writer, node: WarpGroup) -> None:
    """Write the loop over warps; the lanes of blocks whose width is a multiple of 32 run side by side, those of others one by one."""
    if not writer.settings.vectors:
        _one_by_one(writer, node)
        return
    invariant = writer.lowered.groups.get(node.number)
    writer.open("if (dim_x % 32 == 0)")
    warps.open_side_by_side(writer, invariant)
    _lane_arrays(writer, node)
    warps.enter(writer)
    write(writer, node.body)
    warps.leave(writer)
    writer.close()
    if invariant is not None:
        warps.copies(writer, invariant)
    writer.otherwise()
    _one_by_one(writer, node)
    writer.close()


def _one_by_one(writer: Writer, node: WarpGroup) -> None:
    """Write the loop over warps, whose lanes run one after another."""
    writer.open("for (int warp_index = 0; warp_index < warps; ++warp_index)")
    writer.line("const int lanes = threads - warp_index * 32 < 32 ? threads - warp_index * 32 : 32;")
    _lane_arrays(writer, node)
    writer.in_warps = True
    write(writer, node.body)
    writer.in_warps = False
    writer.close()


def _lane_arrays(writer: Writer, node: WarpGroup) -> None:
    """Declare the per-lane arrays of the warp."""
    inside = {k for n, _ in plans.walk(node.body) for k in plans.used(plans.node_stmts(n))}
    for var in writer.plan.in_order(writer.lane_arrays & inside):
        writer.line(f"alignas(64) {declarator(var, f'{var.name}_l', '[32]')};")


def _collect(writer: Writer, node: CollectiveNode) -> None:
    stmt = node.stmt
    neutral, step = _JOINS[stmt.operation]
    start = f"({stmt.var.type}){neutral}" if neutral else "{}"  # C++ has no value of a type of two words, unsigned int()
    writer.line(f"{stmt.var.type} {stmt.var.name} = {start};  // line {stmt.line}")
    if not neutral:
        writer.line(f"bool first_{stmt.var.name} = true;")
    offered = f"{stmt.offered.name}{'_l[lane_index]' if stmt.offered.key in writer.lane_arrays else ''}"
    writer.loop_head([Evaluate(ir.name_of(stmt.offered)), *[Evaluate(m) for m in writer.masks]], False)
    writer.line(step.format(r=stmt.var.name, o=offered) + ";")
    writer.loop_tail()
