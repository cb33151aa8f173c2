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
    """A convolution call of `d` spatial axes.

    `x` is [N, Cin, *sizes], `weight` [Cout, Cin/groups, *kernel], for a transposed one [Cin, Cout/groups, *kernel].
    """

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


def _per_axis(value: Any, d: int) -> tuple[int, ...]:
    values = (value,) if isinstance(value, int) else tuple(value)
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


def swap_channels(at: Inserter, weight: fx.Node, groups: int) -> fx.Node:
    """Turn a transposed convolution's weight [Cin, Cout/groups, ...] into an ordinary one's [Cout, Cin/groups, ...]."""
    if groups == 1:
        return at.call(aten.transpose.int, weight, 0, 1)
    cin, cout, *kernel = shape(weight)
    split = at.call(aten.reshape.default, weight, [groups, cin // groups, cout, *kernel])
    return at.call(aten.reshape.default, at.call(aten.transpose.int, split, 1, 2), [groups * cout, cin // groups, *kernel])


def correlate(
    at: Inserter,
    x: fx.Node,
    weight: fx.Node,
    bias: fx.Node | None,
    stride: list[int],
    first: list[int],
    out: list[int],
    groups: int = 1,
    dilation: list[int] | None = None,
) -> fx.Node:
    """Insert  y[j] = sum_v weight[v] x[j*stride + first + v*dilation]  for j in [0, out), with x zero outside.

    A convolution pads both ends alike; where that gives another number of outputs, `x` itself is padded or cut.
    """
    d = len(stride)
    padding = [max(0, -f) for f in first]
    ends: list[int] = []
    for axis in reversed(range(d)):
        size, kernel = shape(x)[axis + 2], (shape(weight)[axis + 2] - 1) * (dilation[axis] if dilation else 1) + 1
        behind = (out[axis] - 1) * stride[axis] + first[axis] + kernel - size
        places = (size + 2 * padding[axis] - kernel) // stride[axis] + 1
        if first[axis] > 0 or places != out[axis]:
            padding[axis] = 0
            ends += [-first[axis], behind]
        else:
            ends += [0, 0]
    if any(ends):
        x = at.call(aten.constant_pad_nd.default, x, ends)
    return convolve(at, x, weight, bias, stride, padding, dilation, groups)


def same_form(at: Inserter, conv: Convolution, x: fx.Node, weight: fx.Node, bias: fx.Node | None) -> fx.Node:
    """Insert a convolution with the strides, paddings and dilations of `conv`."""
    if conv.transposed:
        return convolve_transposed(at, x, weight, bias, conv.stride, conv.padding, conv.output_padding, conv.dilation, conv.groups)
    return convolve(at, x, weight, bias, conv.stride, conv.padding, conv.dilation, conv.groups)
