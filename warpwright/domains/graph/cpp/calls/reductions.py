"""Sums, means, extrema, softmax, norms and losses."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp import firsts
from warpwright.domains.graph.cpp.calls.reading import float_result, name_of, read_float
from warpwright.domains.graph.cpp.program import Axes, Program, Unsupported, Value
from warpwright.domains.graph.ir import argument, aten, is_op, shape


def _source(p: Program, node: fx.Node) -> Value:
    """Return the tensor that a reduction or a normalisation reads."""
    arg = node.args[0]
    if arg not in p.env and (not isinstance(arg, fx.Node) or shape(arg) != tuple(p.size(d) for d in p.dims)):
        raise Unsupported("a reduction of a tensor that is not the whole iteration space")
    return read_float(p, arg, p.dims)


def _dims(node: fx.Node, rank: int, name: str = "dim") -> list[int]:
    try:
        dims = argument(node, name)
    except KeyError:
        dims = None
    dims = [dims] if isinstance(dims, int) else dims
    return sorted(d % rank for d in dims) if dims else list(range(rank))


def _keep(node: fx.Node) -> bool:
    try:
        return bool(argument(node, "keepdim"))
    except KeyError:
        return False


def _dropped(p: Program, x: Value, dims: list[int], keep: bool) -> Value:
    return x if keep else p.with_axes(x, tuple(dim for i, dim in enumerate(x.axes) if i not in dims))


def reduction(p: Program, node: fx.Node) -> Value:
    float_result(node)
    x = _source(p, node)
    dims = _dims(node, len(x.axes))
    name = name_of(node)
    known = next((v for v in p.values if v.kind == "reduce" and v.text == "Moments" and v.args == (x,)), None)
    if name == "mean" and known is not None and known.axes == tuple(() if i in dims else dim for i, dim in enumerate(x.axes)):
        result = p.part(known, "mean")
    elif name == "logsumexp":
        top = p.reduce("Max", x, dims)
        top = p.op("pick(vabs({0}) == INF, splat(0.f), {0})", top)
        total = p.reduce("Sum", p.op("vexp({0} - {1})", x, top, cost=17), dims)
        result = p.op("vlog({0}) + {1}", total, top)
    elif name in ("var", "std"):
        moments = p.reduce("Moments", x, dims)
        result = p.op("{0} / {1}", p.part(moments, "m2"), p.const(max(p.count(x, dims) - _correction(node), 0)))
        result = p.op("vsqrt({0})", result) if name == "std" else result
    elif name == "linalg_vector_norm":
        result = _norm(p, x, dims, argument(node, "ord"))
    elif name in firsts.EXTREMES and (known := firsts.known(p, x, dims, least=name in ("amin", "min"))) is not None:
        result = firsts.extreme(p, known, x)
    else:
        result = p.reduce({"sum": "Sum", "mean": "Sum", "amax": "Max", "max": "Max", "amin": "Min", "min": "Min"}[name], x, dims)
        result = p.op("{0} / {1}", result, p.const(p.count(x, dims))) if name == "mean" else result
    return _dropped(p, result, dims, _keep(node))


def _correction(node: fx.Node) -> float:
    """Return what is taken off the count of a variance: older overloads say whether it is unbiased."""
    if is_op(node, aten.var.correction, aten.std.correction):
        correction = argument(node, "correction")
        return 1 if correction is None else correction  # type: ignore[no-any-return]
    return 1 if argument(node, "unbiased") else 0


def first(p: Program, node: fx.Node) -> Value:
    """argmax, argmin: the first index of the largest or smallest element."""
    x = _source(p, node)
    dims = list(range(len(x.axes))) if argument(node, "dim") is None else [argument(node, "dim") % len(x.axes)]
    if p.count(x, dims) >= 2**31:
        raise Unsupported("places past 2^31")
    if not firsts.is_exact(node.args[0], p.members):
        raise Unsupported("an index that follows from how a call rounds")
    return _dropped(p, p.part(firsts.first(p, x, dims, least=name_of(node) == "argmin"), "place"), dims, _keep(node))


def _norm(p: Program, x: Value, dims: list[int], order: float) -> Value:
    if order == 2:
        return p.op("vsqrt({0})", p.reduce("Sum", p.op("{0} * {0}", x), dims))
    if order == 1:
        return p.reduce("Sum", p.op("vabs({0})", x), dims)
    raise Unsupported(f"a norm of order {order}")


def softmax(p: Program, node: fx.Node) -> Value:
    float_result(node)
    x = _source(p, node)
    dims = [argument(node, "dim") % len(x.axes)]
    shifted = p.op("{0} - {1}", x, p.reduce("Max", x, dims))
    powers = p.op("vexp({0})", shifted, cost=16)
    total = p.reduce("Sum", powers, dims)
    if name_of(node) == "log_softmax":
        return p.op("{0} - {1}", shifted, p.op("vlog({0})", total))
    return p.op("{0} * {1}", powers, p.op("1.f / {0}", total))


def _normalised(p: Program, x: Value, dims: list[int], eps: float) -> Value:
    moments = p.reduce("Moments", x, dims)
    scale = p.op("1.f / vsqrt({0} / {1} + {2})", p.part(moments, "m2"), p.const(p.count(x, dims)), p.const(eps))
    return p.op("({0} - {1}) * {2}", x, p.part(moments, "mean"), scale, cost=2)


def _affine(p: Program, x: Value, weight: Any, bias: Any, axes: Axes) -> Value:
    """Return x * weight + bias, the two being tensors over `axes`."""
    for text, parameter in (("{0} * {1}", weight), ("{0} + {1}", bias)):
        if parameter is not None:
            x = p.op(text, x, p.load(parameter, axes))
    return x


def layer_norm(p: Program, node: fx.Node) -> Value:
    float_result(node)
    x = _source(p, node)
    dims = list(range(len(x.axes) - len(argument(node, "normalized_shape")), len(x.axes)))
    axes = tuple(x.axes[d] for d in dims)
    if name_of(node) == "layer_norm":
        return _affine(p, _normalised(p, x, dims, argument(node, "eps")), argument(node, "weight"), argument(node, "bias"), axes)
    eps = argument(node, "eps")
    if eps is None:  # of what torch sums in, which of 16 bits is float32 too
        eps = torch.finfo(torch.float32).eps
    mean = p.op("{0} / {1}", p.reduce("Sum", p.op("{0} * {0}", x), dims), p.const(p.count(x, dims)))
    scale = p.op("1.f / vsqrt({0} + {1})", mean, p.const(eps))
    return _affine(p, p.op("{0} * {1}", x, scale), argument(node, "weight"), None, axes)


def group_norm(p: Program, node: fx.Node) -> Value:
    """Group norm and instance norm: the channel dimension is two axes, group and channel in the group."""
    float_result(node)
    x = _source(p, node)
    if name_of(node) == "group_norm":
        groups = argument(node, "num_groups")
    else:
        groups = shape(node)[1]
        if not argument(node, "use_input_stats") or argument(node, "running_mean") is not None:
            raise Unsupported("an instance norm with running statistics")
    if len(x.axes) < 2 or len(x.axes[1]) != 2 or p.sizes[x.axes[1][0]] != groups:
        raise Unsupported("a channel dimension that is not split into groups")
    outer, inner = x.axes[1]
    split = ((*x.axes[:1], (outer,), (inner,), *x.axes[2:]))
    grouped = p.with_axes(x, split)
    normal = _normalised(p, grouped, list(range(2, len(split))), argument(node, "eps"))
    for text, parameter in (("{0} * {1}", argument(node, "weight")), ("{0} + {1}", argument(node, "bias"))):
        if parameter is not None:
            loaded = p.with_axes(p.load(parameter, ((outer, inner),)), ((), (outer,), (inner,), *[()] * (len(split) - 3)))
            normal = p.op(text, normal, loaded)
    return p.with_axes(normal, x.axes)


def loss(p: Program, node: fx.Node) -> Value:
    """Losses: mse, l1, smooth l1, huber, and the Kullback-Leibler divergence."""
    float_result(node)
    if any(shape(a) != tuple(p.size(d) for d in p.dims) for a in node.args[:2] if isinstance(a, fx.Node)):
        raise Unsupported("a loss of tensors that are not the whole iteration space")
    a, b = (read_float(p, arg, p.dims) for arg in node.args[:2])
    d = p.op("{0} - {1}", a, b)
    name = name_of(node)
    if name == "kl_div":
        text = "vexp({1}) * ({1} - {0})" if argument(node, "log_target") else "{1} * vlog({1} == 0.f ? splat(1.f) : {1}) - {1} * {0}"
        each = p.op(text, a, b, cost=24)
    elif name == "mse_loss":
        each = p.op("{0} * {0}", d)
    elif name == "l1_loss":
        each = p.op("vabs({0})", d)
    else:
        beta = argument(node, "beta" if name == "smooth_l1_loss" else "delta")
        text = "(vabs({0}) < {1} ? 0.5f * {0} * {0} / {1} : vabs({0}) - 0.5f * {1})"
        if name == "huber_loss":
            text = "(vabs({0}) <= {1} ? 0.5f * {0} * {0} : {1} * (vabs({0}) - 0.5f * {1}))"
        if beta == 0:
            text = "vabs({0})"
        each = p.op(text, d, p.const(beta), cost=8)
    reduction = argument(node, "reduction")
    if reduction == 0:
        return each
    dims = list(range(len(each.axes)))
    total = p.reduce("Sum", each, dims)
    total = p.op("{0} / {1}", total, p.const(p.count(each, dims))) if reduction == 1 else total
    return p.with_axes(total, ())
