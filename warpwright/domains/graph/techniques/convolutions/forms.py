"""Other forms of a convolution: the same sums, handed to another routine of the library. Which is faster only a measurement tells.

Convolutions of three axes are the library's weak spot: with 3 input channels cuDNN ran KernelBench's L2-6, 23 and 27 at 8 to 12 TFLOPS on an H100
(notes 2.5: 0.86, 1.27 and 9.9 ms for 4, 10 and 69 GFLOP).
"""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, aten, shape, value
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, Convolution, convolve, read
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


def _padded(at: Inserter, x: fx.Node, padding: tuple[int, ...]) -> fx.Node:
    """Return `x` with zeros round its spatial axes."""
    ends = [p for size in reversed(padding) for p in (size, size)]
    return at.call(aten.constant_pad_nd.default, x, ends) if any(ends) else x


def _windows(at: Inserter, x: fx.Node, axes: range, kernel: tuple[int, ...], stride: tuple[int, ...]) -> fx.Node:
    """Return a view of `x` in which each of `axes` counts windows, with the places inside a window as trailing axes."""
    for axis, size, step in zip(axes, kernel, stride, strict=True):
        x = at.call(aten.unfold.default, x, axis, size, step)
    return x


# --- matrix product ------------------------------------------------------------------------------------------------------

def _match_matmul(node: fx.Node) -> Any:
    conv = _plain(node)
    if conv is None:
        return None
    if math.prod(conv.kernel) == 1 and set(conv.stride) == {1} and not any(conv.padding):
        return conv
    patch = math.prod(shape(conv.weight)[1:])  # the matrix of patches is written and read: worth it while smaller than the output
    return conv if conv.d > 1 and patch <= conv.channels else None


def _plain(node: fx.Node) -> Convolution | None:
    conv = read(node)
    return None if conv is None or conv.transposed or conv.groups != 1 or any(d != 1 for d in conv.dilation) else conv


def _emit_matmul(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    d, n = conv.d, shape(conv.x)[0]
    patch, places = math.prod(shape(conv.weight)[1:]), math.prod(conv.out)
    columns = _padded(at, conv.x, conv.padding)
    if math.prod(conv.kernel) > 1 or max(conv.stride) > 1:
        columns = _windows(at, columns, range(2, 2 + d), conv.kernel, conv.stride)
        columns = at.call(aten.permute.default, columns, [0, 1, *range(2 + d, 2 + 2 * d), *range(2, 2 + d)])
    columns = at.call(aten.reshape.default, columns, [n, patch, places])
    rows = at.call(aten.reshape.default, conv.weight, [1, conv.channels, patch])
    rows = at.call(aten.expand.default, rows, [n, conv.channels, patch])
    if conv.bias is None:
        new = at.call(aten.bmm.default, rows, columns)
    else:
        new = at.call(aten.baddbmm.default, at.call(aten.reshape.default, conv.bias, [1, conv.channels, 1]), rows, columns)
    e.replace(node, at.call(aten.reshape.default, new, [n, conv.channels, *conv.out]))


CONVOLUTION_AS_MATMUL = Rewrite(
    "convolution_as_matmul", Traits("S"), CONVOLUTIONS, _match_matmul, _emit_matmul,
    "conv(x, W) -> W as a matrix times the matrix of patches of x, for kernels of one element (where that is x itself) and for few input channels.",
)  # fmt: skip


# --- slices --------------------------------------------------------------------------------------------------------------


def _match_slices(node: fx.Node) -> Any:
    conv = read(node)
    return conv if conv is not None and conv.d == 3 and not conv.transposed and conv.groups == 1 and conv.dilation[0] == 1 else None


def _emit_slices(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    n, channels = shape(conv.x)[:2]
    depth, (_, height, width) = conv.kernel[0], conv.sizes
    x = _padded(at, conv.x, (conv.padding[0], 0, 0))
    x = _windows(at, x, range(2, 3), (depth,), (conv.stride[0],))  # [N, C, slices, H, W, depth]
    x = at.call(aten.permute.default, x, [0, 2, 1, 5, 3, 4])
    x = at.call(aten.reshape.default, x, [n * conv.out[0], channels * depth, height, width])
    weight = at.call(aten.reshape.default, conv.weight, [conv.channels, channels * depth, *conv.kernel[1:]])
    new = convolve(at, x, weight, conv.bias, conv.stride[1:], conv.padding[1:], conv.dilation[1:])
    new = at.call(aten.reshape.default, new, [n, conv.out[0], conv.channels, *conv.out[1:]])
    new = at.call(aten.permute.default, new, [0, 2, 1, 3, 4])
    e.replace(node, at.call(aten.contiguous.default, new) if not value(new).is_contiguous() else new)


CONV3D_IN_SLICES = Rewrite(
    "conv3d_in_slices", Traits("S"), (aten.conv3d.default,), _match_slices, _emit_slices,
    "conv3d(x, W), kernel (k, l, m) -> conv2d over every slice of k layers, layers and channels together as channels.",
)  # fmt: skip


def _match_flat(node: fx.Node) -> Any:
    conv = read(node)
    if conv is None or conv.d != 3 or conv.transposed or conv.kernel[2] != 1:
        return None
    return conv if conv.stride[1:] == (1, 1) and conv.padding[2] == 0 else None


def _emit_flat(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    n, channels, depth, height, width = shape(conv.x)
    x = at.call(aten.reshape.default, conv.x, [n, channels, depth, height * width])
    weight = at.call(aten.squeeze.dim, conv.weight, 4)
    padding, dilation = (conv.padding[0], conv.padding[1] * width), (conv.dilation[0], conv.dilation[1] * width)
    new = convolve(at, x, weight, conv.bias, (conv.stride[0], 1), padding, dilation, conv.groups)
    e.replace(node, at.call(aten.reshape.default, new, [n, conv.channels, *conv.out]))


FLAT_CONV3D = Rewrite(
    "flat_conv3d", Traits("S"), (aten.conv3d.default,), _match_flat, _emit_flat,
    "conv3d(x, W), kernel (k, l, 1) -> conv2d on [D, H * W] with dilation W along the second axis: rows lie one behind the other. Notes 2.5 (L1-59).",
)  # fmt: skip

TECHNIQUES = (CONVOLUTION_AS_MATMUL, CONV3D_IN_SLICES, FLAT_CONV3D)
