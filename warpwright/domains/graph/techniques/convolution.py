"""Convolutions of any dimension as one noun: read from a call, and written back as a call.

Along one axis a convolution relates an output position o to an input position i through a kernel index k:

    convolution              i = o * stride - padding + k * dilation
    transposed convolution   o = i * stride - padding + k * dilation
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Inserter, argument, aten, is_op, is_tensor, shape

CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
TRANSPOSED = (aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)


@dataclass(frozen=True)
class Convolution:
    """A convolution call of `d` spatial axes: `x` is [N, Cin, *sizes], `weight` [Cout, Cin/groups, *kernel], transposed [Cin, Cout/groups, *kernel]."""

    node: fx.Node
    x: fx.Node
    weight: fx.Node
    bias: fx.Node | None
    transposed: bool
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def d(self) -> int:
        """How many spatial axes."""
        return len(self.stride)

    @property
    def kernel(self) -> tuple[int, ...]:
        """Kernel sizes."""
        return shape(self.weight)[2:]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Spatial sizes of the input."""
        return shape(self.x)[2:]

    @property
    def out(self) -> tuple[int, ...]:
        """Spatial sizes of the output."""
        return shape(self.node)[2:]

    @property
    def channels(self) -> int:
        """Output channels."""
        return shape(self.node)[1]

    @property
    def flops(self) -> int:
        """Multiply-adds, two operations each."""
        places = math.prod(self.sizes if self.transposed else self.out)
        return 2 * shape(self.x)[0] * places * math.prod(shape(self.weight))


def read(node: Any) -> Convolution | None:
    """Return the convolution that a node is, or None. Unbatched ones, and those with padding given in words, are not read."""
    if not is_op(node, *CONVOLUTIONS, *TRANSPOSED):
        return None
    x, weight, bias = argument(node, "input"), argument(node, "weight"), argument(node, "bias")
    d = len(shape(weight)) - 2
    if not is_tensor(x) or len(shape(x)) != d + 2 or math.prod(shape(x)) == 0:
        return None
    transposed = is_op(node, *TRANSPOSED)
    return Convolution(
        node,
        x,
        weight,
        bias,
        transposed,
        _per_axis(argument(node, "stride"), d),
        _per_axis(argument(node, "padding"), d),
        _per_axis(argument(node, "output_padding"), d) if transposed else (0,) * d,
        _per_axis(argument(node, "dilation"), d),
        argument(node, "groups"),
    )


def _per_axis(given: Any, d: int) -> tuple[int, ...]:
    values = (given,) if isinstance(given, int) else tuple(given)
    return values * d if len(values) == 1 else values


def convolve(
    at: Inserter, x: fx.Node, weight: fx.Node, bias: fx.Node | None, stride: Any, padding: Any, dilation: Any = None, groups: int = 1
) -> fx.Node:
    """Insert a convolution of as many axes as `weight` has."""
    d = len(shape(weight)) - 2
    return at.call(CONVOLUTIONS[d - 1], x, weight, bias, list(stride), list(padding), list(dilation or (1,) * d), groups)


def convolve_transposed(
    at: Inserter,
    x: fx.Node,
    weight: fx.Node,
    bias: fx.Node | None,
    stride: Any,
    padding: Any,
    output_padding: Any = None,
    dilation: Any = None,
    groups: int = 1,
) -> fx.Node:
    """Insert a transposed convolution of as many axes as `weight` has."""
    d = len(shape(weight)) - 2
    rest = [list(output_padding or (0,) * d), groups, list(dilation or (1,) * d)]
    return at.call(TRANSPOSED[d - 1], x, weight, bias, list(stride), list(padding), *rest)
