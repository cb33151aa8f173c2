"""Sums and means of linear maps: reduce the operands, not the product.

Sources: notes section 2.5 (L2-13, 14, 18, 42, 44, 51, 98) for the identities of particular tasks; the general form for any stride, padding,
output padding, dilation and groups is our own derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, argument, aten, dtype, is_op, is_parameter_only, is_tensor, only_user, shape
from warpwright.domains.graph.techniques import reduction
from warpwright.domains.graph.techniques.convolutions.convolution import read
from warpwright.domains.graph.techniques.reduction import Reduction, read_average_pool, read_reduction, reduce
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


@dataclass(frozen=True)
class Product:
    """`x @ matrix + bias`: `matrix` is [..., K, M], or [M, K] when `turned` (as aten.linear keeps it)."""

    node: fx.Node
    x: fx.Node
    matrix: fx.Node
    turned: bool
    bias: fx.Node | None


def read_product(node: Any) -> Product | None:
    """Return the matrix product that a node is, or None."""
    if is_op(node, aten.linear.default):
        return Product(node, node.args[0], node.args[1], True, argument(node, "bias"))
    if is_op(node, aten.addmm.default) and argument(node, "alpha") == 1 and argument(node, "beta") == 1:
        return Product(node, node.args[1], node.args[2], False, node.args[0])
    if is_op(node, aten.matmul.default, aten.mm.default, aten.bmm.default):
        a, b = node.args
        if min(len(shape(a)), len(shape(b))) < 2:
            return None
        turned = is_op(b, aten.t.default, aten.numpy_T.default) and len(shape(b)) == 2
        return Product(node, a, b.args[0] if turned else b, turned, None)
    return None


# --- the last axis of a product ------------------------------------------------------------------------------------------


def _match_columns(node: fx.Node) -> Any:
    red = read_reduction(node)
    product = read_product(red.x) if red is not None else None
    if red is None or product is None or only_user(product.node) is not node:
        return None
    last = len(shape(red.x)) - 1
    if red.axes[-1] != last or shape(red.x)[last] == 1:
        return None
    return red, product


def _emit_columns(e: Edit, node: fx.Node, match: tuple[Reduction, Product]) -> None:
    red, product = match
    at = e.before(node)
    matrix, x = product.matrix, product.x
    rank = len(shape(red.x))
    axis = 0 if product.turned else len(shape(matrix)) - 1
    # one dot product replaces the mean of many, whose rounding errors average out: float64, unless x is what costs most
    wide = dtype(node) == torch.float32 and math.prod(shape(x)) <= math.prod(shape(matrix))
    options = {"dtype": torch.float64} if wide else {}
    column = at.call(aten.mean.dim if red.mean else aten.sum.dim_IntList, matrix, [axis], False, **options)
    x = at.call(aten.to.dtype, x, torch.float64) if wide else x
    if len(shape(column)) == 1:
        new = at.call(aten.unsqueeze.default, at.call(aten.matmul.default, x, column), -1)
    else:
        new = at.call(aten.matmul.default, x, at.call(aten.unsqueeze.default, column, -1))
    if product.bias is not None:
        bias = product.bias
        if len(shape(bias)) > 0 and shape(bias)[-1] == shape(red.x)[rank - 1]:
            bias = at.call(aten.mean.dim if red.mean else aten.sum.dim_IntList, bias, [len(shape(bias)) - 1], True, **options)
        elif not red.mean:
            bias = at.call(aten.mul.Tensor, bias, shape(red.x)[rank - 1])
        new = at.call(aten.add.Tensor, new, bias)
    new = reduce(at, new, red.axes[:-1], True, red.mean)
    new = at.call(aten.to.dtype, new, torch.float32) if wide else new
    e.replace_reshaped(node, new)


REDUCE_COLUMNS = Rewrite(
    name="reduce_columns",
    traits=Traits("E"),
    ops=reduction.REDUCTIONS,
    match=_match_columns,
    emit=_emit_columns,
    doc="sum_j (x @ W + b)[..., j] -> x @ (sum_j W[:, j]) + sum_j b[j]: a product with one vector in place of one with a matrix."
    " Linearity; notes 2.5 (L2-14, 18, 51).",
)


# --- another axis of a product -------------------------------------------------------------------------------------------


def _match_rows(node: fx.Node) -> Any:
    red = read_reduction(node)
    product = read_product(red.x) if red is not None else None
    if red is None or product is None or only_user(product.node) is not node:
        return None
    rank = len(shape(red.x))
    own = range(rank - 1) if len(shape(product.matrix)) == 2 else (rank - 2,)
    axes = tuple(a for a in red.axes if a in own)
    if not axes or red.axes[-1] == rank - 1 or len(shape(product.x)) != rank or all(shape(red.x)[a] == 1 for a in axes):
        return None
    if product.bias is not None and len(shape(product.bias)) > 1:
        return None
    return red, product, axes


def _emit_rows(e: Edit, node: fx.Node, match: tuple[Reduction, Product, tuple[int, ...]]) -> None:
    red, product, axes = match
    at = e.before(node)
    x = reduce(at, product.x, axes, True, red.mean)
    matrix = at.call(aten.t.default, product.matrix) if product.turned else product.matrix
    new = at.call(aten.matmul.default, x, matrix)
    if product.bias is not None:
        bias = product.bias
        if not red.mean:
                    bias = at.call(aten.mul.Tensor, bias, math.prod(shape(red.x)[a] for a in axes))
        new = at.call(aten.add.Tensor, new, bias)
    new = reduce(at, new, tuple(a for a in red.axes if a not in axes), True, red.mean)
    e.replace_reshaped(node, new)


REDUCE_ROWS = Rewrite(
    name="reduce_rows",
    traits=Traits("E"),
    ops=reduction.REDUCTIONS,
    match=_match_rows,
    emit=_emit_rows,
    doc="sum_i (x @ W + b)[i, :] -> (sum_i x[i, :]) @ W + I b. Linearity; own derivation.",
)


# --- pooling of the features of a product --------------------------------------------------------------------------------


def _match_pool(node: fx.Node) -> Any:
    pool = read_average_pool(node)
    if pool is None or len(pool.kernel) != 1 or pool.kernel != pool.stride or pool.kernel[0] == 1:
        return None
    inner: Any = pool.x
    if is_op(inner, aten.unsqueeze.default) and only_user(inner) is node and shape(inner)[-1] == shape(inner.args[0])[-1]:
        inner = inner.args[0]  # [N, M] -> [N, 1, M], the form that avg_pool1d wants
    product = read_product(inner)
    if product is None or only_user(product.node) is None or len(shape(product.matrix)) != 2 or only_user(pool.x) is not node:
        return None
    if product.bias is not None and shape(product.bias) != (shape(inner)[-1],):
        return None
    return product, pool.kernel[0]


def _emit_pool(e: Edit, node: fx.Node, match: tuple[Product, int]) -> None:
    product, width = match
    at = e.before(node)
    matrix = product.matrix if product.turned else at.call(aten.t.default, product.matrix)
    features = shape(matrix)[0]
    groups = features // width

    def pooled(tensor: fx.Node) -> fx.Node:
        if features % width:
            tensor = at.call(aten.narrow.default, tensor, 0, 0, groups * width)
        return at.call(aten.mean.dim, at.call(aten.reshape.default, tensor, [groups, width, *shape(tensor)[1:]]), [1])

    bias = None if product.bias is None else pooled(product.bias)
    e.replace_reshaped(node, at.call(aten.linear.default, product.x, pooled(matrix), bias))


POOL_FEATURES = Rewrite(
    name="pool_features",
    traits=Traits("E"),
    ops=(aten.avg_pool1d.default,),
    match=_match_pool,
    emit=_emit_pool,
    doc="avg_pool1d(x @ W^T + b, q) over the features -> x @ mean of each q rows of W, q times fewer outputs. Linearity; notes 2.5 (L2-98).",
)


# --- reductions move towards the linear map ------------------------------------------------------------------------------

_LINEAR = (aten.mul.Tensor, aten.div.Tensor, aten.add.Tensor, aten.sub.Tensor, aten.neg.default)


def _axes(node: fx.Node) -> tuple[int, ...] | None:
    """Return the axes that a reduction or an average pool works on."""
    red = read_reduction(node)
    if red is not None:
        return red.axes
    pool = read_average_pool(node)
    return None if pool is None else tuple(range(len(shape(pool.x)) - len(pool.kernel), len(shape(pool.x))))


def _varies(item: Any, axes: tuple[int, ...], rank: int) -> bool:
    """Does a factor or summand change along any of `axes` of a tensor of `rank` axes?"""
    if not is_tensor(item):
        return False
    sizes = (1,) * (rank - len(shape(item))) + shape(item)
    return any(sizes[a] != 1 for a in axes)


def _match_commute(node: fx.Node) -> Any:
    inner: Any = node.args[0]
    axes = _axes(node)
    if axes is None or not is_op(inner, *_LINEAR) or only_user(inner) is not node or dtype(inner) != dtype(node):
        return None
    rank = len(shape(inner))
    whole = [a for a in inner.args[:2] if is_tensor(a) and shape(a) == shape(inner) and dtype(a) == dtype(inner)]
    if not whole or argument_or(inner, "alpha", 1) != 1 or argument_or(inner, "rounding_mode", None) is not None:
        return None
    if is_op(inner, aten.neg.default):
        return 0
    for position in (0, 1):
        x, other = inner.args[position], inner.args[1 - position]
        if x not in whole:
            continue
        if is_op(inner, aten.mul.Tensor) and not _varies(other, axes, rank):
            return position
        if is_op(inner, aten.div.Tensor) and position == 0 and not _varies(other, axes, rank):
            return position
        # the sum of differences may cancel where the difference of sums does not; behind a linear map that error is there already
        if is_op(inner, aten.add.Tensor, aten.sub.Tensor) and reaches_linear_map(x) and (not _varies(other, axes, rank) or _pays(node, other)):
            return position
    return None


def _pays(node: fx.Node, other: Any) -> bool:
    """Is the other summand to be reduced on its own: a whole reduction of a parameter?"""
    return is_parameter_only(other) and read_reduction(node) is not None


def argument_or(node: fx.Node, name: str, default: Any) -> Any:
    """Return a call's argument by name, or `default` where its operator has none of that name."""
    try:
        return argument(node, name)
    except KeyError:
        return default


