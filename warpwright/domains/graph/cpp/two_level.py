"""A sum over all of what was normalised row by row, as sums of rows and the sum of those: the rows' sums can then join the kernel that normalises.

    kl_div(log_softmax(x, -1), softmax(y, -1), "sum")  ->  sum(sum(kl_div(log_softmax(x, -1), softmax(y, -1), "none"), -1))
"""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import GraphIR, Inserter, argument, aten, edit, find, is_op, is_tensor, shape

_LOSSES = (aten.mse_loss.default, aten.l1_loss.default, aten.smooth_l1_loss.default, aten.huber_loss.default, aten.kl_div.default)
_NORMS = (aten.softmax.int, aten.log_softmax.int, aten.layer_norm.default, aten.rms_norm.default)
_FURTHEST = 24
"""Calls looked at above a sum."""


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with every such sum, mean and loss in two levels."""
    names = [node.name for node in find(ir, aten.sum.default, aten.mean.default, *_LOSSES) if _applies(node)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        node = e.node(name)
        loss = is_op(node, *_LOSSES)
        at = e.before(node)
        x: Any = node.args[0]
        each = _unreduced(at, node) if loss else x
        total = at.call(aten.sum.default, at.call(aten.sum.dim_IntList, each, [-1]))
        mean = argument(node, "reduction") == 1 if loss else is_op(node, aten.mean)
        e.replace(node, at.call(aten.div.Scalar, total, math.prod(shape(x))) if mean else total)
    return e.finish()


def _unreduced(at: Inserter, node: fx.Node) -> fx.Node:
    """Return the loss of each element."""
    if "reduction" in node.kwargs:
        return at.call(node.target, *node.args, **{**node.kwargs, "reduction": 0})
    return at.call(node.target, *node.args[:2], 0, *node.args[3:], **node.kwargs)


def _applies(node: fx.Node) -> bool:
    x: Any = node.args[0]
    sizes = shape(x)
    if len(sizes) < 2 or (is_op(node, *_LOSSES) and argument(node, "reduction") == 0) or (not is_op(node, *_LOSSES) and node.kwargs):
        return False
    todo, seen = [arg for arg in node.all_input_nodes if shape(arg) == sizes], 0
    while todo and seen < _FURTHEST:
        current = todo.pop()
        seen += 1
        if current.op == "call_function" and _along_rows(current):
            return True
        todo += [arg for arg in current.all_input_nodes if current.op == "call_function" and _fits(arg, sizes)]
    return False


def _fits(arg: fx.Node, sizes: tuple[int, ...]) -> bool:
    return is_tensor(arg) and shape(arg) in (sizes, (*sizes[:-1], 1))


def _along_rows(node: fx.Node) -> bool:
    """Does the call reduce the last axis, or normalise along it?"""
    if is_op(node, aten.softmax, aten.log_softmax):
        return argument(node, "dim") % len(shape(node)) == len(shape(node)) - 1
    if is_op(node, *_NORMS):
        return len(argument(node, "normalized_shape")) == 1
    if is_op(node, aten.mean.dim, aten.sum.dim_IntList, aten.amax, aten.amin, aten.logsumexp, aten.var, aten.std):
        rank = len(shape(node.args[0]))  # type: ignore[arg-type]
        dim = argument(node, "dim") if any(formal.name == "dim" for formal in node.target._schema.arguments) else None  # type: ignore[union-attr]
        return [d % rank for d in ([dim] if isinstance(dim, int) else dim or [])] == [rank - 1]
    return False
