"""Linear reductions and average pools as two nouns, whichever operator they were written with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Inserter, argument, aten, dtype, is_op, is_tensor, shape

REDUCTIONS = (
    aten.sum.dim_IntList,
    aten.sum.default,
    aten.mean.dim,
    aten.mean.default,
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
    aten.avg_pool1d.default,
    aten.avg_pool2d.default,
    aten.avg_pool3d.default,
)
AVERAGE_POOLS = (aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
ADAPTIVE = (aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten.adaptive_avg_pool3d.default)


@dataclass(frozen=True)
class Reduction:
    """The sum or the mean of `x` over whole `axes` (sorted, not negative)."""

    node: fx.Node
    x: fx.Node
    axes: tuple[int, ...]
    keepdim: bool
    mean: bool

    @property
    def count(self) -> int:
        """How many elements go into one."""
        return math.prod(shape(self.x)[a] for a in self.axes)


def read_reduction(node: Any) -> Reduction | None:
    """Return the linear reduction that a node is, or None."""
    if not is_op(node, *REDUCTIONS) or not is_tensor(node.args[0]) or dtype(node) != dtype(node.args[0]):
        return None
    x = node.args[0]
    sizes = shape(x)
    if math.prod(sizes) == 0 or not dtype(x).is_floating_point:
        return None
    if is_op(node, *ADAPTIVE):
        d = ADAPTIVE.index(node.target) + 1
        if math.prod(shape(node)[-d:]) != 1:
            return None
        return Reduction(node, x, tuple(range(len(sizes) - d, len(sizes))), True, True)
    if is_op(node, *AVERAGE_POOLS):
        pool = read_average_pool(node)
        d = 0 if pool is None else len(pool.kernel)
        if pool is None or sizes[-d:] != pool.kernel:
            return None
        return Reduction(node, x, tuple(range(len(sizes) - d, len(sizes))), True, True)
    mean = is_op(node, aten.mean)
    if is_op(node, aten.sum.default, aten.mean.default):
        return Reduction(node, x, tuple(range(len(sizes))), False, mean)
    dim = argument(node, "dim")
    dim = [dim] if isinstance(dim, int) else dim
    axes = tuple(range(len(sizes))) if not dim else tuple(sorted(a % len(sizes) for a in dim))
    return Reduction(node, x, axes, bool(argument(node, "keepdim")), mean)


def reduce(at: Inserter, x: fx.Node, axes: tuple[int, ...], keepdim: bool, mean: bool) -> fx.Node:
    """Insert a sum or a mean over `axes`; without axes, `x` itself."""
    return at.call(aten.mean.dim if mean else aten.sum.dim_IntList, x, list(axes), keepdim) if axes else x


@dataclass(frozen=True)
class Pool:
    """A pooling of the last axes of `x`, without padding: every window has math.prod(kernel) elements."""

    node: fx.Node
    x: fx.Node
    kernel: tuple[int, ...]
    stride: tuple[int, ...]


def read_average_pool(node: Any) -> Pool | None:
    """Return the average pool that a node is, or None when it pads, divides by something else, or has ragged last windows."""
    if not is_op(node, *AVERAGE_POOLS) or any(_tuple(argument(node, "padding"))):
        return None
    d = AVERAGE_POOLS.index(node.target) + 1
    if d > 1 and argument(node, "divisor_override") is not None:
        return None
    return _pool(node, node.args[0], d)


MAX_POOLS = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)


def read_max_pool(node: Any) -> Pool | None:
    """Return the max pool that a node is, or None when it pads, dilates, or has ragged last windows."""
    if not is_op(node, *MAX_POOLS) or any(_tuple(argument(node, "padding"))) or any(i != 1 for i in _tuple(argument(node, "dilation"))):
        return None
    return _pool(node, node.args[0], MAX_POOLS.index(node.target) + 1)


def _pool(node: fx.Node, x: fx.Node, d: int) -> Pool | None:
    kernel = _tuple(argument(node, "kernel_size"), d)
    stride = _tuple(argument(node, "stride"), d) or kernel
    sizes = zip(shape(x)[-d:], kernel, stride, strict=True)
    if argument(node, "ceil_mode") and any((size - k) % s for size, k, s in sizes):
        return None
    return Pool(node, x, kernel, stride)


def _tuple(value: Any, d: int = 1) -> tuple[int, ...]:
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * d if len(values) == 1 else values
