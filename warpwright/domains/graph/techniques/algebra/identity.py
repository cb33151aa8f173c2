"""Calls that return what they are given, and pairs of calls that are one."""

from __future__ import annotations

import math
import operator
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten, dtype, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.techniques.algebra.ranges import bounds, read_affine, read_affine_chain, read_clamp
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


def can_stand_for(new: fx.Node, old: fx.Node) -> bool:
    """May readers of `old` read `new`: same type, and no result of the model would become an input, a parameter or another result?"""
    if shape(new) != shape(old) or dtype(new) != dtype(old):
        return False
    if not any(user.op == "output" for user in old.users):
        return True
    if value(new).stride() != value(old).stride():
        return False  # contiguous() of a result is there for its layout
    storage = value(new).untyped_storage()._cdata
    if storage == value(old).untyped_storage()._cdata:
        return True
    results: Any = old.graph.output_node().args[0]
    others = [node for node in old.graph.nodes if node.op == "placeholder"] + [node for node in results if node is not old]
    return not any(is_tensor(node) and value(node).untyped_storage()._cdata == storage for node in others)


# --- one call ------------------------------------------------------------------------------------------------------------

_MAY_DO_NOTHING = (
    aten.dropout.default, aten.feature_dropout.default, aten.alpha_dropout.default, aten.contiguous.default, aten.clone.default,
    aten.detach.default, aten.alias.default, aten.view.default, aten.reshape.default, aten.expand.default, aten.permute.default,
    aten.flatten.using_ints, aten.squeeze.dim, aten.to.dtype, aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.multiply.Tensor,
    aten.div.Tensor, aten.pow.Tensor_Scalar, aten.slice.Tensor, aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default,
    aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default, aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default, aten.adaptive_avg_pool3d.default,
)  # fmt: skip

_POOLS = (
    aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d, aten.max_pool1d, aten.max_pool2d, aten.max_pool3d,
)  # fmt: skip


def _does_nothing(node: fx.Node) -> bool:
    """Given that result and first argument have one shape and one dtype: are they equal?"""
    if is_op(node, aten.dropout, aten.feature_dropout, aten.alpha_dropout):
        return not (bool(node.args[2]) and bool(node.args[1]))
    if is_op(node, aten.contiguous, aten.clone):
        return bool(value(node).stride() == value(node.all_input_nodes[0]).stride())  # else a view that follows may need the copy
    if is_op(node, aten.pow):
        return bool(node.args[1] == 1)
    if is_op(node, aten.permute):
        return all(a % len(node.args[1]) == i for i, a in enumerate(node.args[1]))  # type: ignore[arg-type]
    if is_op(node, aten.slice):
        return bool(argument(node, "step") == 1)
    if is_op(node, *_POOLS):
        window = [*_list(argument(node, "kernel_size")), *_list(argument(node, "stride"))]
        return all(i == 1 for i in window) and (not is_op(node, *_POOLS[1:3]) or argument(node, "divisor_override") in (None, 1))
    if is_op(node, aten.add, aten.sub, aten.mul, aten.multiply, aten.div):
        affine = read_affine(node)
        return affine is not None and affine[1:] == (1.0, 0.0)
    return True


def _list(value: Any) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _match_identity(node: fx.Node) -> Any:
    x = node.args[0]
    if not is_tensor(x) or not can_stand_for(x, node) or not _does_nothing(node):  # type: ignore[arg-type]
        return None
    return x


def _emit_existing(e: Edit, node: fx.Node, match: fx.Node) -> None:
    e.replace(node, match)


IDENTITY = Rewrite(
    "identity", Traits("E"), _MAY_DO_NOTHING, _match_identity, _emit_existing,
    "dropout(x) in eval mode, x * 1, x + 0, x / 1, x ** 1, x.contiguous(), x.view(x.shape), pools with windows of one element  ->  x. "
    "The sign of a zero may change.",
    together=True,
)  # fmt: skip


def _match_broadcast(node: fx.Node) -> Any:
    source = node.args[0]
    if not is_op(source, aten.broadcast_tensors.default):
        return None
    x: Any = source.args[0][node.args[1]]  # type: ignore[index, union-attr]
    return x if is_tensor(x) and can_stand_for(x, node) else None