_BETWEEN = (
    *_LINEAR,
    *reduction.MAX_POOLS,
    aten.amax.default,
    aten.amin.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.reshape.default,
)


def reaches_linear_map(node: fx.Node) -> bool:
    """Is there a product or convolution above, with nothing between but linear steps, selections of extrema and changes of shape?"""
    current: Any = node
    while is_op(current, *_BETWEEN) and only_user(current) is not None:
        whole = [a for a in current.args[:2] if is_tensor(a) and shape(a) == shape(current)]
        current = whole[0] if whole else current.args[0]
    return read(current) is not None or read_product(current) is not None


def _emit_commute(e: Edit, node: fx.Node, position: int) -> None:
    inner = node.args[0]
    assert isinstance(inner, fx.Node)
    at = e.before(node)
    x, rank, axes = inner.args[position], len(shape(inner)), _axes(node)
    assert isinstance(x, fx.Node) and axes is not None
    red = read_reduction(node)
    first = reduce(at, x, red.axes, True, red.mean) if red else at.call(node.target, x, *node.args[1:], **node.kwargs)
    if is_op(inner, aten.neg.default):
        new = at.call(aten.neg.default, first)
    else:
        other: Any = inner.args[1 - position]
        if is_op(inner, aten.add.Tensor, aten.sub.Tensor) and red is not None:
            other = _reduced_summand(at, other, red, rank)
        pair = (first, other) if position == 0 else (other, first)
        new = at.call(inner.target, *pair)
    e.replace_reshaped(node, new)


