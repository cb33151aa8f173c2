"""Aten calls as element-wise programs: one table of functions, one of calls that are several steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp import firsts, resampling, sums
from warpwright.domains.graph.cpp.program import FLOAT, FLOATS, MASK, PLACE, Axes, Program, Unsupported, Value
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

Builder = Callable[[Program, fx.Node], Value]

_UNARY: Mapping[str, tuple[str, int]] = {
    "relu": ("vclamp({0}, 0.f, INF)", 2), "relu6": ("vclamp({0}, 0.f, 6.f)", 2), "neg": ("-{0}", 1), "abs": ("vabs({0})", 1),
    "exp": ("vexp({0})", 16), "expm1": ("vexpm1({0})", 20), "log": ("vlog({0})", 20), "log1p": ("vlog1p({0})", 40), "sqrt": ("vsqrt({0})", 8),
    "rsqrt": ("1.f / vsqrt({0})", 14), "reciprocal": ("1.f / {0}", 6), "square": ("{0} * {0}", 1), "tanh": ("vtanh({0})", 32),
    "sigmoid": ("vsigmoid({0})", 24), "silu": ("vsilu({0})", 24), "mish": ("vmish({0})", 28), "erf": ("verf({0})", 34),
    "hardswish": ("{0} * vclamp({0} + 3.f, 0.f, 6.f) * (1.f / 6.f)", 5), "hardsigmoid": ("vclamp({0} + 3.f, 0.f, 6.f) * (1.f / 6.f)", 4),
    "sign": ("vsign({0})", 3), "clone": ("{0}", 0), "contiguous": ("{0}", 0), "detach": ("{0}", 0), "alias": ("{0}", 0),
    "selu": ("1.05070098f * ({0} > 0.f ? {0} : 1.67326324f * vexpm1({0}))", 24), "softsign": ("{0} / (1.f + vabs({0}))", 8),
    "log_sigmoid": ("-vsoftplus(-{0})", 60), "sin": ("sinf({0})", 30), "cos": ("cosf({0})", 30), "atan": ("atanf({0})", 30),
    "tan": ("tanf({0})", 40), "asin": ("asinf({0})", 30), "acos": ("acosf({0})", 30), "sinh": ("sinhf({0})", 30), "cosh": ("coshf({0})", 30),
    "erfc": ("erfcf({0})", 40), "log10": ("log10f({0})", 20), "round": ("rintf({0})", 1),
    "exp2": ("exp2f({0})", 16), "log2": ("log2f({0})", 20), "floor": ("floorf({0})", 1), "ceil": ("ceilf({0})", 1), "trunc": ("truncf({0})", 1),
}  # fmt: skip
"""aten name of a function of one tensor -> C++ expression and cycles."""

_BINARY: Mapping[str, tuple[str, int]] = {
    "add": ("{0} + {1}", 1), "sub": ("{0} - {1}", 1), "mul": ("{0} * {1}", 1), "multiply": ("{0} * {1}", 1), "div": ("{0} / {1}", 6),
    "rsub": ("{1} - {0}", 1), "maximum": ("vmax({0}, {1})", 3), "minimum": ("vmin({0}, {1})", 3), "max": ("vmax({0}, {1})", 3),
    "min": ("vmin({0}, {1})", 3),
}  # fmt: skip
_COMPARE = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}


def _name(node: fx.Node) -> str:
    return node.target.overloadpacket.__name__ if isinstance(node.target, torch._ops.OpOverload) else ""


def _float_result(node: fx.Node) -> None:
    if value(node).dtype not in FLOATS:
        raise Unsupported(f"a result of {value(node).dtype}")


def _read_float(p: Program, arg: Any, near: Axes) -> Value:
    """Return an argument that has to be float32 or a number."""
    if is_tensor(arg) and value(arg).dtype not in FLOATS and arg.meta.get("number") is None:
        raise Unsupported("arithmetic on tensors that are not float32")
    return p.read(arg, near)


# --- element-wise --------------------------------------------------------------------------------------------------------


def _unary(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    text, cost = _UNARY[_name(node)]
    return p.op(text, _read_float(p, node.args[0], p.axes_of_result(node, node.args)), cost=cost)


def _binary(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    if "rounding_mode" in node.kwargs:
        raise Unsupported("division with rounding")
    near = p.axes_of_result(node, node.args)
    vectors = _name(node) in ("maximum", "minimum", "max", "min")
    a, b = (_splat(p, arg, near) if vectors else _read_float(p, arg, near) for arg in node.args[:2])
    alpha = argument(node, "alpha") if _name(node) in ("add", "sub", "rsub") else 1
    text, cost = _BINARY[_name(node)]
    if alpha != 1:
        b, a = (b, p.op("{0} * {1}", a, p.const(alpha))) if _name(node) == "rsub" else (p.op("{0} * {1}", b, p.const(alpha)), a)
    if _name(node) == "div" and b.kind == "const" and _is_power_of_two(node.args[1]):
        return p.op("{0} * {1}", a, p.const(1 / float(node.args[1])))  # type: ignore[arg-type]
    return p.op(text, a, b, cost=cost)


def _is_power_of_two(number: Any) -> bool:
    return isinstance(number, int | float) and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5


def _compare(p: Program, node: fx.Node) -> Value:
    near = p.axes_of_result(node, node.args)
    a, b = node.args[:2]
    operands: tuple[Any, ...] = (a, b)
    if not all(value(x).dtype in FLOATS if is_tensor(x) else isinstance(x, int | float) for x in operands) and b != 0:
        raise Unsupported("a comparison of integers other than with 0, which float32 need not hold")
    return p.op(f"({{0}} {_COMPARE[_name(node)]} {{1}})", p.read(a, near), p.read(b, near), type=MASK)


def _mask(p: Program, arg: Any, near: Axes) -> Value:
    mask = p.read(arg, near)
    return mask if mask.type == MASK else p.op("({0} != 0.f)", mask, type=MASK)


def _where(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    near = p.axes_of_result(node, node.args)
    condition, a, b = node.args
    return p.op("pick({0}, {1}, {2})", _mask(p, condition, near), _splat(p, a, near), _splat(p, b, near))


def _splat(p: Program, arg: Any, near: Axes) -> Value:
    read = _read_float(p, arg, near)
    return p.op("{0}", read) if read.kind == "const" else read


def _masked_fill(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    near = p.axes_of_result(node, node.args)
    x, mask, number = node.args
    return p.op("pick({0}, {1}, {2})", _mask(p, mask, near), _splat(p, number, near), _read_float(p, x, near))


def _convert(p: Program, node: fx.Node) -> Value:
    x = p.read(node.args[0], p.axes_of_result(node, node.args))
    if x.type == PLACE:
        raise Unsupported("arithmetic on the index of an element")
    if value(node).dtype in FLOATS:
        return p.op("pick({0}, splat(1.f), splat(0.f))", x, type=FLOAT) if x.type == MASK else x
    if value(node).dtype == torch.bool:
        return x if x.type == MASK else p.op("({0} != 0.f)", x, type=MASK)
    raise Unsupported(f"conversion to {value(node).dtype}")


def _logical_not(p: Program, node: fx.Node) -> Value:
    near = p.axes_of_result(node, node.args)
    return p.op("({0} == 0)", _mask(p, node.args[0], near), type=MASK)


def _clamp(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    x = _read_float(p, node.args[0], p.axes_of_result(node, node.args[:1]))
    name = _name(node)
    low = argument(node, "min_val") if name == "hardtanh" else argument(node, "min") if name != "clamp_max" else None
    high = argument(node, "max_val") if name == "hardtanh" else argument(node, "max") if name != "clamp_min" else None
    if any(isinstance(end, fx.Node) for end in (low, high)):
        raise Unsupported("a clamp between tensors")
    return p.op("vclamp({0}, {1}, {2})", x, p.const(-math.inf if low is None else low), p.const(math.inf if high is None else high), cost=2)


_POWERS: Mapping[float, tuple[str, int]] = {
    1: ("{0}", 0), 2: ("{0} * {0}", 1), 3: ("{0} * {0} * {0}", 2), 0.5: ("vsqrt({0})", 8), -0.5: ("1.f / vsqrt({0})", 14), -1: ("1.f / {0}", 6),
}  # fmt: skip


def _power(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    exponent: Any = node.args[1]
    text, cost = _POWERS.get(exponent, ("", 0))
    if not text:
        raise Unsupported(f"the power {exponent}")
    return p.op(text, _read_float(p, node.args[0], p.axes_of_result(node, node.args[:1])), cost=cost)


def _with_parameters(p: Program, node: fx.Node) -> Value:
    """Activations with numbers in them."""
    _float_result(node)
    x = _read_float(p, node.args[0], p.axes_of_result(node, node.args[:1]))
    name = _name(node)
    if name == "leaky_relu":
        return p.op("({0} > 0.f ? {0} : {0} * {1})", x, p.const(argument(node, "negative_slope")), cost=2)
    if name == "gelu":
        return p.op("vgelu({0})", x, cost=44) if argument(node, "approximate") == "none" else p.op("vgelu_tanh({0})", x, cost=28)
    if name == "elu":
        alpha, scale, inner = (argument(node, n) for n in ("alpha", "scale", "input_scale"))
        text = "({0} > 0.f ? {0} * {1} : {2} * vexpm1({0} * {3}))"
        return p.op(text, x, p.const(scale), p.const(alpha * scale), p.const(inner), cost=24)
    beta, threshold = argument(node, "beta"), argument(node, "threshold")  # softplus
    if beta == 1:
        return p.op("({0} > {1} ? {0} : vsoftplus({0}))", x, p.const(threshold), cost=60)
    text = "({0} > {1} ? {2} : vsoftplus({0}) * {3})"
    return p.op(text, p.op("{0} * {1}", x, p.const(beta)), p.const(threshold), x, p.const(1 / beta), cost=60)


# --- reductions ----------------------------------------------------------------------------------------------------------


def _source(p: Program, node: fx.Node) -> Value:
    """Return the tensor that a reduction or a normalisation reads."""
    arg = node.args[0]
    if arg not in p.env and (not isinstance(arg, fx.Node) or shape(arg) != tuple(p.size(d) for d in p.dims)):
        raise Unsupported("a reduction of a tensor that is not the whole iteration space")
    return _read_float(p, arg, p.dims)


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


def _reduction(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    x = _source(p, node)
    dims = _dims(node, len(x.axes))
    name = _name(node)
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


def _first(p: Program, node: fx.Node) -> Value:
    """argmax, argmin: the first index of the largest or smallest element."""
    x = _source(p, node)
    dims = list(range(len(x.axes))) if argument(node, "dim") is None else [argument(node, "dim") % len(x.axes)]
    if p.count(x, dims) >= 2**31:
        raise Unsupported("places past 2^31")
    if not firsts.is_exact(node.args[0], p.members):
        raise Unsupported("an index that follows from how a call rounds")
    return _dropped(p, p.part(firsts.first(p, x, dims, least=_name(node) == "argmin"), "place"), dims, _keep(node))


def _norm(p: Program, x: Value, dims: list[int], order: float) -> Value:
    if order == 2:
        return p.op("vsqrt({0})", p.reduce("Sum", p.op("{0} * {0}", x), dims))
    if order == 1:
        return p.reduce("Sum", p.op("vabs({0})", x), dims)
    raise Unsupported(f"a norm of order {order}")


def _softmax(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    x = _source(p, node)
    dims = [argument(node, "dim") % len(x.axes)]
    shifted = p.op("{0} - {1}", x, p.reduce("Max", x, dims))
    powers = p.op("vexp({0})", shifted, cost=16)
    total = p.reduce("Sum", powers, dims)
    if _name(node) == "log_softmax":
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


def _layer_norm(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    x = _source(p, node)
    dims = list(range(len(x.axes) - len(argument(node, "normalized_shape")), len(x.axes)))
    axes = tuple(x.axes[d] for d in dims)
    if _name(node) == "layer_norm":
        return _affine(p, _normalised(p, x, dims, argument(node, "eps")), argument(node, "weight"), argument(node, "bias"), axes)
    eps = argument(node, "eps")
    if eps is None and value(node).dtype != torch.float32:
        raise Unsupported("an RMS norm whose eps follows from its type")
    mean = p.op("{0} / {1}", p.reduce("Sum", p.op("{0} * {0}", x), dims), p.const(p.count(x, dims)))
    scale = p.op("1.f / vsqrt({0} + {1})", mean, p.const(torch.finfo(torch.float32).eps if eps is None else eps))
    return _affine(p, p.op("{0} * {1}", x, scale), argument(node, "weight"), None, axes)


def _group_norm(p: Program, node: fx.Node) -> Value:
    """Group norm and instance norm: the channel dimension is two axes, group and channel in the group."""
    _float_result(node)
    x = _source(p, node)
    if _name(node) == "group_norm":
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


def _loss(p: Program, node: fx.Node) -> Value:
    """Losses: mse, l1, smooth l1, huber, and the Kullback-Leibler divergence."""
    _float_result(node)
    if any(shape(a) != tuple(p.size(d) for d in p.dims) for a in node.args[:2] if isinstance(a, fx.Node)):
        raise Unsupported("a loss of tensors that are not the whole iteration space")
    a, b = (_read_float(p, arg, p.dims) for arg in node.args[:2])
    d = p.op("{0} - {1}", a, b)
    name = _name(node)
    if name == "kl_div":
        text = "vexp({1}) * ({1} - {0})" if argument(node, "log_target") else "({1} == 0.f ? splat(0.f) : {1} * vlog({1})) - {1} * {0}"
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


def _view(p: Program, node: fx.Node) -> Value:
    """Views that only add or drop dimensions of size 1."""
    arg = node.args[0]
    if arg not in p.env:
        raise Unsupported("a view of a tensor from outside")
    x = p.env[arg]  # type: ignore[index]
    long = iter([dim for dim in x.axes if p.size(dim) != 1])
    axes = []
    for size in shape(node):
        dim = next(long, ()) if size != 1 else ()
        if size != 1 and p.size(dim) != size:
            raise Unsupported("a view that regroups dimensions")
        axes.append(dim)
    return p.with_axes(x, tuple(axes))


# --- other places --------------------------------------------------------------------------------------------------------

MOST_PARTS, COSTLY = 8, 120
"""Parts that one kernel puts together, each of which every element passes; and the cycles that all may take to compute."""


def _cat(p: Program, node: fx.Node) -> Value:
    """Parts along a dimension: each is computed for all elements, and read where it lies."""
    _float_result(node)
    parts: Any = node.args[0]
    rank = len(shape(node))
    d = argument(node, "dim") % rank
    dims = p.axes_for(shape(node), p.dims)
    if len(parts) > MOST_PARTS or any(not is_tensor(part) or len(shape(part)) != rank or value(part).dtype != value(node).dtype for part in parts):
        raise Unsupported("many parts, or parts of several kinds")
    joined: Value | None = None
    cost, end = 0, shape(node)[d]
    for part in reversed(parts):
        start = end - shape(part)[d]
        x = p.part_of(part, partial(_build, p), [(dims[d], start, end - start)])
        joined = x if joined is None else p.op("pick({0}, {1}, {2})", p.within(dims[d], start, end), x, joined)
        cost, end = cost + x.cost, start
    if joined is None or cost > COSTLY:
        raise Unsupported("parts that take long to compute")
    return p.op("{0}", joined)


def _build(p: Program, node: fx.Node) -> Value:
    return BUILDERS[node.target](p, node)


def _pad(p: Program, node: fx.Node) -> Value:
    """A part, and a number around it."""
    _float_result(node)
    x: Any = node.args[0]
    pads: Any = node.args[1]
    mode = argument(node, "mode") if _name(node) == "pad" else "constant"
    number = argument(node, "value")
    if mode != "constant" or not isinstance(x, fx.Node) or not isinstance(pads, list | tuple) or min([0, *pads]) < 0:
        raise Unsupported("padding other than by a constant")
    dims = p.axes_for(shape(node), p.dims)
    windows = []
    for back in range(len(pads) // 2):
        before, after = pads[2 * back : 2 * back + 2]
        if before or after:
            windows.append((dims[-1 - back], before, shape(x)[-1 - back]))
    padded = p.part_of(x, partial(_build, p), windows)
    for dim, start, size in windows:
        padded = p.op("pick({0}, {1}, {2})", p.within(dim, start, start + size), padded, p.op("{0}", p.const(number or 0)))
    return padded


def _roll(p: Program, node: fx.Node) -> Value:
    _float_result(node)
    x, shifts, dims = node.args[0], node.args[1], argument(node, "dims")
    if not isinstance(x, fx.Node) or not dims or len(set(dims)) != len(dims):
        raise Unsupported("a roll of the whole as one row")
    rank = len(shape(x))
    return p.rolled(x, [(d % rank, shift) for d, shift in zip(dims, shifts, strict=True) if shift % shape(x)[d]])  # type: ignore[arg-type]


def _gather(p: Program, node: fx.Node) -> Value:
    """Embedding, index_select, and indexing by tensors that stand next to one another."""
    _float_result(node)
    x: Any = node.args[0]
    index_list: Any = node.args[1]
    if _name(node) == "index":
        chosen = {d: index for d, index in enumerate(index_list) if index is not None}
    elif _name(node) == "index_select":
        chosen = {index_list % len(shape(x)): node.args[2]}
    else:
        chosen = {0: index_list}
    first, count, sizes = min(chosen), len(chosen), shape(x)
    if list(chosen) != list(range(first, first + count)) or not all(map(is_tensor, chosen.values())):
        raise Unsupported("indexing by tensors that stand apart")
    shared = tuple(torch.broadcast_shapes(*map(shape, chosen.values())))
    axes = p.axes_for((*sizes[:first], *shared, *sizes[first + count :]), p.dims)
    over = axes[first : first + len(shared)]
    own = (*axes[:first], *((),) * count, *axes[first + len(shared) :])
    indices = [(d, index, p.axes_for(shape(index), over)) for d, index in chosen.items()]
    return p.gathered(x, axes, own, indices, signed=_name(node) == "index")


def _gather_along(p: Program, node: fx.Node) -> Value:
    """torch.gather: an index for each element."""
    _float_result(node)
    x: Any = node.args[0]
    index: Any = node.args[2]
    sizes, d = shape(x), argument(node, "dim") % len(shape(x))
    if any(one != other for i, (one, other) in enumerate(zip(sizes, shape(index), strict=True)) if i != d):
        raise Unsupported("a gather from a part")
    axes = p.axes_for(shape(index), p.dims)
    return p.gathered(x, axes, (*axes[:d], (), *axes[d + 1 :]), [(d, index, axes)], signed=False)


_GROUPS: tuple[tuple[Builder, tuple[Any, ...]], ...] = (
    (_unary, tuple(getattr(aten, name).default for name in _UNARY if hasattr(aten, name))),
    (_binary, (
        aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor,
        aten.div.Tensor, aten.div.Scalar, aten.rsub.Scalar, aten.maximum.default, aten.minimum.default, aten.max.other, aten.min.other,
    )),
    (_compare, tuple(getattr(getattr(aten, name), kind) for name in _COMPARE for kind in ("Scalar", "Tensor"))),
    (_where, (aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf)),
    (_masked_fill, (aten.masked_fill.Scalar,)),
    (_convert, (aten.to.dtype,)),
    (_logical_not, (aten.logical_not.default,)),
    (_clamp, (aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, aten.hardtanh.default)),
    (_power, (aten.pow.Tensor_Scalar,)),
    (_with_parameters, (aten.leaky_relu.default, aten.gelu.default, aten.elu.default, aten.softplus.default)),
    (_reduction, (
        aten.sum.dim_IntList, aten.sum.default, aten.mean.dim, aten.mean.default, aten.amax.default, aten.amin.default, aten.max.default,
        aten.min.default, aten.logsumexp.default, aten.linalg_vector_norm.default,
        aten.var.correction, aten.var.dim, aten.var.default, aten.std.correction, aten.std.dim, aten.std.default,
    )),
    (_first, firsts.INDICES),
    (_softmax, (aten.softmax.int, aten.log_softmax.int)),
    (_layer_norm, (aten.layer_norm.default, aten.rms_norm.default)),
    (_group_norm, (aten.group_norm.default, aten.instance_norm.default)),
    (_loss, (aten.mse_loss.default, aten.l1_loss.default, aten.smooth_l1_loss.default, aten.huber_loss.default, aten.kl_div.default)),
    (_cat, (aten.cat.default, aten.concat.default)),
    (_pad, (aten.pad.default, aten.constant_pad_nd.default)),
    (_roll, (aten.roll.default,)),
    (_gather, (aten.embedding.default, aten.index_select.default, aten.index.Tensor)),
    (_gather_along, (aten.gather.default,)),
    (resampling.nearest, (*resampling.NEAREST, *resampling.NEAREST_EXACT)),
    (resampling.linear, resampling.LINEAR),
    (sums.added, sums.SUMS),
    (_view, (aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default, aten.view.default, aten.reshape.default)),
)  # fmt: skip
BUILDERS: dict[Any, Builder] = {op: build for build, ops in _GROUPS for op in ops}
"""aten overload -> how it is written as a program."""

_OF_ELEMENTS = (_unary, _binary, _compare, _where, _masked_fill, _convert, _logical_not, _clamp, _power, _with_parameters)
VIEWS = _GROUPS[-1][1]
PARTS = (aten.cat.default, aten.concat.default, aten.pad.default, aten.constant_pad_nd.default)
"""Calls whose arguments are parts of their results."""
MOVES = (*PARTS, aten.roll.default, aten.embedding.default, aten.index_select.default, aten.index.Tensor, aten.gather.default)
"""Calls that only put elements in other places. Kernels for a GPU take them in."""
GPU_ONLY = frozenset((
    *MOVES, *resampling.RESAMPLED, *sums.SUMS, *firsts.INDICES,
    *(getattr(aten, name).default for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "erfc")),
    *(getattr(aten, name).default for name in ("exp2", "log2", "log10", "round", "floor", "ceil", "trunc")),
))  # fmt: skip
ELEMENTWISE = frozenset(op for build, ops in _GROUPS if build in _OF_ELEMENTS for op in ops) - GPU_ONLY
COPIES = (aten.clone.default, aten.contiguous.default, aten.detach.default, aten.alias.default, aten.to.dtype)
