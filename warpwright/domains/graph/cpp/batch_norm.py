"""BatchNorm in training mode as its parts, so that they can join a kernel: statistics, normalisation, and the update of the buffers."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, dtype, edit, find, shape


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with every float32 batch norm in training mode written out."""
    names = [node.name for node in find(ir, aten.batch_norm.default) if argument(node, "training") and dtype(node) == torch.float32]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        _expand(e, e.node(name))
    return e.finish()


def _expand(e: Edit, node: fx.Node) -> None:
    at = e.before(node)
    x: Any = argument(node, "input")
    sizes = shape(x)
    dims = [0, *range(2, len(sizes))]
    along = [1, sizes[1], *[1] * (len(sizes) - 2)]
    variance = at.call(aten.var.correction, x, dims, correction=0, keepdim=True)
    mean = at.call(aten.mean.dim, x, dims, True)
    scale = at.call(aten.rsqrt.default, at.call(aten.add.Tensor, variance, argument(node, "eps")))
    weight, bias = argument(node, "weight"), argument(node, "bias")
    if weight is not None:
        scale = at.call(aten.mul.Tensor, scale, at.call(aten.view.default, weight, along))
    new = at.call(aten.mul.Tensor, at.call(aten.sub.Tensor, x, mean), scale)
    if bias is not None:
        new = at.call(aten.add.Tensor, new, at.call(aten.view.default, bias, along))
    if argument(node, "running_mean") is not None:
        share, count = argument(node, "momentum"), x.meta["val"].numel() // sizes[1]
        for buffer, seen, factor in (("running_mean", mean, share), ("running_var", variance, share * count / max(count - 1, 1))):
            flat = at.call(aten.view.default, seen, [sizes[1]])
            at.call(aten.mul_.Tensor, argument(node, buffer), 1 - share)
            at.call(aten.add_.Tensor, argument(node, buffer), flat, alpha=factor)
    e.replace(node, new)
    e.graph.erase_node(node)
