"""Numbers and biases: chains of them become one, and what follows a linear map goes into its weight and bias."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, argument, aten, dtype, is_op, is_parameter_only, is_tensor, only_user, shape
from warpwright.domains.graph.techniques.algebra.ranges import bounds, read_affine, read_affine_chain
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

_ARITHMETIC = (
    aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor,
    aten.div.Tensor, aten.div.Scalar, aten.rsub.Scalar, aten.neg.default,
)  # fmt: skip
LINEAR = (aten.linear.default, *CONVOLUTIONS, *TRANSPOSED)


# --- tensor literals ---------------------------------------------------------------------------------------------------


def _match_literal(node: fx.Node) -> Any:
    if len(node.args) != 2 or node.kwargs or not all(isinstance(arg, fx.Node) for arg in node.args):
        return None
    for x, literal in (node.args, node.args[::-1]):
        number = literal.meta.get("number")  # type: ignore[union-attr]
        if number is not None and is_tensor(x) and len(shape(x)) > 0 and dtype(x) == dtype(node):  # type: ignore[arg-type]
            return x, number, literal is node.args[1]
    return None


def _emit_literal(e: Edit, node: fx.Node, match: tuple[fx.Node, float, bool]) -> None:
    x, number, second = match
    at = e.before(node)
    if is_op(node, aten.maximum, aten.max):
        new = at.call(aten.clamp.default, x, number)
    elif is_op(node, aten.minimum, aten.min):
        new = at.call(aten.clamp.default, x, None, number)
    elif second or is_op(node, aten.add, aten.mul, aten.multiply):
        new = at.call(node.target, x, number)
    elif is_op(node, aten.sub):
        new = at.call(aten.rsub.Scalar, x, number)
    else:
        new = at.call(aten.mul.Tensor, at.call(aten.reciprocal.default, x), number)
    e.replace(node, new)


LITERAL = Rewrite(
    "literal", Traits("E"),
    (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.multiply.Tensor, aten.div.Tensor, aten.maximum.default, aten.minimum.default,
     aten.max.other, aten.min.other),
    _match_literal, _emit_literal,
    "x + torch.tensor(c)  ->  x + c, and torch.min(x, torch.tensor(c))  ->  x.clamp(max=c).",
)  # fmt: skip


# --- chains ------------------------------------------------------------------------------------------------------------


def _match_chain(node: fx.Node) -> Any:
    x, a, b, count = read_affine_chain(node)
    reader = only_user(node)
    if reader is not None and read_affine(reader) is not None:
        return None  # the chain's last call is the place
    return (x, a, b) if count > (a != 1) + (b != 0) and a != 0 and _holds(node, a, b) else None


def _holds(node: fx.Node, a: float, b: float) -> bool:
    """Can a call on the node's numbers multiply by `a` and add `b`? x * 1e30 * 1e20 is not x * inf.

    torch multiplies halves by float32 numbers, and rounds what it adds to the tensor's own kind.
    """
    held = torch.finfo(dtype(node))
    least, most = (held.tiny, held.max) if held.bits > 16 else (torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max)
    return (a == 0 or least <= abs(a) <= most) and abs(b) <= held.max


def _emit_chain(e: Edit, node: fx.Node, match: tuple[fx.Node, float, float]) -> None:
    x, a, b = match
    at = e.before(node)
    new = at.call(aten.mul.Tensor, x, a) if a != 1 else x
    e.replace(node, at.call(aten.add.Tensor, new, b) if b != 0 else new)


COMBINE = Rewrite(
    "combine_scalars", Traits("E"), _ARITHMETIC, _match_chain, _emit_chain,
    "((x * a + b) / c) - d  ->  x * (a / c) + (b / c - d); also negations and x + x.",
)  # fmt: skip


def _match_terms(node: fx.Node) -> Any:
    """Return (x, a, b) where the node is a sum or difference of two chains that begin at the same x, and nobody else reads the calls between."""
    if len(node.args) < 2 or not all(is_tensor(arg) and dtype(arg) == dtype(node) for arg in node.args[:2]):  # type: ignore[arg-type]
        return None
    sign = (-1.0 if is_op(node, aten.sub) else 1.0) * float(argument(node, "alpha"))
    (x, a, b, calls), (y, c, d, more) = (read_affine_chain(arg) for arg in node.args[:2])
    if x is not y or calls + more == 0 or any(arg is not x and only_user(arg) is not node for arg in node.args[:2]):  # type: ignore[arg-type]
        return None
    scale, shift = a + sign * c, b + sign * d
    cancels = abs(scale) < LEAST_LEFT * (abs(a) + abs(c))  # what is left would be made of the numbers' own rounding
    endless = a * sign * c < 0 and not all(map(math.isfinite, bounds(x)))  # of Inf such a difference is NaN
    if cancels or endless or not dtype(node).is_floating_point or not _holds(node, scale, shift):
        return None
    return x, scale, shift


LEAST_LEFT = 1e-3
"""Of two factors, what their sum has to keep."""

SAME_TENSOR = Rewrite(
    "combine_terms", Traits("E"), (aten.add.Tensor, aten.sub.Tensor), _match_terms, _emit_chain,
    "x * a + b + (x * c + d)  ->  x * (a + c) + (b + d): a residual of the scaled tensor itself goes into the map before it.",
)  # fmt: skip


# --- into weight and bias ----------------------------------------------------------------------------------------------


def _foldable(node: Any, reader: fx.Node) -> bool:
    """Is this a linear map with parameters, read by `reader` alone?"""
    if not is_op(node, *LINEAR) or only_user(node) is not reader or dtype(node) != dtype(reader):
        return False
    return is_parameter_only(argument(node, "weight")) and is_parameter_only(argument(node, "bias"))


def _channels(node: fx.Node) -> tuple[int, int]:
    """Return the axis of the output channels in the result, and how many there are."""
    axis = len(shape(node)) - 1 if is_op(node, aten.linear) else 1
    return axis, shape(node)[axis]


def _per_channel(p: Any, node: fx.Node) -> bool:
    """Is `p` a parameter-only tensor that, broadcast against the result of `node`, varies along its channels only?"""
    if not is_tensor(p) or not is_parameter_only(p) or dtype(p) != dtype(node) or len(shape(p)) > len(shape(node)):
        return False
    axis, count = _channels(node)
    sizes = (1,) * (len(shape(node)) - len(shape(p))) + shape(p)
    return all(size == 1 or (i == axis and size == count) for i, size in enumerate(sizes))


def _vector(at: Inserter, p: fx.Node, count: int) -> fx.Node:
    """Insert `p` as a vector of `count` channels."""
    flat = at.call(aten.reshape.default, p, [-1])
    return flat if shape(flat)[0] == count else at.call(aten.expand.default, flat, [count])


def _scaled_weight(at: Inserter, node: fx.Node, scale: Any) -> fx.Node:
    """Insert the weight times a number, or times a vector over the output channels."""
    weight = argument(node, "weight")
    if isinstance(scale, fx.Node) and shape(scale) != (1,):
        d = len(shape(weight)) - 2
        if not is_op(node, *TRANSPOSED):
            scale = at.call(aten.reshape.default, scale, [-1] + [1] * (len(shape(weight)) - 1))
        elif argument(node, "groups") == 1:
            scale = at.call(aten.reshape.default, scale, [1, -1] + [1] * d)
        else:
            groups, (inputs, outputs) = argument(node, "groups"), shape(weight)[:2]
            grouped = at.call(aten.reshape.default, weight, [groups, inputs // groups, outputs, *shape(weight)[2:]])
            scale = at.call(aten.reshape.default, scale, [groups, 1, outputs] + [1] * d)
            return at.call(aten.reshape.default, at.call(aten.mul.Tensor, grouped, scale), list(shape(weight)))
    return at.call(aten.mul.Tensor, weight, scale)


def _again(e: Edit, node: fx.Node, reader: fx.Node, weight: fx.Node, bias: Any, x: Any = None) -> None:
    """Replace `reader` by the linear map `node` with another weight and bias."""
    args = list(node.args[:1]) if x is None else [x]
    new = e.before(reader).call(node.target, *args, weight, bias, *node.args[3:], **node.kwargs)
    e.replace(reader, new)


def _match_affine(reader: fx.Node) -> Any:
    affine = read_affine(reader)
    return affine if affine is not None and affine[1:] != (1.0, 0.0) and _foldable(affine[0], reader) else None


def _emit_affine(e: Edit, reader: fx.Node, match: tuple[fx.Node, float, float]) -> None:
    node, a, b = match
    at = e.before(reader)
    weight, bias = argument(node, "weight"), argument(node, "bias")
    if a != 1:
        weight = _scaled_weight(at, node, a)
        bias = at.call(aten.mul.Tensor, bias, a) if bias is not None else None
    if b != 0 and bias is not None:
        bias = at.call(aten.add.Tensor, bias, b)
    elif b != 0:
        bias = at.call(aten.new_full.default, weight, [_channels(node)[1]], b)
    _again(e, node, reader, weight, bias)


SCALAR_INTO_LINEAR = Rewrite(
    "scalar_into_linear", Traits("E"), _ARITHMETIC, _match_affine, _emit_affine,
    "a * linear(x, W, c) + b  ->  linear(x, a * W, a * c + b) for numbers a, b, and the same for convolutions.",
)  # fmt: skip


def _match_shift(reader: fx.Node) -> Any:
    if len(reader.args) != 2 or argument(reader, "alpha") != 1:
        return None
    a, b = reader.args
    if _foldable(a, reader) and _per_channel(b, a):  # type: ignore[arg-type]
        return a, b, -1 if is_op(reader, aten.sub) else 1
    if is_op(reader, aten.add) and _foldable(b, reader) and _per_channel(a, b):  # type: ignore[arg-type]
        return b, a, 1
    return None


def _emit_shift(e: Edit, reader: fx.Node, match: tuple[fx.Node, fx.Node, int]) -> None:
    node, shift, sign = match
    at = e.before(reader)
    bias = argument(node, "bias")
    vector = _vector(at, shift, _channels(node)[1])
    if bias is None:
        bias = vector if sign > 0 else at.call(aten.neg.default, vector)
    else:
        bias = at.call(aten.add.Tensor if sign > 0 else aten.sub.Tensor, bias, vector)
    _again(e, node, reader, argument(node, "weight"), bias)


BIAS_INTO_LINEAR = Rewrite(
    "bias_into_linear", Traits("E"), (aten.add.Tensor, aten.sub.Tensor), _match_shift, _emit_shift,
    "linear(x, W, c) + p  ->  linear(x, W, c + p) for a parameter p over the output channels, and the same for convolutions.",
)  # fmt: skip


def _match_factor(reader: fx.Node) -> Any:
    if len(reader.args) != 2 or reader.kwargs:
        return None
    a, b = reader.args
    if _foldable(a, reader) and _per_channel(b, a):  # type: ignore[arg-type]
        return a, b
    if not is_op(reader, aten.div) and _foldable(b, reader) and _per_channel(a, b):  # type: ignore[arg-type]
        return b, a
    return None


def _emit_factor(e: Edit, reader: fx.Node, match: tuple[fx.Node, fx.Node]) -> None:
    node, factor = match
    at = e.before(reader)
    vector = _vector(at, factor, _channels(node)[1])
    vector = at.call(aten.reciprocal.default, vector) if is_op(reader, aten.div) else vector
    bias = argument(node, "bias")
    _again(e, node, reader, _scaled_weight(at, node, vector), at.call(aten.mul.Tensor, bias, vector) if bias is not None else None)


FACTOR_INTO_LINEAR = Rewrite(
    "factor_into_linear", Traits("E"), (aten.mul.Tensor, aten.multiply.Tensor, aten.div.Tensor), _match_factor, _emit_factor,
    "linear(x, W, c) * p  ->  linear(x, p[:, None] * W, c * p) for a parameter p over the output channels, and the same for convolutions.",
)  # fmt: skip


def _match_input(node: fx.Node) -> Any:
    x = node.args[0]
    affine = read_affine(x)
    if affine is None or affine[2] != 0 or affine[1] == 1 or only_user(x) is not node:  # type: ignore[arg-type]
        return None
    return affine if is_parameter_only(argument(node, "weight")) else None


def _emit_input(e: Edit, node: fx.Node, match: tuple[fx.Node, float, float]) -> None:
    x, a, _ = match
    _again(e, node, node, _scaled_weight(e.before(node), node, a), argument(node, "bias"), x)


INPUT_SCALE_INTO_LINEAR = Rewrite(
    "input_scale_into_linear", Traits("E"), LINEAR, _match_input, _emit_input,
    "linear(a * x, W, c)  ->  linear(x, a * W, c) for a number a, and the same for convolutions.",
)  # fmt: skip

TECHNIQUES = (LITERAL, COMBINE, SAME_TENSOR, SCALAR_INTO_LINEAR, BIAS_INTO_LINEAR, FACTOR_INTO_LINEAR, INPUT_SCALE_INTO_LINEAR)
