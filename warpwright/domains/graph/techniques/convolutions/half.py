"""Convolutions with float16 operands where TF32 is what the program's flags permit: both have ten bits of mantissa, and float16 runs twice as fast.

    conv(x, w)  ->  conv(half(x * s), half(w * t)) / (s * t)        s, t powers of two, worked out on the device

float16's range is the difference: so each sample of x, and the weight, is scaled to its largest element, and together so far that not even a sum of
products of largest elements can overflow. That takes a pass over x, which a kernel of ours makes at the bandwidth's limit, and the turn to channels
last, which cuDNN's tensor cores want anyway, writes two bytes an element in place of four. What the result loses by being float16 is about what its
operands lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, aten, dtype, edit, find, shape, value
from warpwright.domains.graph.techniques.convolutions.convolution import (
    CONVOLUTIONS,
    TRANSPOSED,
    Convolution,
    convolve,
    convolve_transposed,
    read,
)
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

FEW_CHANNELS = (3, 4)
"""Of the input, which zeros make eight: a colour image, or a volume of such. `direct_convolution` is proposed for these too."""
MOST_GROUPS = 8
"""So many at most are done as one, with zeros between them. cuDNN does grouped ones at 1.4 to 21 TFLOP/s (KernelBench's level 1, 72, 73, 75): eight
times the operations are few at the tensor cores' rate."""
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_LEAST_FLOPS, _EVEN, _FEW = 4e9, 8, 16
"""Operations below which passes cost more than they save; what channels have to be a multiple of for a tensor core; and the fewest of the input, for
below that `direct_convolution` has a kernel that reads x once."""
LARGEST = 15
"""Power of two that no sum reaches: float16 ends at 65,504."""
MOST_OF_X = 12
"""Power of two that the largest element of x is scaled to, at most: what is left of the range is for what lies below it."""


@dataclass(frozen=True)
class HalfConvolutions:
    """conv2d(x, w, b)  ->  conv2d(half(x * s), half(w * t)).float() / (s * t) + b, for every large convolution.

    s is a power of two of each sample, t one of the weight. The verifier allows what TF32 operands would do, where torch's flags permit them in
    convolutions (its default). Elements below 2^-30 of their sample's largest are lost. Infinite elements make all of their sample's result NaN.
    """

    name: str = "half_convolutions"
    tf32: bool = False
    """Does the task permit TF32, whatever torch's flags say?"""
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT),))
    """Alone each pass is a call of torch's."""
    assume: str = "what goes into a convolution is finite"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "channels_last", "full_precision_convolutions", "fuse_cuda")
        permitted = self.tf32 or permits("conv")
        if permitted and ir.training is None and not any(ir.scheduled(name) for name in late) and _large(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such convolution in float16, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large float32 convolution", f"not {action}")
        e = edit(ir)
        for name in [conv.node.name for conv in _large(ir)]:
            _replace(e, e.node(name))
        done = e.finish(self.assume)
        return FOLD.apply(done, Action(FOLD.name)) if list(FOLD.sites(done)) else done


def _large(ir: GraphIR) -> list[Convolution]:
    found = [conv for node in find(ir, *CONVOLUTIONS, *TRANSPOSED) if (conv := read(node)) is not None]
    return [conv for conv in found if _is_worth_it(conv)]


def _is_worth_it(conv: Convolution) -> bool:
    channels = shape(conv.x)[1]
    even = conv.channels % _EVEN == 0 and (channels in FEW_CHANNELS or (channels % _EVEN == 0 and channels >= _FEW))
    if math.prod(conv.kernel) * math.prod(conv.stride) == 1 and not any(conv.padding) and conv.d <= 2:
        return False  # a product of matrices as it stands, whose bytes are what it takes: passes around it move twice as many (L1-87 9.1 ms, and 3.5)
    plain = value(conv.x).is_contiguous() and all(dtype(node) == torch.float32 for node in (conv.x, conv.weight, conv.node))
    return even and conv.groups <= MOST_GROUPS and plain and conv.flops >= _LEAST_FLOPS


def _replace(e: Edit, node: fx.Node) -> None:
    conv = read(node)
    assert conv is not None
    at, line = e.before(node), conv.d == 1
    given, weight = conv.x, _dense(at, conv)
    if line:  # as an image of one row: channels that come last are known for two axes
        given, weight = (at.call(aten.unsqueeze.default, tensor, 2) for tensor in (given, weight))
    terms = math.prod(shape(weight)) // conv.channels
    room = LARGEST - math.ceil(math.log2(terms))
    of_x = min(max(room, 0), MOST_OF_X)
    more_channels = -shape(given)[1] % _EVEN
    x, x_power = _halved(at, given, of_x, [0, 0] * (len(shape(given)) - 2) + [0, more_channels], each=True)
    behind = [0, 0] * (len(shape(weight)) - 2 + conv.transposed)
    small_weight, weight_power = _halved(at, weight, room - of_x, [*behind, 0, more_channels])
    stride, dilation = ((*(1,) * line, *steps) for steps in (conv.stride, conv.dilation))
    padding, more = ((*(0,) * line, *sizes) for sizes in (conv.padding, conv.output_padding))
    if conv.transposed:
        small = convolve_transposed(at, x, small_weight, None, stride, padding, more, dilation)
    else:
        small = convolve(at, x, small_weight, None, stride, padding, dilation)
    if line:
        small, x_power = (at.call(aten.squeeze.dim, tensor, 2) for tensor in (small, x_power))
    back = at.call(aten.exp2.default, at.call(aten.add.Tensor, x_power, weight_power))
    result = at.call(aten.mul.Tensor, at.call(aten.to.dtype, small, torch.float32), back)
    if conv.bias is not None:
        lifted = at.call(aten.reshape.default, conv.bias, [conv.channels, *[1] * conv.d])
        result = at.call(aten.add.Tensor, result, lifted)
    e.replace(node, result)


def _dense(at: Inserter, conv: Convolution) -> fx.Node:
    """Return the weight of a convolution in one group, with zeros between the groups."""
    if conv.groups == 1:
        return conv.weight
    first, second, *kernel = shape(conv.weight)
    apart = at.call(aten.reshape.default, conv.weight, [conv.groups, first // conv.groups, second, *kernel])
    last = at.call(aten.permute.default, apart, [*range(1, len(kernel) + 3), 0])
    blocks = at.call(aten.diag_embed.default, last, 0, 0, 2)  # [groups, first of one, groups, second, ...]
    return at.call(aten.reshape.default, blocks, [first, conv.groups * second, *kernel])


def _halved(at: Inserter, tensor: Any, power: int, zeros: list[int], each: bool = False) -> tuple[fx.Node, fx.Node]:
    """Return the tensor times a power of two, in float16 and channels last, its largest element at most 2^power; and the power that undoes it.

    `zeros`: how many stand around it, as torch's pad takes them. `each`: a power for each sample, whose other axes stay with size 1.
    """
    axes = list(range(int(each), len(shape(tensor))))
    largest = at.call(aten.clamp_min.default, at.call(aten.amax.default, at.call(aten.abs.default, tensor), axes, each), 1e-30)
    back = at.call(aten.sub.Tensor, at.call(aten.ceil.default, at.call(aten.log2.default, largest)), power)
    factor = at.call(aten.pow.Scalar, 2.0, at.call(aten.neg.default, back))  # no kernel takes this call: one that reduces cannot turn
    scaled = at.call(aten.mul.Tensor, tensor, factor)
    last = _FORMATS[len(shape(tensor))]
    if not any(zeros):
        return at.call(aten.to.dtype, scaled, torch.float16, memory_format=last), back
    around = at.call(aten.constant_pad_nd.default, at.call(aten.to.dtype, scaled, torch.float16), zeros)
    apart = at.call(aten.view.dtype, around, torch.float16)  # no kernel takes this call: one that pads cannot turn
    return at.call(aten.contiguous.default, apart, memory_format=last), back


TECHNIQUES = (HalfConvolutions(),)
