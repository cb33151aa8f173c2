"""Losses over rows as their parts, so that what reads the large tensors can be one kernel; the rest is one number a row.

    cross_entropy(x, t)         ->  mean(logsumexp(x, 1) - x[t])            where t is not ignored
    triplet_margin(a, p, n)     ->  mean(clamp(margin + |a - p + eps| - |a - n + eps|, 0))
    cosine_similarity(a, b)     ->  sum(a b) / (max(|a|, eps) max(|b|, eps))
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, find, is_op, shape

_LOSSES = (aten.cross_entropy_loss.default, aten.triplet_margin_loss.default, aten.cosine_similarity.default)


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with every such float32 loss written out."""
    names = [node.name for node in find(ir, *_LOSSES) if _applies(node)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        _replace(e, e.node(name))
    return e.finish()


def _applies(node: fx.Node) -> bool:
    inputs = [arg for arg in node.args if isinstance(arg, fx.Node)]
    if dtype(node) != torch.float32 or dtype(inputs[0]) != torch.float32:
        return False
    if is_op(node, aten.cross_entropy_loss):
        indices = dtype(inputs[1]) == torch.int64 and len(shape(inputs[1])) == len(shape(inputs[0])) - 1
        return len(shape(inputs[0])) >= 2 and indices and argument(node, "weight") is None
    if is_op(node, aten.triplet_margin_loss):
        plain = argument(node, "p") == 2 and not argument(node, "swap")
        return plain and len({shape(arg) for arg in inputs}) == 1 and len(shape(inputs[0])) >= 2
    return shape(inputs[0]) == shape(inputs[1])


def _replace(e: Edit, node: fx.Node) -> None:
    at = e.before(node)
    form = _cross_entropy if is_op(node, aten.cross_entropy_loss) else _triplet if is_op(node, aten.triplet_margin_loss) else _cosine
    e.replace(node, form(at, node))


def _reduced(at: Inserter, each: fx.Node, reduction: Any) -> fx.Node:
    return each if reduction == 0 else at.call(aten.mean.default if reduction == 1 else aten.sum.default, each)


def _cross_entropy(at: Inserter, node: fx.Node) -> fx.Node:
    x, target = node.args[:2]
    kept = at.call(aten.ne.Scalar, target, argument(node, "ignore_index"))
    safe = at.call(aten.mul.Tensor, target, kept)  # 0 where it is ignored
    picked = at.call(aten.squeeze.dim, at.call(aten.gather.default, x, 1, at.call(aten.unsqueeze.default, safe, 1)), 1)
    each = at.call(aten.logsumexp.default, x, [1])
    smoothing = argument(node, "label_smoothing")
    if smoothing:
        picked = at.call(aten.mul.Scalar, picked, 1 - smoothing)
        each = at.call(aten.sub.Tensor, each, at.call(aten.mul.Scalar, at.call(aten.mean.dim, x, [1]), smoothing))
    each = at.call(aten.where.ScalarOther, kept, at.call(aten.sub.Tensor, each, picked), 0.0)
    if argument(node, "reduction") != 1:
        return _reduced(at, each, argument(node, "reduction"))
    return at.call(aten.div.Tensor, at.call(aten.sum.default, each), at.call(aten.sum.default, kept))


def _triplet(at: Inserter, node: fx.Node) -> fx.Node:
    anchor, *others = node.args[:3]
    eps = argument(node, "eps")
    near, far = (
        at.call(aten.linalg_vector_norm.default, at.call(aten.add.Scalar, at.call(aten.sub.Tensor, anchor, other), eps), 2, [-1]) for other in others
    )
    each = at.call(aten.clamp_min.default, at.call(aten.add.Scalar, at.call(aten.sub.Tensor, near, far), argument(node, "margin")), 0)
    return _reduced(at, each, argument(node, "reduction"))


def _cosine(at: Inserter, node: fx.Node) -> fx.Node:
    a, b = node.args[:2]
    dim, eps = [argument(node, "dim")], argument(node, "eps")
    norms = [at.call(aten.clamp_min.default, at.call(aten.linalg_vector_norm.default, x, 2, dim), eps) for x in (a, b)]
    dot = at.call(aten.sum.dim_IntList, at.call(aten.mul.Tensor, a, b), dim)
    return at.call(aten.div.Tensor, dot, at.call(aten.mul.Tensor, *norms))
