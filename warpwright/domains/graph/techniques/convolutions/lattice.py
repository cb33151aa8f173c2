"""Transposed convolutions whose stride and dilation share a factor g: most outputs are the bias alone.

Output o of  o = i*s - p + k*d  exists only where g = gcd(s, d) divides o + p. With o + p = g*m, the rest is a transposed convolution of stride
s/g and dilation d/g over m, and all other outputs are zero plus bias, for every input. Notes 2.5: 50 %, 89 % and 50 % of the outputs of
L1-75, 77 and 79.
"""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, aten, shape
from warpwright.domains.graph.techniques.convolutions.conv_transpose import insert_zeros
from warpwright.domains.graph.techniques.convolutions.convolution import TRANSPOSED, Convolution, convolve_transposed, read
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


def _match(node: fx.Node) -> Any:
    conv = read(node)
    if conv is None or not conv.transposed:
        return None
    factors = [math.gcd(s, d) if k > 1 else s for s, d, k in zip(conv.stride, conv.dilation, conv.kernel, strict=True)]
    return (conv, factors) if max(factors) > 1 else None


def _emit(e: Edit, node: fx.Node, match: tuple[Convolution, list[int]]) -> None:
    conv, factors = match
    at = e.before(node)
    low = [-(-p // g) for p, g in zip(conv.padding, factors, strict=True)]  # smallest m of an output
    count = [(out - 1 + p) // g - m + 1 for out, p, g, m in zip(conv.out, conv.padding, factors, low, strict=True)]
    new = _live(at, conv, factors, low, count)
    ends: list[int] = []
    for axis in reversed(range(conv.d)):
        new = insert_zeros(at, new, axis + 2, factors[axis])
        first = low[axis] * factors[axis] - conv.padding[axis]
        ends += [first, conv.out[axis] - first - shape(new)[axis + 2]]
    if any(ends):
        new = at.call(aten.constant_pad_nd.default, new, ends)
    if conv.bias is not None:
        new = at.call(aten.add.Tensor, new, at.call(aten.reshape.default, conv.bias, [conv.channels, *[1] * conv.d]))
    e.replace(node, new)


def _live(at: Inserter, conv: Convolution, factors: list[int], low: list[int], count: list[int]) -> fx.Node:
    """Insert the convolution over the lattice without bias: `count` outputs from m = `low` on, on each axis."""
    stride = [s // g for s, g in zip(conv.stride, factors, strict=True)]
    dilation = [max(1, d // g) for d, g in zip(conv.dilation, factors, strict=True)]
    padding, more, ends = [], [], []
    for axis in range(conv.d):
        whole = (conv.sizes[axis] - 1) * stride[axis] + dilation[axis] * (conv.kernel[axis] - 1) + 1
        missing = count[axis] - (whole - 2 * low[axis])  # padding cuts both ends alike
        extends = missing < max(stride[axis], dilation[axis])
        padding.append(low[axis] if extends else 0)
        more.append(max(0, missing) if extends else 0)
        cut = low[axis] - padding[-1]
        ends.append((-cut, count[axis] + cut - (whole - 2 * padding[-1] + more[-1])))
    new = convolve_transposed(at, conv.x, conv.weight, None, stride, padding, more, dilation, conv.groups)
    flat = [end for pair in reversed(ends) for end in pair]
    return at.call(aten.constant_pad_nd.default, new, flat) if any(flat) else new


LIVE_LATTICE = Rewrite(
    "live_lattice", Traits("E"), TRANSPOSED, _match, _emit,
    "conv_transpose(x, W), g = gcd(stride, dilation) > 1 -> conv_transpose with stride / g and dilation / g, zeros between its outputs, + bias.",
)  # fmt: skip

TECHNIQUES = (LIVE_LATTICE,)
