"""Convolutions of one tap by a kernel that reads x as it lies, with the depthwise convolution before them where that is one.

    relu(conv(relu6(conv(x, u, groups=channels)), w))  ->  one kernel; what lies between is never written

A part of `implicit_convolution`, which takes all convolutions of a program that kernels of ours are worth: those of one tap do not want x cut and
turned first. The kernel is `kernels/pointwise_convolution.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.base import digest
from warpwright.domains.graph import kernels
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.ir import Inserter, aten, dtype, only_user, shape
from warpwright.domains.graph.techniques.convolutions import ends, epilogue
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution, read
from warpwright.domains.graph.techniques.convolutions.ends import End, Ended
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue

LEAST_BYTES = 64 << 20
"""Of x and the result: 16 us of an H200, and a launch from Python takes its host 20 to 50."""
MOST_TERMS = {"tf32": 256, "tf32x3": 96}
"""Of a sum beyond which products, not bytes, are what the kernel takes (by the rates of `direct_convolution`, which reads x alike): then the pass
that cuts x is worth it, if the result has about as many channels."""
MOST_TAPS = 32
"""Of a depthwise convolution, whose neighbours are read from L1."""
PRECISION = {1: "tf32", 2: "tf32x3"}
"""By float16 numbers an operand that the other kernel would have."""


@dataclass(frozen=True)
class Pointwise:
    """A convolution of one tap; `first`: the depthwise one before it, `middle` what stands between."""

    conv: Convolution
    first: Convolution | None = None
    middle: Epilogue | None = None

    @property
    def x(self) -> fx.Node:
        """What is read."""
        return self.first.x if self.first else self.conv.x


class PointwiseConvolution(Ended):
    """The graph's name for a generated function: the convolutions, and the calls between and after."""

    function = "pointwise_convolution"
    own = "x, w, bias, precision, stride, places, blocks, groups, first, pool, pooled, into, within, between"

    def __init__(self, end: End | None, middle: Epilogue | None = None, statistics: str = "") -> None:
        self.between = subgraph(middle.nodes[1:], (middle.nodes[0], *middle.operands), [middle.last]) if middle else None
        self.middle = middle.text("MIDDLE") if middle else ""
        super().__init__(end, statistics, self.middle)

    def __call__(
        self, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, precision: str, stride: list[int], places: list[int], blocks: list[int],
        groups: int, first: Sequence[Any] | None, pool: list[int], pooled: str, into: torch.Tensor | None, within: list[int],
        between: Sequence[torch.Tensor], *operands: torch.Tensor,
    ) -> Any:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        d, steps = len(stride), stride
        call: Any = (torch.conv1d, torch.conv2d, torch.conv3d)[d - 1]
        if first:
            u, of_u, padding, dilation = first
            x, steps = call(x, u[:, None], of_u, stride, padding, dilation, u.shape[0]), [1] * d
            x = interpret(self.between, (x, *between))[0] if self.between else x
        y = call(x, w.reshape(*w.shape, *[1] * d), bias, steps, 0, 1, groups)
        return self.ended(y, operands, into, within, blocks[1] // math.prod(pool or [1]))

    @property
    def shared_text(self) -> str:
        """The function's text and its kernels', which stand in a generated file once."""
        return kernels.text("pointwise_convolution")

    def python_text(self) -> str:
        """Return the ends of both convolutions, and the function that hands them over."""
        text = super().python_text()
        return f"{self.middle.replace('MIDDLE', f'_middle_of_{self.__name__}')}\n\n{text}" if self.middle else text

    def _given(self) -> str:
        given = "x, w, bias, precision, stride, places, blocks, groups, first, pool, pooled, into, within, between=between"
        return f"{given}, middle=_middle_of_{self.__name__}" if self.middle else given


def find(node: fx.Node, parts: int) -> Pointwise | None:
    """Return the convolution that the kernel computes and is worth, of which `node` is the (last) call; None where there is none."""
    conv = read(node)
    if conv is None or not _of_one_tap(conv):
        return None
    found = _after_depthwise(conv) or Pointwise(conv)
    if 4 * (math.prod(shape(found.x)) + math.prod(shape(node))) < LEAST_BYTES or not _counted(found):
        return None
    end = ends.after(node)
    gains = found.first is not None or max(conv.stride) > 1 or conv.groups > 1
    gains = gains or end.last is not end.start or ends.is_joined(node) or _is_normed(node)
    short = shape(conv.weight)[1] <= MOST_TERMS[PRECISION[parts]] or 4 * conv.channels < 3 * shape(conv.x)[1]
    return found if gains and (short or found.first is not None) else None


def _is_normed(node: fx.Node) -> bool:
    return any(user.target is aten.batch_norm.default for user in node.users)


def _of_one_tap(conv: Convolution) -> bool:
    plain = not conv.transposed and math.prod(conv.kernel) == 1 and not any(conv.padding)
    return plain and 1 <= conv.groups < shape(conv.x)[1] and _in_float32(conv)


def _in_float32(conv: Convolution) -> bool:
    return all(one is None or dtype(one) == torch.float32 for one in (conv.x, conv.weight, conv.bias, conv.node))


def _counted(found: Pointwise) -> bool:
    """Do places fit the kernel's 32 bits?"""
    one = max(math.prod(shape(found.x)[1:]), math.prod(shape(found.conv.node)[1:]))
    return max(one, shape(found.x)[0] * math.prod(found.conv.out)) < 2**31 - 2**16


def _after_depthwise(conv: Convolution) -> Pointwise | None:
    """Return a convolution of one tap with the depthwise one before it, which nothing else reads."""
    if conv.groups != 1 or max(conv.stride) > 1:
        return None
    source = conv.x
    for start in (source, *_sources(source)):
        first = read(start)
        if first is None or first.transposed or not first.groups == shape(first.x)[1] == first.channels > 1 or not _in_float32(first):
            continue
        middle = epilogue.after(start)
        alone = only_user(middle.last if middle else start) is conv.node and (middle.last if middle else start) is source
        if alone and 1 < math.prod(first.kernel) <= MOST_TAPS and conv.channels <= 256:
            return Pointwise(conv, first, middle)
    return None


def _sources(node: fx.Node) -> list[fx.Node]:
    """Return the calls that `node` is made of by calls of one tensor of its size, the nearest first."""
    found = list[fx.Node]()
    while node.op == "call_function" and node.target in epilogue.TABLE and len(found) < 8:
        same = [arg for arg in node.all_input_nodes if isinstance(arg.meta.get("val"), torch.Tensor) and shape(arg) == shape(node)]
        if not same:
            break
        node = same[0]
        found.append(node)
    return found


def block_shape(found: Pointwise) -> list[int]:
    """Return channels, places and terms of a block's step, warps and stages."""
    of_group = found.conv.channels // found.conv.groups
    channels = min(max(1 << (of_group - 1).bit_length(), 16), 256 if found.first else 128)
    if found.first:
        return [channels, 128 if channels <= 128 else 64, 16, 8, 1]  # one stage: neighbours come from L1, not through shared memory
    return [channels, 128, 32 if shape(found.conv.weight)[1] > 16 else 16, 8 if channels > 64 else 4, 3]


def insert(at: Inserter, found: Pointwise, parts: int) -> tuple[tuple[Any, ...], list[int]]:
    """Insert the weight as the kernel takes it; return the arguments up to `first`, and the block's shape."""
    conv, first = found.conv, found.first
    weight = at.call(aten.reshape.default, conv.weight, list(shape(conv.weight)[:2]))
    if parts == 1:  # rounded to the nearest number of TF32
        bits = at.call(aten.add.Scalar, at.call(aten.view.dtype, weight, torch.int32), 0x1000)
        weight = at.call(aten.view.dtype, at.call(aten.bitwise_and.Scalar, bits, -0x2000), torch.float32)
    given = None
    if first is not None:
        u = at.call(aten.reshape.default, first.weight, [first.channels, *first.kernel])
        given = [u, first.bias, list(first.padding), list(first.dilation)]
    blocks = block_shape(found)
    stride = (first or conv).stride
    return (found.x, weight, conv.bias, PRECISION[parts], list(stride), list(conv.out), blocks, conv.groups, given), blocks


def key(found: Pointwise) -> str:
    """Return what is equal for convolutions that share a compiled kernel but for their ends."""
    conv, first = found.conv, found.first
    known = (shape(found.x), shape(conv.weight), conv.stride, conv.groups, first and (first.kernel, first.stride, first.padding, first.dilation))
    return digest(repr(known))
