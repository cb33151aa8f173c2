"""Monotone steps move past maxima and minima, so that they are done once for each result and not once for each element.

For a nondecreasing f, max f(x_i) = f(max x_i), and the same for minima, also in floating point: f is applied to the very element that wins.
A factor below zero exchanges maximum and minimum. A quasi-convex h (falling, then rising: GELU, SiLU, Mish, Hardswish) has its
maximum over a set at the set's least or greatest element. Source: notes section 2.5, "monotone or quasi-convex commutation".
"""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten, dtype, is_op, is_tensor, only_user, shape
from warpwright.domains.graph.techniques.algebra.ranges import read_affine
from warpwright.domains.graph.techniques.convolutions.convolution import read, same_form
from warpwright.domains.graph.techniques.reduction import MAX_POOLS
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

_NONDECREASING = (
    aten.relu.default, aten.relu6.default, aten.hardtanh.default, aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default,
    aten.sigmoid.default, aten.hardsigmoid.default, aten.log_sigmoid.default, aten.tanh.default, aten.elu.default, aten.celu.default,
    aten.selu.default, aten.softplus.default, aten.exp.default, aten.expm1.default, aten.erf.default, aten.atan.default,
)  # fmt: skip
_ADAPTIVE = (aten.adaptive_max_pool1d.default, aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
_OVER_AXES = (aten.amax.default, aten.amin.default)
_EXTREMA = (*MAX_POOLS, *_OVER_AXES)


def _axes(node: fx.Node) -> tuple[int, ...]:
    """Return the axes over which a maximum, a minimum or a max pool is taken."""
    x: Any = node.args[0]
    rank = len(shape(x))
    if is_op(node, *MAX_POOLS):
        d = MAX_POOLS.index(node.target) + 1
        return tuple(range(rank - d, rank))
    dim = argument(node, "dim")
    return tuple(sorted(a % rank for a in ([dim] if isinstance(dim, int) else dim))) or tuple(range(rank))


def _is_nondecreasing(node: fx.Node) -> bool:
    """Is this call a nondecreasing function of its first argument, all else being numbers?"""
    if not is_tensor(node.args[0]) or any(isinstance(a, fx.Node) for a in node.args[1:]) or node.kwargs.keys() & {"out"}:
        return False
    if is_op(node, aten.leaky_relu.default):
        return bool(argument(node, "negative_slope") >= 0)
    if is_op(node, aten.elu.default, aten.celu.default):
        return bool(argument(node, "alpha") >= 0)
    return is_op(node, *_NONDECREASING)


def _constant_along(item: Any, axes: tuple[int, ...], rank: int) -> bool:
    if not is_tensor(item):
        return False
    sizes = (1,) * (rank - len(shape(item))) + shape(item)
    return all(sizes[a] == 1 for a in axes)


def _match(node: fx.Node) -> Any:
    """Return the call to move, and the position of the argument that varies: alone (0), or beside a constant summand."""
    inner: Any = node.args[0]
    if not is_tensor(inner) or inner.op != "call_function" or only_user(inner) is not node or math.prod(shape(node)) >= math.prod(shape(inner)):
        return None
    if not inner.args or not is_tensor(inner.args[0]) or dtype(inner) != dtype(inner.args[0]) or not dtype(inner).is_floating_point:
        return None
    if _is_nondecreasing(inner):
        return inner, 0, False
    affine = read_affine(inner)
    if affine is not None and affine[1] != 0 and inner.args[0] is affine[0] and not any(a is affine[0] for a in inner.args[1:]):
        swap = affine[1] < 0
        return None if swap and not is_op(node, *_OVER_AXES) else (inner, 0, swap)
    if not is_op(inner, aten.add.Tensor, aten.sub.Tensor):
        return None
    for position in (0, 1) if is_op(inner, aten.add.Tensor) else (0,):
        x, other = inner.args[position], inner.args[1 - position]
        if shape(x) == shape(inner) and dtype(x) == dtype(inner) and _constant_along(other, _axes(node), len(shape(inner))):
            return inner, position, False
    return None


def _emit(e: Edit, node: fx.Node, match: tuple[fx.Node, int, bool]) -> None:
    inner, position, swap = match
    at = e.before(node)
    target: Any = node.target
    rest = node.args[1:]
    if is_op(node, *_OVER_AXES):
        if swap:
            target = aten.amin.default if is_op(node, aten.amax) else aten.amax.default
        rest = (list(_axes(node)), True)
    first = at.call(target, inner.args[position], *rest, **node.kwargs)
    args = list(inner.args)
    args[position] = first
    new = at.call(inner.target, *args, **inner.kwargs)
    e.replace_reshaped(node, new)


EXTREMUM_FIRST = Rewrite(
    "extremum_first", Traits("E"), _EXTREMA, _match, _emit,
    "max_pool(f(x)), amax(f(x)) or amin(f(x)), f nondecreasing (relu, tanh, sigmoid, clamp ..., + c with c constant in each window, * a for a > 0)"
    " -> f of the maximum; for a < 0, amax(a * x) -> a * amin(x).",
)  # fmt: skip

# --- the bias of a convolution -------------------------------------------------------------------------------------------


def _match_bias(node: fx.Node) -> Any:
    conv = read(node.args[0])
    if conv is None or conv.bias is None or only_user(conv.node) is not node or shape(conv.bias) != (conv.channels,):
        return None
    return conv if 0 not in _axes(node) and 1 not in _axes(node) and math.prod(shape(node)) < math.prod(shape(conv.node)) else None


def _emit_bias(e: Edit, node: fx.Node, conv: Any) -> None:
    at = e.before(node)
    bare = same_form(at, conv, conv.x, conv.weight, None)
    rest = (list(_axes(node)), True) if is_op(node, *_OVER_AXES) else node.args[1:]
    first = at.call(node.target, bare, *rest, **node.kwargs)
    new = at.call(aten.add.Tensor, first, at.call(aten.reshape.default, conv.bias, [conv.channels, *[1] * conv.d]))
    e.replace_reshaped(node, new)


BIAS_AFTER_EXTREMUM = Rewrite(
    "bias_after_extremum", Traits("E"), _EXTREMA, _match_bias, _emit_bias,
    "max_pool(conv(x, W, b)) -> max_pool(conv(x, W)) + b, and the same for maxima and minima over spatial axes. Where the library adds the bias in"
    " a pass of its own (cuDNN does), that pass touches fewer elements.",
)  # fmt: skip

# --- quasi-convex functions ----------------------------------------------------------------------------------------------

_QUASI_CONVEX = (aten.gelu.default, aten.silu.default, aten.mish.default, aten.hardswish.default)
_WORTH_IT = 1 << 22
"""Elements below which two reductions cost more launches than the function's own pass."""


def _match_convex(node: fx.Node) -> Any:
    inner: Any = node.args[0]
    if not is_op(inner, *_QUASI_CONVEX) or only_user(inner) is not node or math.prod(shape(inner)) < max(_WORTH_IT, 8 * math.prod(shape(node))):
        return None
    return inner


def _emit_convex(e: Edit, node: fx.Node, inner: fx.Node) -> None:
    at = e.before(node)
    ends = [at.call(op, inner.args[0], *node.args[1:], **node.kwargs) for op in (aten.amax.default, aten.amin.default)]
    values = [at.call(inner.target, end, *inner.args[1:], **inner.kwargs) for end in ends]
    e.replace(node, at.call(aten.maximum.default, *values))


MAXIMUM_OF_QUASI_CONVEX = Rewrite(
    "maximum_of_quasi_convex", Traits("E"), (aten.amax.default,), _match_convex, _emit_convex,
    "amax(h(x)), h one of gelu, silu, mish, hardswish -> max(h(amax(x)), h(amin(x))): h falls, then rises.",
)  # fmt: skip

TECHNIQUES = (EXTREMUM_FIRST, BIAS_AFTER_EXTREMUM, MAXIMUM_OF_QUASI_CONVEX)
