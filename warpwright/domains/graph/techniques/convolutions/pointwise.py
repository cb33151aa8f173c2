"""Convolutions of one tap by a kernel that reads x as it lies.

A part of `implicit_convolution`, which takes all convolutions of a program that kernels of ours are worth: those of one tap do not want x cut and
turned first. The kernel is `kernels/pointwise_convolution.py`.

A depthwise convolution before it stays a kernel of its own (`windows_cuda`): formed on the way to the tensor cores it took 1.4 ms where both take 0.4
(results/convolution_ends_h200).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Inserter, aten, dtype, shape
from warpwright.domains.graph.techniques.convolutions import ends
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution, read
from warpwright.domains.graph.techniques.convolutions.ends import Ended

LEAST_BYTES = 64 << 20
"""Of x and the result: 16 us of an H200, and a launch from Python takes its host 20 to 50."""
MOST_TERMS = {"tf32": 1024, "tf32x3": 256}
"""Of a sum beyond which products are so much of what the kernel takes that the pass which cuts x is worth it, if the result has about as many
channels: 1,024 channels to 512 took 0.20 ms for 53 GFLOP on an H200 (results/convolution_ends_h200)."""
PRECISION = {1: "tf32", 2: "tf32x3"}
"""By float16 numbers an operand that the other kernel would have."""


class PointwiseConvolution(Ended):
    """The graph's name for a generated function: the convolution, and the calls after it."""

    file = "pointwise_convolution"
    own = "x, w, bias, precision, stride, places, blocks, groups, pool, pooled, into, within"

    def __call__(
        self, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, precision: str, stride: list[int], places: list[int], blocks: list[int],
        groups: int, pool: list[int], pooled: str, into: torch.Tensor | None, within: list[int], *operands: torch.Tensor,
    ) -> Any:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        d = len(stride)
        call: Any = (torch.conv1d, torch.conv2d, torch.conv3d)[d - 1]
        y = call(x, w.reshape(*w.shape, *[1] * d), bias, stride, 0, 1, groups)
        return self.ended(y, operands, into, within, blocks[1] // math.prod(pool or [1]))


def find(node: fx.Node, parts: int) -> Convolution | None:
    """Return the convolution that the kernel computes and is worth, of which `node` is the (last) call; None where there is none."""
    conv = read(node)
    if conv is None or not _of_one_tap(conv):
        return None
    if 4 * (math.prod(shape(conv.x)) + math.prod(shape(node))) < LEAST_BYTES or not _counted(conv):
        return None
    end = ends.after(node)
    gains = max(conv.stride) > 1 or conv.groups > 1 or end.last is not end.start or ends.is_joined(node) or _is_normed(node)
    short = shape(conv.weight)[1] <= MOST_TERMS[PRECISION[parts]] or 4 * conv.channels < 3 * shape(conv.x)[1]
    return conv if gains and short else None


def _is_normed(node: fx.Node) -> bool:
    return any(user.target is aten.batch_norm.default for user in node.users)


def _of_one_tap(conv: Convolution) -> bool:
    plain = not conv.transposed and math.prod(conv.kernel) == 1 and not any(conv.padding)
    return plain and 1 <= conv.groups < shape(conv.x)[1] and _in_float32(conv)


def _in_float32(conv: Convolution) -> bool:
    return all(one is None or dtype(one) == torch.float32 for one in (conv.x, conv.weight, conv.bias, conv.node))


def _counted(conv: Convolution) -> bool:
    """Do places fit the kernel's 32 bits?"""
    one = max(math.prod(shape(conv.x)[1:]), math.prod(shape(conv.node)[1:]))
    return max(one, shape(conv.x)[0] * math.prod(conv.out)) < 2**31 - 2**16


def block_shape(conv: Convolution) -> list[int]:
    """Return channels, places and terms of a block's step, warps and stages."""
    channels = min(max(1 << (conv.channels // conv.groups - 1).bit_length(), 16), 128)
    return [channels, 128, 32 if shape(conv.weight)[1] > 16 else 16, 8 if channels > 64 else 4, 3]


def insert(at: Inserter, conv: Convolution, parts: int) -> tuple[Any, ...]:
    """Insert the weight as the kernel takes it; return the arguments up to `groups`."""
    weight = at.call(aten.reshape.default, conv.weight, list(shape(conv.weight)[:2]))
    if parts == 1:  # rounded to the nearest number of TF32; the NaN that a GPU makes, 0x7FFFFFFF, would become -0
        bits = at.call(aten.add.Scalar, at.call(aten.view.dtype, weight, torch.int32), 0x1000)
        rounded = at.call(aten.view.dtype, at.call(aten.bitwise_and.Scalar, bits, -0x2000), torch.float32)
        weight = at.call(aten.where.self, at.call(aten.isnan.default, weight), weight, rounded)
    return conv.x, weight, conv.bias, PRECISION[parts], list(conv.stride), list(conv.out), block_shape(conv), conv.groups
