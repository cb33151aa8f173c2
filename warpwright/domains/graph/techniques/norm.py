"""Normalisations: what they cancel, what they fold into, and statistics that need no stored intermediate.

LayerNorm, InstanceNorm, GroupNorm and BatchNorm in training mode subtract a mean, so a summand that is constant over the normalised elements
vanishes. BatchNorm in evaluation mode is an affine map of parameters and folds into the linear map before it. BatchNorm in training mode
is affine as well, once its statistics are known; pools and means after it then act on its argument, so that the normalised tensor
is never made. Running statistics are written as before. Sources: notes 2.5 (L2-3, 15, 17, 34, 41, 72, 73, 77, 84, 97); the two-level
variance is Chan's formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, argument, aten, dtype, is_op, is_parameter_only, is_tensor, only_user, shape, users
from warpwright.domains.graph.techniques.convolutions.conv_pool import merge_axis
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution, read, same_form
from warpwright.domains.graph.techniques.linear_reduce import read_product
from warpwright.domains.graph.techniques.reduction import REDUCTIONS, read_average_pool, read_reduction
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

_NORMS = (aten.layer_norm.default, aten.group_norm.default, aten.instance_norm.default, aten.batch_norm.default)


def _trains(node: fx.Node) -> bool:
    """Does this batch_norm use the statistics of its input?"""
    return bool(argument(node, "training"))


def _normalised(node: fx.Node) -> tuple[int, ...] | None:
    """Return the axes over which a norm takes each mean, when every mean covers whole axes; None otherwise."""
    x: Any = node.args[0]
    rank = len(shape(x))
    if is_op(node, aten.layer_norm):
        return tuple(range(rank - len(argument(node, "normalized_shape")), rank))
    if is_op(node, aten.batch_norm):
        return tuple(a for a in range(rank) if a != 1) if _trains(node) else None
    if is_op(node, aten.instance_norm):
        return tuple(range(2, rank)) if argument(node, "use_input_stats") else None
    groups, channels = argument(node, "num_groups"), shape(x)[1]
    if groups == channels:
        return tuple(range(2, rank))
    return tuple(range(1, rank))  # several means over parts of axis 1: what is constant over all of these axes is constant over each part


def _writes_mean(node: fx.Node) -> fx.Node | None:
    """Return the running mean that a norm writes, if it does."""
    running = argument(node, "running_mean") if is_op(node, aten.batch_norm, aten.instance_norm) else None
    return running if isinstance(running, fx.Node) else None


@dataclass(frozen=True)
class Shift:
    """A summand before a norm that the norm cancels: `x` is the rest, `bias` the summand of each channel (to keep the running mean right)."""

    x: fx.Node | None
    conv: Any
    bias: Any
    sign: int


def _match_cancel(node: fx.Node) -> Any:
    axes = _normalised(node)
    inner: Any = node.args[0]
    if axes is None or not is_tensor(inner) or only_user(inner) is not node or dtype(inner) != dtype(node):
        return None
    rank = len(shape(inner))
    running = _writes_mean(node)
    if running is not None and (is_op(node, aten.instance_norm) or not isinstance(argument(node, "momentum"), float)):
        return None
    conv = read(inner)
    if conv is not None and conv.bias is not None:
        return Shift(None, conv, conv.bias, 1) if 1 not in axes else None
    product = read_product(inner)
    if product is not None and is_op(inner, aten.linear) and product.bias is not None:
        own = rank == 2 and axes == (0,)  # BatchNorm over the rows of a linear layer
        return Shift(None, product, product.bias, 1) if own else None
    if not is_op(inner, aten.add.Tensor, aten.sub.Tensor) or inner.kwargs or len(inner.args) > 2:
        return None
    for position in (0, 1) if is_op(inner, aten.add.Tensor) else (0,):
        x, other = inner.args[position], inner.args[1 - position]
        if not is_tensor(x) or shape(x) != shape(inner) or dtype(x) != dtype(inner):
            continue
        sizes = (1,) * (rank - len(shape(other))) + shape(other) if is_tensor(other) else (1,) * rank
        if all(sizes[a] == 1 for a in axes) and (running is None or is_parameter_only(other)):
            return Shift(x, None, other, -1 if is_op(inner, aten.sub.Tensor) else 1)
    return None


def _emit_cancel(e: Edit, node: fx.Node, match: Shift) -> None:
    at = e.before(node)
    if match.x is not None:
        x = match.x
    elif hasattr(match.conv, "stride"):
        x = same_form(at, match.conv, match.conv.x, match.conv.weight, None)
    else:
        x = at.call(aten.linear.default, match.conv.x, match.conv.matrix, None)
    new = at.call(node.target, x, *node.args[1:], **node.kwargs)
    running = _writes_mean(node)
    if running is not None:
        momentum = argument(node, "momentum") * match.sign
        if is_tensor(match.bias):
            channels = shape(running)[0]
            shift = at.call(aten.reshape.default, match.bias, [-1])
            shift = shift if shape(shift)[0] in (1, channels) else match.bias
            at.call(aten.add_.Tensor, running, shift, alpha=momentum)
        else:
            at.call(aten.add_.Tensor, running, match.bias * momentum)
    e.replace(node, new)
    e.graph.erase_node(node)  # it writes the running statistics, which its replacement now does


NORM_CANCELS_SHIFT = Rewrite(
    "norm_cancels_shift", Traits("E"), _NORMS, _match_cancel, _emit_cancel,
    "norm(x + c) -> norm(x), c constant over the elements that share a mean: a number, a parameter of size 1 along the normalised axes, or the bias"
    " of the convolution or linear layer before. BatchNorm's running mean gets momentum * c in a step of its own.",
)  # fmt: skip

# --- BatchNorm in evaluation mode ----------------------------------------------------------------------------------------


def _channel_view(at: Inserter, vector: fx.Node, rank: int) -> fx.Node:
    """Return a vector over axis 1 in a form that broadcasts against `rank` axes."""
    return vector if rank == 2 else at.call(aten.reshape.default, vector, [shape(vector)[0], *[1] * (rank - 2)])


def _match_evaluation(node: fx.Node) -> Any:
    inner: Any = node.args[0]
    if _trains(node) or not is_tensor(inner) or only_user(inner) is not node or dtype(inner) != dtype(node):
        return None
    linear = read(inner) is not None or (is_op(inner, aten.linear.default) and len(shape(inner)) == 2)
    state = [argument(node, name) for name in ("weight", "bias", "running_mean", "running_var")]
    return state if linear and isinstance(state[2], fx.Node) and all(is_parameter_only(s) for s in (*state, *inner.args[1:3])) else None


def _emit_evaluation(e: Edit, node: fx.Node, state: list[Any]) -> None:
    weight, bias, mean, variance = state
    inner: Any = node.args[0]
    at, rank = e.before(node), len(shape(inner))
    scale = at.call(aten.rsqrt.default, at.call(aten.add.Tensor, variance, argument(node, "eps")))
    scale = scale if weight is None else at.call(aten.mul.Tensor, scale, weight)
    shift = at.call(aten.mul.Tensor, mean, scale)
    shift = at.call(aten.neg.default, shift) if bias is None else at.call(aten.sub.Tensor, bias, shift)
    new = at.call(aten.mul.Tensor, inner, _channel_view(at, scale, rank))
    e.replace(node, at.call(aten.add.Tensor, new, _channel_view(at, shift, rank)))


BATCH_NORM_IS_AFFINE = Rewrite(
    "batch_norm_is_affine", Traits("E"), (aten.batch_norm.default,), _match_evaluation, _emit_evaluation,
    "batch_norm(conv(x)) in evaluation mode -> conv(x) * a + c with a = weight / sqrt(var + eps), c = bias - mean a, parameters only: they then"
    " fold into the convolution or linear layer.",
)  # fmt: skip

# --- BatchNorm in training mode ------------------------------------------------------------------------------------------


def _usable(node: Any) -> bool:
    """Is this a batch_norm in training mode whose statistics can be written out?"""
    if not is_op(node, aten.batch_norm.default) or not _trains(node) or not isinstance(argument(node, "momentum"), float):
        return False
    sizes = shape(node)
    return len(sizes) > 2 and math.prod(sizes) // sizes[1] > 1


def _remember(at: Inserter, node: fx.Node, mean: fx.Node, variance: fx.Node) -> None:
    """Insert the writes of the running statistics; the running variance takes the unbiased one."""
    running_mean, running_var = argument(node, "running_mean"), argument(node, "running_var")
    if running_mean is None:
        return
    momentum, sizes = argument(node, "momentum"), shape(node)
    count = math.prod(sizes) // sizes[1]
    at.call(aten.lerp_.Scalar, running_mean, mean, momentum)
    at.call(aten.lerp_.Scalar, running_var, at.call(aten.mul.Tensor, variance, count / (count - 1)), momentum)


def _scale(at: Inserter, node: fx.Node, variance: fx.Node) -> fx.Node:
    """Insert weight / sqrt(variance + eps)."""
    scale = at.call(aten.rsqrt.default, at.call(aten.add.Tensor, variance, argument(node, "eps")))
    weight = argument(node, "weight")
    return scale if weight is None else at.call(aten.mul.Tensor, scale, weight)


def _twin(at: Inserter, node: fx.Node) -> fx.Node:
    """Insert a transposed convolution once more, with the scalars and biases after it, in float64."""

    def wide(item: Any) -> Any:
        return at.call(aten.to.dtype, item, torch.float64) if is_tensor(item) else item

    if read(node) is not None:
        return at.call(node.target, *(wide(a) for a in node.args[:3]), *node.args[3:], **node.kwargs)
    first: Any = node.args[0]
    return at.call(node.target, _twin(at, first), *(wide(a) for a in node.args[1:]), **node.kwargs)


def _transposed_above(node: Any) -> Convolution | None:
    """Return the transposed convolution that a node is, but for scalars and biases after it; None for any other node."""
    while is_op(node, aten.mul.Tensor, aten.div.Tensor, aten.add.Tensor, aten.sub.Tensor):
        first = node.args[0]
        if not is_tensor(first) or only_user(first) is None or shape(first) != shape(node) or not all(is_parameter_only(a) for a in node.args[1:]):
            return None
        node = first
    conv = read(node)
    return conv if conv is not None and conv.transposed else None


def _match_pooled(node: fx.Node) -> Any:
    inner: Any = node.args[0]
    if not _usable(inner) or only_user(inner) is not node or dtype(inner) != dtype(node) or _transposed_above(inner.args[0]) is None:
        return None
    red = read_reduction(node)
    if red is not None:
        return inner if red.mean and min(red.axes) >= 2 else None
    pool, conv = read_average_pool(node), _transposed_above(inner.args[0])
    if pool is None or conv is None or len(pool.kernel) != conv.d or read_average_pool(only_user(node)) is not None:
        return None  # a pool after a pool merges with it first
    merges = all(merge_axis(conv, axis, pool.kernel[axis], pool.stride[axis]) is not None for axis in range(conv.d))
    return inner if merges else None


def _emit_pooled(e: Edit, node: fx.Node, norm: fx.Node) -> None:
    at = e.before(norm)  # where the running statistics were written: other writes of them may follow
    y: Any = norm.args[0]
    rank = len(shape(y))
    statistics = at.call(aten.var_mean.correction, y, [a for a in range(rank) if a != 1], correction=0)
    variance, mean = at.item(statistics, 0), at.item(statistics, 1)
    _remember(at, norm, mean, variance)
    at = e.before(node)
    # Both means cancel in part, and neither averages over rounded values as the original does: float64, on little data.
    red = read_reduction(node)
    pooled = at.call(aten.mean.dim, _twin(at, y), list(red.axes), True) if red else at.call(node.target, _twin(at, y), *node.args[1:], **node.kwargs)
    everything = list(range(2, rank))
    spatial = pooled if red and list(red.axes) == everything else at.call(aten.mean.dim, _twin(at, y), everything, True)
    new = at.call(aten.sub.Tensor, pooled, at.call(aten.mean.dim, spatial, [0], True))
    new = at.call(aten.to.dtype, new, dtype(node))
    new = at.call(aten.mul.Tensor, new, _channel_view(at, _scale(at, norm, variance), rank))
    bias = argument(norm, "bias")
    if bias is not None:
        new = at.call(aten.add.Tensor, new, _channel_view(at, bias, rank))
    e.replace_reshaped(node, new)
    e.graph.erase_node(node)
    e.graph.erase_node(norm)


POOL_BEFORE_BATCH_NORM = Rewrite(
    "pool_before_batch_norm", Traits("E"), REDUCTIONS, _match_pooled, _emit_pooled,
    "pool(batch_norm(y)), y a transposed convolution, training mode -> (pool(y) - mean) * weight / sqrt(var + eps) + bias: the normalised tensor is"
    " never made. pool(y) merges into the convolution, and the mean is that of reduced inputs: both come from x in float64, little as they are, so"
    " that their difference is as good as the original's mean of differences.",
)  # fmt: skip


def _match_centred(node: fx.Node) -> Any:
    if len(node.args) != 2 or node.kwargs:
        return None
    norm, subtrahend = node.args
    red = read_reduction(subtrahend)
    if not _usable(norm) or red is None or not red.mean or not red.keepdim or red.x is not norm or only_user(red.node) is not node:
        return None
    return norm if red.axes == tuple(range(2, len(shape(node)))) and set(users(red.x)) == {node, red.node} else None


def _emit_centred(e: Edit, node: fx.Node, norm: fx.Node) -> None:
    at = e.before(norm)  # where the running statistics were written: other writes of them may follow
    y: Any = norm.args[0]
    rank = len(shape(y))
    statistics = at.call(aten.var_mean.correction, y, list(range(2, rank)), correction=0, keepdim=True)
    variances, means = at.item(statistics, 0), at.item(statistics, 1)
    variance, mean = _pooled_statistics(at, variances, means, 0)
    flat_variance, flat_mean = (at.call(aten.reshape.default, t, [-1]) for t in (variance, mean))
    _remember(at, norm, flat_mean, flat_variance)
    at = e.before(node)
    new = at.call(aten.sub.Tensor, y, means)
    subtrahend: Any = node.args[1]
    e.replace(node, at.call(aten.mul.Tensor, new, _channel_view(at, _scale(at, norm, flat_variance), rank)))
    for gone in (node, subtrahend, norm):
        e.graph.erase_node(gone)


def _pooled_statistics(at: Inserter, variances: fx.Node, means: fx.Node, axis: int) -> tuple[fx.Node, fx.Node]:
    """Insert variance and mean of equally large parts put together: mean(v + (m - mean(m))^2), mean(m), over `axis`, kept."""
    mean = at.call(aten.mean.dim, means, [axis], True)
    apart = at.call(aten.square.default, at.call(aten.sub.Tensor, means, mean))
    return at.call(aten.mean.dim, at.call(aten.add.Tensor, variances, apart), [axis], True), mean


BATCH_NORM_MINUS_MEAN = Rewrite(
    "batch_norm_minus_mean", Traits("E"), (aten.sub.Tensor,), _match_centred, _emit_centred,
    "z - z.mean(spatial axes), z = batch_norm(y) in training mode -> (y - mean_nc) * weight / sqrt(var_c + eps): batch mean and bias cancel, and one"
    " read of y gives all statistics.",
)  # fmt: skip

# --- GroupNorm ---------------------------------------------------------------------------------------------------------


def _match_group(node: fx.Node) -> Any:
    red = read_reduction(node)
    if red is None or not is_op(red.x, aten.group_norm.default) or only_user(red.x) is not node or not red.mean:
        return None
    rank = len(shape(red.x))
    return red if rank > 2 and set(range(2, rank)) <= set(red.axes) and 0 not in red.axes else None


def _emit_group(e: Edit, node: fx.Node, red: Any) -> None:
    at = e.before(node)
    norm = red.x
    y: Any = norm.args[0]
    n, channels, *sizes = shape(y)
    groups = argument(norm, "num_groups")
    statistics = at.call(aten.var_mean.correction, y, list(range(2, 2 + len(sizes))), correction=0)
    split = [n, groups, channels // groups]
    variances, means = (at.call(aten.reshape.default, at.item(statistics, i), split) for i in (0, 1))
    variance, mean = _pooled_statistics(at, variances, means, 2)
    scale = at.call(aten.rsqrt.default, at.call(aten.add.Tensor, variance, argument(norm, "eps")))
    new = at.call(aten.mul.Tensor, at.call(aten.sub.Tensor, means, mean), scale)
    new = at.call(aten.reshape.default, new, [n, channels])
    for name, op in (("weight", aten.mul.Tensor), ("bias", aten.add.Tensor)):
        if argument(norm, name) is not None:
            new = at.call(op, new, argument(norm, name))
    if 1 in red.axes:
        new = at.call(aten.mean.dim, new, [1], True)
    e.replace_reshaped(node, new)


MEAN_BEFORE_GROUP_NORM = Rewrite(
    "mean_before_group_norm", Traits("E"), REDUCTIONS, _match_group, _emit_group,
    "group_norm(y).mean(spatial axes) -> (mean_nc - mean_g) * weight / sqrt(var_g + eps) + bias, from the mean and variance of each channel: one read"
    " of y, nothing as large written. Notes 2.5 (L2-23, 27).",
)  # fmt: skip

TECHNIQUES = (NORM_CANCELS_SHIFT, BATCH_NORM_IS_AFFINE, BATCH_NORM_MINUS_MEAN, POOL_BEFORE_BATCH_NORM, MEAN_BEFORE_GROUP_NORM)