BROADCAST = Rewrite(
    "needless_broadcast", Traits("E"), (operator.getitem,), _match_broadcast, _emit_existing,
    "broadcast_tensors(x, y)  ->  x, y for tensors of one shape.",
    together=True,
)  # fmt: skip


# --- reductions over axes of size 1 --------------------------------------------------------------------------------------

_REDUCTIONS = (
    aten.sum.dim_IntList, aten.mean.dim, aten.amax.default, aten.amin.default, aten.logsumexp.default, aten.prod.dim_int,
)  # fmt: skip


def _match_size_one(node: fx.Node) -> Any:
    x = node.args[0]
    if not is_tensor(x) or dtype(x) != dtype(node):  # type: ignore[arg-type]
        return None
    rank = len(shape(x))  # type: ignore[arg-type]
    axes = sorted({axis % rank for axis in _list(argument(node, "dim") or range(rank))}) if rank else []
    if not axes or any(shape(x)[axis] != 1 for axis in axes):  # type: ignore[arg-type]
        return None
    if argument(node, "keepdim"):
        return (x, None) if can_stand_for(x, node) else None  # type: ignore[arg-type]
    return (x, axes) if not any(user.op == "output" for user in node.users) else None


def _emit_size_one(e: Edit, node: fx.Node, match: tuple[fx.Node, list[int] | None]) -> None:
    x, axes = match
    e.replace(node, x if axes is None else e.before(node).call(aten.squeeze.dims, x, axes))


SIZE_ONE = Rewrite(
    "size_one_reduction", Traits("E"), _REDUCTIONS, _match_size_one, _emit_size_one,
    "sum, mean, max, min, product or logsumexp over axes of size 1  ->  x without those axes: log(exp(x)) = x, also for +-Inf and NaN.",
    together=True,
)  # fmt: skip


def _match_softmax(node: fx.Node) -> Any:
    x = node.args[0]
    return x if is_tensor(x) and dtype(x) == dtype(node) and shape(x)[argument(node, "dim")] == 1 else None  # type: ignore[arg-type]


def _emit_softmax(e: Edit, node: fx.Node, x: fx.Node) -> None:
    e.replace(node, e.before(node).call(aten.full_like.default, x, 0.0 if is_op(node, aten.log_softmax) else 1.0))


SIZE_ONE_SOFTMAX = Rewrite(
    "size_one_softmax", Traits("E"), (aten.softmax.int, aten.log_softmax.int), _match_softmax, _emit_softmax,
    "softmax over an axis of size 1  ->  ones (log_softmax: zeros): exp(x) / exp(x) = 1 for finite x.",
    assume="softmax over a single element: its argument is finite",
)  # fmt: skip


# --- clamps --------------------------------------------------------------------------------------------------------------

_CLAMPS = (
    aten.relu.default, aten.relu6.default, aten.hardtanh.default, aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default,
)  # fmt: skip


def _match_needless(node: fx.Node) -> Any:
    x = node.args[0]
    if not is_tensor(x) or not can_stand_for(x, node):  # type: ignore[arg-type]
        return None
    low, high = bounds(x)
    if is_op(node, aten.leaky_relu, aten.abs):
        return x if low >= 0 else None
    clamp = read_clamp(node)
    return x if clamp is not None and clamp[1] <= low and high <= clamp[2] else None


NEEDLESS_CLAMP = Rewrite(
    "needless_clamp", Traits("E"), (*_CLAMPS, aten.leaky_relu.default, aten.abs.default), _match_needless, _emit_existing,
    "relu, leaky_relu, abs or clamp of values that the operators before already keep in range  ->  those values.",
    together=True,
)  # fmt: skip


def _match_clamps(node: fx.Node) -> Any:
    outer = read_clamp(node)
    inner = read_clamp(outer[0]) if outer is not None else None
    if outer is None or inner is None or only_user(outer[0]) is not node:
        return None
    low, high = (min(max(end, outer[1]), outer[2]) for end in inner[1:])
    return inner[0], low, high


