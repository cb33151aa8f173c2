"""Losses as their parts, so that what reads the large tensors can be one kernel; the rest is one number a row, or one number.

    cross_entropy(x, t)                  ->  mean(logsumexp(x, 1) - x[t])            where t is not ignored; weighted; smoothed
    cross_entropy(x, p)                  ->  mean(sum(-p log_softmax(x, 1), 1))
    nll_loss(log_softmax(x, 1), t)       ->  the same as cross_entropy(x, t): no logarithm is written
    binary_cross_entropy_with_logits     ->  mean((1 - y) x - log_sigmoid(x))
    binary_cross_entropy(sigmoid(x), y)  ->  mean(-y max(log p, -100) - (1 - y) max(log(1 - p), -100))
    triplet_margin(a, p, n)              ->  mean(clamp(margin + |a - p + eps| - |a - n + eps|, 0))
    cosine_similarity(a, b)              ->  sum(a b) / (max(|a|, eps) max(|b|, eps))

and soft margin, Poisson, margin ranking and cosine embedding losses by torch's own formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, find, is_op, shape

_HALF = (torch.bfloat16, torch.float16)


def expand(ir: GraphIR, on_gpu: bool = False) -> GraphIR:
    """Return the IR with every such float32 loss written out, on a GPU cross entropies of 16 bits too: computed in float32, rounded once."""
    names = [node.name for node in find(ir, *_FORMS) if _applies(node, on_gpu)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        _replace(e, e.node(name))
    return e.finish()


def _applies(node: fx.Node, on_gpu: bool) -> bool:
    inputs = [arg for arg in node.args if isinstance(arg, fx.Node)]
    if is_op(node, aten.cross_entropy_loss, aten.nll_loss_nd):
        return _is_of_classes(node, on_gpu)
    if any(dtype(one) != torch.float32 for one in (node, *node.all_input_nodes)):
        return False
    if is_op(node, aten.triplet_margin_loss):
        plain = argument(node, "p") == 2 and not argument(node, "swap")
        return plain and len({shape(arg) for arg in inputs}) == 1 and len(shape(inputs[0])) >= 2
    if is_op(node, aten.cosine_embedding_loss):
        return len(shape(inputs[0])) == 2 and shape(inputs[0]) == shape(inputs[1]) and shape(inputs[2]) == shape(inputs[0])[:1]
    if is_op(node, aten.poisson_nll_loss) and not (argument(node, "log_input") and not argument(node, "full")):
        return False
    if is_op(node, aten.binary_cross_entropy) and not is_op(inputs[0], aten.sigmoid, aten.softmax):
        return False  # torch refuses what is no probability
    return all(shape(one) == shape(inputs[0]) for one in inputs[1 : 3 if is_op(node, aten.margin_ranking_loss) else 2])


def _is_of_classes(node: fx.Node, on_gpu: bool) -> bool:
    x: Any = node.args[0]
    target: Any = node.args[1]
    kind, sizes, weight = dtype(x), shape(x), argument(node, "weight")
    smoothed = is_op(node, aten.cross_entropy_loss) and argument(node, "label_smoothing")
    if kind != dtype(node) or len(sizes) < 2 or not (kind == torch.float32 or (on_gpu and kind in _HALF)):
        return False
    if dtype(target) == kind == torch.float32 and is_op(node, aten.cross_entropy_loss):
        return shape(target) == sizes and weight is None and not smoothed
    if weight is not None and (len(sizes) != 2 or kind != torch.float32 or smoothed):
        return False
    return dtype(target) == torch.int64 and len(shape(target)) == len(sizes) - 1


def _replace(e: Edit, node: fx.Node) -> None:
    e.replace(node, _FORMS[node.target](e.before(node), node))


def _reduced(at: Inserter, each: fx.Node, reduction: Any) -> fx.Node:
    return each if reduction == 0 else at.call(aten.mean.default if reduction == 1 else aten.sum.default, each)


def _cross_entropy(at: Inserter, node: fx.Node) -> fx.Node:
    x, target = node.args[:2]
    if dtype(target) == torch.float32:  # type: ignore[arg-type]
        return _shares(at, node)
    smoothing = argument(node, "label_smoothing")
    wide = _widened(at, x)
    each = at.call(aten.logsumexp.default, wide, [1])
    if smoothing:
        each = at.call(aten.sub.Tensor, each, at.call(aten.mul.Scalar, at.call(aten.mean.dim, wide, [1]), smoothing))
    return _of_classes(at, node, each, x, 1 - smoothing)


def _nll(at: Inserter, node: fx.Node) -> fx.Node:
    x: Any = node.args[0]
    if is_op(x, aten.log_softmax.int) and argument(x, "dim") % len(shape(x)) == 1 and dtype(x.args[0]) == dtype(x):
        source = x.args[0]
        return _of_classes(at, node, at.call(aten.logsumexp.default, _widened(at, source), [1]), source, 1.0)
    return _of_classes(at, node, None, x, 1.0)


def _widened(at: Inserter, x: Any) -> Any:
    return at.call(aten.to.dtype, x, torch.float32) if dtype(x) in _HALF else x


def _of_classes(at: Inserter, node: fx.Node, total: fx.Node | None, x: Any, share: float) -> fx.Node:
    """Return the loss of rows whose class is `node.args[1]`: total - share x[class], where it is not ignored; 0 for no `total`."""
    target, weight, reduction = node.args[1], argument(node, "weight"), argument(node, "reduction")
    kept = at.call(aten.ne.Scalar, target, argument(node, "ignore_index"))
    safe = at.call(aten.mul.Tensor, target, kept)  # 0 where it is ignored
    picked = _widened(at, at.call(aten.squeeze.dim, at.call(aten.gather.default, x, 1, at.call(aten.unsqueeze.default, safe, 1)), 1))
    if share != 1:
        picked = at.call(aten.mul.Scalar, picked, share)
    each = at.call(aten.neg.default, picked) if total is None else at.call(aten.sub.Tensor, total, picked)
    count: Any = kept
    if weight is not None:
        count = at.call(aten.where.ScalarOther, kept, at.call(aten.index_select.default, weight, 0, safe), 0.0)
        each = at.call(aten.mul.Tensor, each, count)
    each = at.call(aten.where.ScalarOther, kept, each, 0.0)
    if reduction == 1:
        each = at.call(aten.div.Tensor, at.call(aten.sum.default, each), at.call(aten.sum.default, count))
    elif reduction == 2:
        each = at.call(aten.sum.default, each)
    return at.call(aten.to.dtype, each, dtype(node)) if dtype(node) in _HALF else each


def _shares(at: Inserter, node: fx.Node) -> fx.Node:
    x, target = node.args[:2]
    each = at.call(aten.neg.default, at.call(aten.sum.dim_IntList, at.call(aten.mul.Tensor, target, at.call(aten.log_softmax.int, x, 1)), [1]))
    return _reduced(at, each, argument(node, "reduction"))


def _with_logits(at: Inserter, node: fx.Node) -> fx.Node:
    x, y = node.args[:2]
    weight, positive = argument(node, "weight"), argument(node, "pos_weight")
    logarithm = at.call(aten.log_sigmoid.default, x)
    if positive is not None:
        share = at.call(aten.add.Scalar, at.call(aten.mul.Tensor, y, at.call(aten.sub.Scalar, positive, 1)), 1)
        logarithm = at.call(aten.mul.Tensor, logarithm, share)
    each = at.call(aten.sub.Tensor, at.call(aten.mul.Tensor, at.call(aten.rsub.Scalar, y, 1), x), logarithm)
    return _reduced(at, each if weight is None else at.call(aten.mul.Tensor, each, weight), argument(node, "reduction"))


def _binary(at: Inserter, node: fx.Node) -> fx.Node:
    p, y = node.args[:2]
    weight = argument(node, "weight")
    yes = at.call(aten.clamp_min.default, at.call(aten.log.default, p), -100)
    no = at.call(aten.clamp_min.default, at.call(aten.log1p.default, at.call(aten.neg.default, p)), -100)
    each = at.call(aten.sub.Tensor, at.call(aten.mul.Tensor, at.call(aten.sub.Scalar, y, 1), no), at.call(aten.mul.Tensor, y, yes))
    return _reduced(at, each if weight is None else at.call(aten.mul.Tensor, each, weight), argument(node, "reduction"))


def _soft_margin(at: Inserter, node: fx.Node) -> fx.Node:
    x, y = node.args[:2]
    each = at.call(aten.log1p.default, at.call(aten.exp.default, at.call(aten.mul.Tensor, at.call(aten.neg.default, x), y)))
    return _reduced(at, each, argument(node, "reduction"))


def _poisson(at: Inserter, node: fx.Node) -> fx.Node:
    x, y = node.args[:2]
    return _reduced(at, at.call(aten.sub.Tensor, at.call(aten.exp.default, x), at.call(aten.mul.Tensor, y, x)), argument(node, "reduction"))


def _ranking(at: Inserter, node: fx.Node) -> fx.Node:
    a, b, y = node.args[:3]
    apart = at.call(aten.mul.Tensor, at.call(aten.neg.default, y), at.call(aten.sub.Tensor, a, b))
    each = at.call(aten.clamp_min.default, at.call(aten.add.Scalar, apart, argument(node, "margin")), 0)
    return _reduced(at, each, argument(node, "reduction"))


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


def _embedding(at: Inserter, node: fx.Node) -> fx.Node:
    a, b, y = node.args[:3]
    dot, *squares = (at.call(aten.sum.dim_IntList, at.call(aten.mul.Tensor, *pair), [1]) for pair in ((a, b), (a, a), (b, b)))
    sizes = at.call(aten.sqrt.default, at.call(aten.mul.Tensor, *(at.call(aten.add.Scalar, square, 1e-12) for square in squares)))
    cosine = at.call(aten.div.Tensor, dot, sizes)
    alike = at.call(aten.where.ScalarOther, at.call(aten.eq.Scalar, y, 1), at.call(aten.rsub.Scalar, cosine, 1), 0.0)
    beyond = at.call(aten.clamp_min.default, at.call(aten.sub.Scalar, cosine, argument(node, "margin")), 0)
    unlike = at.call(aten.where.ScalarOther, at.call(aten.eq.Scalar, y, -1), beyond, 0.0)
    return _reduced(at, at.call(aten.add.Tensor, alike, unlike), argument(node, "reduction"))


_FORMS: Mapping[Any, Callable[[Inserter, fx.Node], fx.Node]] = {
    aten.cross_entropy_loss.default: _cross_entropy, aten.nll_loss_nd.default: _nll, aten.binary_cross_entropy_with_logits.default: _with_logits,
    aten.binary_cross_entropy.default: _binary, aten.soft_margin_loss.default: _soft_margin, aten.poisson_nll_loss.default: _poisson,
    aten.margin_ranking_loss.default: _ranking, aten.triplet_margin_loss.default: _triplet, aten.cosine_similarity.default: _cosine,
    aten.cosine_embedding_loss.default: _embedding,
}  # fmt: skip
