"""Functions of the elements of one, two or three tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.calls.reading import float_result, name_of, read_float
from warpwright.domains.graph.cpp.program import FLOAT, FLOATS, MASK, PLACE, Axes, Program, Unsupported, Value
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, value

UNARY: Mapping[str, tuple[str, int]] = {
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
HELD = 1 << 24
"""float32 holds all integers up to here."""
COMPARE = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}




def unary(p: Program, node: fx.Node) -> Value:
    float_result(node)
    text, cost = UNARY[name_of(node)]
    return p.op(text, read_float(p, node.args[0], p.axes_of_result(node, node.args)), cost=cost)


def binary(p: Program, node: fx.Node) -> Value:
    float_result(node)
    if "rounding_mode" in node.kwargs:
        raise Unsupported("division with rounding")
    near = p.axes_of_result(node, node.args)
    vectors = name_of(node) in ("maximum", "minimum", "max", "min")
    a, b = (splat(p, arg, near) if vectors else read_float(p, arg, near) for arg in node.args[:2])
    alpha = argument(node, "alpha") if name_of(node) in ("add", "sub", "rsub") else 1
    text, cost = _BINARY[name_of(node)]
    if alpha != 1:
        b, a = (b, p.op("{0} * {1}", a, p.const(alpha))) if name_of(node) == "rsub" else (p.op("{0} * {1}", b, p.const(alpha)), a)
    if name_of(node) == "div" and b.kind == "const" and _is_power_of_two(node.args[1]):
        return p.op("{0} * {1}", a, p.const(1 / float(node.args[1])))  # type: ignore[arg-type]
    return p.op(text, a, b, cost=cost)


def _is_power_of_two(number: Any) -> bool:
    return isinstance(number, int | float) and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5


def compare(p: Program, node: fx.Node) -> Value:
    near = p.axes_of_result(node, node.args)
    a, b = node.args[:2]
    operands: tuple[Any, ...] = (a, b)
    if not all(value(x).dtype in FLOATS if is_tensor(x) else isinstance(x, int | float) for x in operands) and not _exact(a, b):
        raise Unsupported("a comparison of integers that float32 need not hold")
    return p.op(f"({{0}} {COMPARE[name_of(node)]} {{1}})", p.read(a, near), p.read(b, near), type=MASK)


def _exact(a: Any, b: Any) -> bool:
    """Is a comparison of integers the same in float32? Where one of them is below 2^24: a larger other one is rounded, and no nearer than that.

    Not of a number that the other's type does not hold: torch cuts it to that type first, so that every uint8 is below -1.
    """
    integers = all(not value(x).is_floating_point() and not value(x).is_complex() if is_tensor(x) else isinstance(x, int) for x in (a, b))
    return integers and _holds(a, b) and _holds(b, a) and (_is_below(a) or _is_below(b))


def _holds(x: Any, number: Any) -> bool:
    if not is_tensor(x) or not isinstance(number, int) or value(x).dtype is torch.bool:
        return True
    range_ = torch.iinfo(value(x).dtype)
    return range_.min <= number <= range_.max


def _is_below(x: Any) -> bool:
    if isinstance(x, int):
        return abs(x) < HELD
    if value(x).dtype in (torch.bool, torch.uint8, torch.int8):
        return True
    while is_op(x, aten.view.default, aten.reshape.default, aten.unsqueeze.default):
        x = x.args[0]
    numbers = [*x.args, *x.kwargs.values()] if is_op(x, aten.arange.default, aten.arange.start, aten.arange.start_step) else [HELD]
    return all(abs(number) < HELD for number in numbers if isinstance(number, int | float))


def _mask(p: Program, arg: Any, near: Axes) -> Value:
    mask = p.read(arg, near)
    return mask if mask.type == MASK else p.op("({0} != 0.f)", mask, type=MASK)


def where(p: Program, node: fx.Node) -> Value:
    float_result(node)
    near = p.axes_of_result(node, node.args)
    condition, a, b = node.args
    return p.op("pick({0}, {1}, {2})", _mask(p, condition, near), splat(p, a, near), splat(p, b, near))


def splat(p: Program, arg: Any, near: Axes) -> Value:
    read = read_float(p, arg, near)
    return p.op("{0}", read) if read.kind == "const" else read


def masked_fill(p: Program, node: fx.Node) -> Value:
    float_result(node)
    near = p.axes_of_result(node, node.args)
    x, mask, number = node.args
    return p.op("pick({0}, {1}, {2})", _mask(p, mask, near), splat(p, number, near), read_float(p, x, near))


def convert(p: Program, node: fx.Node) -> Value:
    x = p.read(node.args[0], p.axes_of_result(node, node.args))
    if x.type == PLACE:
        raise Unsupported("arithmetic on the index of an element")
    if value(node).dtype in FLOATS:
        return p.op("pick({0}, splat(1.f), splat(0.f))", x, type=FLOAT) if x.type == MASK else x
    if value(node).dtype == torch.bool:
        return x if x.type == MASK else p.op("({0} != 0.f)", x, type=MASK)
    raise Unsupported(f"conversion to {value(node).dtype}")


def logical_not(p: Program, node: fx.Node) -> Value:
    near = p.axes_of_result(node, node.args)
    return p.op("({0} == 0)", _mask(p, node.args[0], near), type=MASK)


def clamp(p: Program, node: fx.Node) -> Value:
    float_result(node)
    x = read_float(p, node.args[0], p.axes_of_result(node, node.args[:1]))
    name = name_of(node)
    low = argument(node, "min_val") if name == "hardtanh" else argument(node, "min") if name != "clamp_max" else None
    high = argument(node, "max_val") if name == "hardtanh" else argument(node, "max") if name != "clamp_min" else None
    if any(isinstance(end, fx.Node) for end in (low, high)):
        raise Unsupported("a clamp between tensors")
    return p.op("vclamp({0}, {1}, {2})", x, p.const(-math.inf if low is None else low), p.const(math.inf if high is None else high), cost=2)


_POWERS: Mapping[float, tuple[str, int]] = {
    1: ("{0}", 0), 2: ("{0} * {0}", 1), 3: ("{0} * {0} * {0}", 2), 0.5: ("vsqrt({0})", 8), -0.5: ("1.f / vsqrt({0})", 14), -1: ("1.f / {0}", 6),
}  # fmt: skip


def power(p: Program, node: fx.Node) -> Value:
    float_result(node)
    exponent: Any = node.args[1]
    text, cost = _POWERS.get(exponent, ("", 0))
    if not text:
        raise Unsupported(f"the power {exponent}")
    return p.op(text, read_float(p, node.args[0], p.axes_of_result(node, node.args[:1])), cost=cost)


def with_parameters(p: Program, node: fx.Node) -> Value:
    """Activations with numbers in them."""
    float_result(node)
    x = read_float(p, node.args[0], p.axes_of_result(node, node.args[:1]))
    name = name_of(node)
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