def _reduced_summand(at: Inserter, other: Any, red: Reduction, rank: int) -> Any:
    """Return the reduction of a summand that is broadcast along some of the axes: those multiply a sum and leave a mean alone."""
    if not is_tensor(other):
        return other if red.mean else other * red.count
    lead = rank - len(shape(other))
    present = tuple(a - lead for a in red.axes if a >= lead and shape(other)[a - lead] != 1)
    repeats = red.count
    for a in present:
        repeats //= shape(other)[a]
    new = reduce(at, other, present, True, red.mean)
    return new if red.mean or repeats == 1 else at.call(aten.mul.Tensor, new, repeats)


def _match_conversion(node: fx.Node) -> Any:
    inner: Any = node.args[0]
    if not is_op(inner, aten.to.dtype) or not is_tensor(inner.args[0]) or argument_or(node, "dtype", None) is not None:
        return None
    x = inner.args[0]
    return x if dtype(x) == torch.float32 and dtype(node) == torch.float64 and only_user(inner) is node else None


def _emit_conversion(e: Edit, node: fx.Node, x: fx.Node) -> None:
    e.replace(node, e.before(node).call(node.target, x, *node.args[1:], **{**node.kwargs, "dtype": torch.float64}))


ACCUMULATE_WIDE = Rewrite(
    name="accumulate_wide",
    traits=Traits("E"),
    ops=(aten.sum.dim_IntList, aten.mean.dim),
    match=_match_conversion,
    emit=_emit_conversion,
    doc="x.to(float64).sum(dim) -> x.sum(dim, dtype=float64): the same additions without the converted copy.",
)

COMMUTE_REDUCTION = Rewrite(
    name="commute_reduction",
    traits=Traits("E"),
    ops=reduction.REDUCTIONS,
    match=_match_commute,
    emit=_emit_commute,
    doc="sum, mean or average pool of x * c, x / c, x + c, x - c, -x, with c constant along the reduced axes (or, for a summand, a parameter)"
    " -> the reduction of x, then the same step on fewer elements. Linearity; notes 2.5.",
)

TECHNIQUES = (ACCUMULATE_WIDE, COMMUTE_REDUCTION, REDUCE_COLUMNS, REDUCE_ROWS, POOL_FEATURES)
