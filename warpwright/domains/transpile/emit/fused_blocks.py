"""Write blocks that go through the kernel's first part together (`block_fusion.py`): a loop over groups of neighbouring blocks."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile.analysis.regions import Loop, Node, Region, all_stmts, used
from warpwright.domains.transpile.emit import control, nodes
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.passes.block_fusion import FusedPrologue
from warpwright.domains.transpile.printing import declarator


def write(writer: Writer, prologue: FusedPrologue) -> None:
    """Write the loop over groups of blocks: their prologue together, and what follows block by block."""
    arrays, shared = writer.plan.in_order(prologue.arrays), writer.plan.in_order(prologue.shared)
    of_thread, of_block = (" + ".join(f"sizeof({declarator(var, ' ').strip()})" for var in held) or "0" for held in (arrays, shared))
    writer.line(f"constexpr int threads_most = ww::threads_together({of_thread}, threads_max);")
    writer.line(f"constexpr int blocks_most = ww::blocks_together({of_block});")
    for var in arrays:
        writer.line(f"alignas(64) {declarator(var, f'{var.name}_all', '[threads_most]')};")
    for var in shared:
        writer.line(f"alignas(64) {declarator(var, f'{var.name}_all', '[blocks_most]')};")
    writer.line("const int blocks_end = block_x + (int)(launch.row / dim_x), blocks_at_once = std::clamp(threads_most / threads, 1, blocks_most);")
    writer.open("for (int first_block = block_x; first_block < blocks_end; first_block += blocks_at_once)")
    writer.line("[[maybe_unused]] const int block_x = first_block, last_block = std::min(first_block + blocks_at_once, blocks_end) - 1;")
    for node in writer.plan.nodes[: prologue.nodes]:
        _by_all(writer, node, prologue)
    _each_block(writer, writer.plan.nodes[prologue.nodes :], prologue)
    writer.close()


def _by_all(writer: Writer, node: Node, prologue: FusedPrologue) -> None:
    """Write a node of the prologue."""
    if isinstance(node, Region):
        _each_block(writer, [node], prologue)
    elif isinstance(node, Loop):
        control.open_steps(writer, node)
        for inner in node.body:
            _by_all(writer, inner, prologue)
        writer.close()
    else:
        nodes.write(writer, [node])


def _each_block(writer: Writer, parts: Sequence[Node], prologue: FusedPrologue) -> None:
    """Write the loop over the blocks of a group."""
    if not parts:
        return
    keys = writer.plan.closure(used(all_stmts(parts)))
    writer.open("for (int block_x = first_block; block_x <= last_block; ++block_x)")
    for var in writer.plan.in_order(prologue.arrays & keys):
        writer.line(f"auto* const {var.name}_t = {var.name}_all + (block_x - first_block) * threads;")
    for var in writer.plan.in_order(prologue.shared & keys):
        writer.line(f"auto& {var.name} = {var.name}_all[block_x - first_block];")
    nodes.write(writer, parts)
    writer.close()
