"""Bounds on the values of a node that follow from its operators alone, whatever the inputs (NaN aside, which every rewrite keeps)."""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import argument, aten, dtype, is_op, is_tensor, only_user

Bounds = tuple[float, float]
ANY: Bounds = (-math.inf, math.inf)

_FIXED: dict[Any, Bounds] = {
    aten.sigmoid: (0.0, 1.0), aten.hardsigmoid: (0.0, 1.0), aten.softmax: (0.0, 1.0), aten.tanh: (-1.0, 1.0), aten.exp: (0.0, math.inf),
    aten.abs: (0.0, math.inf), aten.square: (0.0, math.inf), aten.sqrt: (0.0, math.inf), aten.softplus: (0.0, math.inf),
    aten.gelu: (-0.17, math.inf), aten.silu: (-0.279, math.inf), aten.mish: (-0.309, math.inf), aten.hardswish: (-0.376, math.inf),
    aten.linalg_vector_norm: (0.0, math.inf), aten.log_softmax: (-math.inf, 0.0),
}  # fmt: skip

_KEEPING = (
    aten.max, aten.amax, aten.amin, aten.mean, aten.max_pool1d, aten.max_pool2d, aten.max_pool3d, aten.view, aten.reshape, aten.permute,
    aten.transpose, aten.flatten, aten.squeeze, aten.unsqueeze, aten.contiguous, aten.clone, aten.select, aten.slice, aten.expand,
    aten.adaptive_avg_pool1d, aten.adaptive_avg_pool2d, aten.adaptive_avg_pool3d,
)  # fmt: skip
"""Operators whose results lie between the least and the greatest element of their first argument.

Average pools are not among them: padding mixes zeros in, and a divisor may be set.
"""


def read_clamp(node: Any) -> tuple[fx.Node, float, float] | None:
    """Return (x, low, high) when the node is max(low, min(x, high)), whichever operator it was written with."""
    if not is_tensor(node) or not dtype(node).is_floating_point:
        return None
    if is_op(node, aten.relu.default):
        return node.args[0], 0.0, math.inf
    if is_op(node, aten.relu6.default):
        return node.args[0], 0.0, 6.0
    if is_op(node, aten.hardtanh.default):
        return node.args[0], float(argument(node, "min_val")), float(argument(node, "max_val"))
    if is_op(node, aten.clamp_min.default):
        return node.args[0], float(node.args[1]), math.inf
    if is_op(node, aten.clamp_max.default):
        return node.args[0], -math.inf, float(node.args[1])
    if is_op(node, aten.clamp.default):
        low, high = argument(node, "min"), argument(node, "max")
        return node.args[0], -math.inf if low is None else float(low), math.inf if high is None else float(high)
    return None


def read_affine(node: Any) -> tuple[fx.Node, float, float] | None:
    """Return (x, a, b) when the node is a * x + b with Python numbers a and b."""
    if not is_tensor(node) or not dtype(node).is_floating_point:
        return None
    if is_op(node, aten.neg.default):
        return node.args[0], -1.0, 0.0
    if not is_op(node, *_AFFINE) or len(node.args) < 2:
        return None
    x, c = node.args[0], node.args[1]
    if not is_tensor(x) or dtype(x) != dtype(node):
        return None
    alpha = float(node.kwargs.get("alpha", node.args[2] if len(node.args) > 2 else 1))
    if x is c and is_op(node, aten.add):
        return x, 1.0 + alpha, 0.0
    if isinstance(c, bool) or not isinstance(c, int | float) or not math.isfinite(c):
        return None
    c = float(c)
    if is_op(node, aten.div):
        return (x, 1.0 / c, 0.0) if c != 0 and "rounding_mode" not in node.kwargs else None
    return {"add": (x, 1.0, alpha * c), "sub": (x, 1.0, -alpha * c), "mul": (x, c, 0.0), "multiply": (x, c, 0.0), "rsub": (x, -alpha, c)}[
        node.target.overloadpacket.__name__
    ]


def read_affine_chain(node: Any) -> tuple[fx.Node, float, float, int]:
    """Return (x, a, b, calls) for the longest chain of affine calls that ends in `node`, each read by the next alone."""
    x, a, b, calls = node, 1.0, 0.0, 0
    while (affine := read_affine(x)) is not None and (x is node or only_user(x) is not None):
        x, b, a, calls = affine[0], a * affine[2] + b, a * affine[1], calls + 1
    return x, a, b, calls


_AFFINE = (
    aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor,
    aten.div.Tensor, aten.div.Scalar, aten.rsub.Scalar,
)  # fmt: skip


def bounds(node: Any, depth: int = 32) -> Bounds:
    """Return numbers between which every value of the node lies; +-inf where nothing is known."""
    if depth == 0 or not is_tensor(node) or node.op != "call_function" or not node.args:
        return ANY
    clamp = read_clamp(node)
    if clamp is not None:
        x, low, high = clamp
        a, b = bounds(x, depth - 1)
        return min(max(a, low), high), min(max(b, low), high)
    affine = read_affine(node)
    if affine is not None:
        x, a, b = affine
        ends = [a * end + b if a else b for end in bounds(x, depth - 1)]
        return min(ends), max(ends)
    if is_op(node, *_KEEPING):
        return bounds(node.args[0], depth - 1)
    for op, fixed in _FIXED.items():
        if is_op(node, op):
            return fixed
    return ANY
