"""Statistics of a norm that reads what a kernel of `implicit_convolution` writes: the kernel forms them of what it holds, and the norm reads its
input once.

    batch_norm(conv(x, w))  ->  y, blocks = conv(x, w); variance, mean = norm_of_blocks(blocks); (y - mean) * rsqrt(variance + eps) ...

What is left is element by element: `fuse_cuda`, which calls this, makes one kernel of it and what follows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp import batch_norm
from warpwright.domains.graph.cuda.plan import HELD, TOGETHER, TOGETHER_BLOCK
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, dtype, edit, find, role, shape
from warpwright.domains.graph.techniques.convolutions import ends

LONGEST_HELD = TOGETHER * TOGETHER_BLOCK * HELD
"""Elements of a row that blocks keep in their registers between sum and norm: of these a fused kernel reads each once as it is."""


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with every norm written out whose statistics a convolution's kernel can form."""
    names = [node.name for node in find(ir, aten.batch_norm.default, aten.group_norm.default, aten.instance_norm.default) if _gains(node)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        node = e.node(name)
        if _gains(node):
            _expand(e, node)
    return e.finish()


def _gains(node: fx.Node) -> bool:
    source: Any = argument(node, "input")
    if not ends.is_ended(source) or not source.target.may_count(source) or dtype(node) != torch.float32:
        return False
    if node.target is aten.batch_norm.default:
        return bool(argument(node, "training")) and not any(one.meta.get("shared") for one in node.all_input_nodes if role(one) == "state")
    if node.target is aten.instance_norm.default and (not argument(node, "use_input_stats") or argument(node, "running_mean") is not None):
        return False
    return math.prod(shape(source)[1:]) // _groups(node) > LONGEST_HELD


def _groups(node: fx.Node) -> int:
    return int(argument(node, "num_groups")) if node.target is aten.group_norm.default else shape(node)[1]


def _expand(e: Edit, node: fx.Node) -> None:
    source: Any = argument(node, "input")
    of_all = node.target is aten.batch_norm.default
    n, channels, *sizes = shape(source)
    at = e.before(source)
    new = at.call(source.target.with_statistics("all" if of_all else "each"), *source.args)
    y, blocks = at.item(new, 0), at.item(new, 1)
    units, per, group = (1, n * math.prod(sizes), 1) if of_all else (n, math.prod(sizes), channels // _groups(node))
    both = at.call(ends.NormOfBlocks(source.target.shared_text), blocks, units, per, group, source.target.places_of_block(source), len(sizes) + 2)
    variance, mean = at.item(both, 0), at.item(both, 1)
    e.replace(source, y)
    if of_all:
        batch_norm.expand_by(e, node, variance, mean)
        return
    e.replace(node, batch_norm.normalised(e.before(node), y, variance, mean, node))