def _emit_clamp(e: Edit, node: fx.Node, match: tuple[fx.Node, float, float]) -> None:
    x, low, high = match
    ends = (None if low == -math.inf else low, None if high == math.inf else high)
    e.replace(node, e.before(node).call(aten.clamp.default, x, *ends))


MERGE_CLAMPS = Rewrite(
    "merge_clamps", Traits("E"), _CLAMPS, _match_clamps, _emit_clamp,
    "clamp(clamp(x, a, b), c, d)  ->  clamp(x, min(max(a, c), d), min(max(b, c), d)); relu, relu6 and hardtanh are clamps.",
)  # fmt: skip


def _match_scaled_clamp(node: fx.Node) -> Any:
    outer = read_clamp(node)
    if outer is None or only_user(outer[0]) is not node:
        return None
    x, a, b, calls = read_affine_chain(outer[0])
    if calls == 0 or a <= 0 or read_clamp(x) is None or only_user(x) is None:
        return None
    return outer, (x, a, b)


def _emit_scaled_clamp(e: Edit, node: fx.Node, match: Any) -> None:
    (_, low, high), (x, a, b) = match
    at = e.before(node)
    ends = (None if low == -math.inf else (low - b) / a, None if high == math.inf else (high - b) / a)
    new = at.call(aten.clamp.default, x, *ends)
    new = at.call(aten.mul.Tensor, new, a) if a != 1 else new
    e.replace(node, at.call(aten.add.Tensor, new, b) if b != 0 else new)


CLAMP_BEFORE_SCALE = Rewrite(
    "clamp_before_scale", Traits("E"), _CLAMPS, _match_scaled_clamp, _emit_scaled_clamp,
    "clamp(a * clamp(x) + b, c, d)  ->  a * clamp(clamp(x), (c - b) / a, (d - b) / a) + b for a > 0, so that the two clamps can merge.",
)  # fmt: skip


def _match_leaky(node: fx.Node) -> Any:
    inner = node.args[0]
    if not is_op(inner, aten.leaky_relu.default) or only_user(inner) is not node:  # type: ignore[arg-type]
        return None
    slopes = [argument(call, "negative_slope") for call in (node, inner)]  # type: ignore[arg-type]
    return (inner.args[0], slopes[0] * slopes[1]) if min(slopes) >= 0 else None  # type: ignore[union-attr]


def _emit_leaky(e: Edit, node: fx.Node, match: tuple[fx.Node, float]) -> None:
    e.replace(node, e.before(node).call(aten.leaky_relu.default, *match))


MERGE_LEAKY = Rewrite(
    "merge_leaky_relu", Traits("E"), (aten.leaky_relu.default,), _match_leaky, _emit_leaky,
    "leaky_relu(leaky_relu(x, a), b)  ->  leaky_relu(x, a * b) for a, b >= 0: the sign never changes.",
)  # fmt: skip


# --- views ---------------------------------------------------------------------------------------------------------------

_RESHAPES = (aten.view.default, aten.reshape.default, aten.flatten.using_ints)


def _match_views(node: fx.Node) -> Any:
    inner = node.args[0]
    if not is_op(inner, *_RESHAPES, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims):
        return None
    x = inner.args[0]  # type: ignore[union-attr]
    return x if is_tensor(x) and value(x).is_contiguous() else None  # type: ignore[arg-type]


def _emit_view(e: Edit, node: fx.Node, x: fx.Node) -> None:
    e.replace(node, e.before(node).call(aten.reshape.default, x, list(shape(node))))


MERGE_VIEWS = Rewrite(
    "merge_views", Traits("E"), _RESHAPES, _match_views, _emit_view,
    "x.view(a).view(b)  ->  x.reshape(b), for x contiguous.",
    together=True,
)  # fmt: skip

TECHNIQUES = (IDENTITY, BROADCAST, SIZE_ONE, SIZE_ONE_SOFTMAX, NEEDLESS_CLAMP, MERGE_CLAMPS, CLAMP_BEFORE_SCALE, MERGE_LEAKY, MERGE_VIEWS)
