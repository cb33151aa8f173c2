"""Convolutions with float16 operands where TF32 is what the program's flags permit: both have ten bits of mantissa, and float16 runs twice as fast.

    conv(x, w)  ->  conv(half(x * s), half(w * t)) / (s * t)        s, t powers of two, worked out on the device

float16's range is the difference: so each operand is scaled to its largest element, and together so far that not even a sum of products of largest
elements can overflow. That takes a pass over x, which a kernel of ours makes at the bandwidth's limit, and the turn to channels last, which cuDNN's
tensor cores want anyway, writes two bytes an element in place of four. What the result loses by being float16 is about what its operands lost.
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
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED, Convolution, read
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

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
    """conv2d(x, w, b)  ->  conv2d(half(x * s), half(w * t)).float() / (s * t) + b, for every large convolution over two or three axes.

    The verifier allows what TF32 operands would do, where torch's flags permit them in convolutions (its default). Elements below 2^-30 of the
    largest are lost. Infinite elements make all of the result NaN.
    """

    name: str = "half_convolutions"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT),))
    """Alone each pass is a call of torch's."""
    assume: str = "what goes into a convolution is finite"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "plan", "channels_last", "full_precision_convolutions", "fuse_cuda")
        if ir.training is None and not any(ir.scheduled(name) for name in late) and _large(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such convolution in float16, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large float32 convolution over two or three axes", f"not {action}")
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
    even = channels % _EVEN == 0 and conv.channels % _EVEN == 0 and conv.groups == 1 and channels >= _FEW
    plain = value(conv.x).is_contiguous() and all(dtype(node) == torch.float32 for node in (conv.x, conv.weight, conv.node))
    return even and plain and conv.d in (2, 3) and conv.flops >= _LEAST_FLOPS


def _replace(e: Edit, node: fx.Node) -> None:
    conv = read(node)
    assert conv is not None
    at, terms = e.before(node), math.prod(shape(conv.weight)) // conv.channels
    room = LARGEST - math.ceil(math.log2(terms))
    of_x = min(max(room, 0), MOST_OF_X)
    x, x_power = _halved(at, conv.x, of_x)
    weight, weight_power = _halved(at, conv.weight, room - of_x)
    arguments = [x, weight, None, *node.args[3:]]
    small = at.call(node.target, *arguments, **{name: given for name, given in node.kwargs.items() if name not in ("input", "weight", "bias")})
    back = at.call(aten.exp2.default, at.call(aten.add.Tensor, x_power, weight_power))
    result = at.call(aten.mul.Tensor, at.call(aten.to.dtype, small, torch.float32), back)
    if conv.bias is not None:
        lifted = at.call(aten.reshape.default, conv.bias, [conv.channels, *[1] * conv.d])
        result = at.call(aten.add.Tensor, result, lifted)
    e.replace(node, result)


def _halved(at: Inserter, tensor: Any, power: int) -> tuple[fx.Node, fx.Node]:
    """Return the tensor times a power of two, in float16 and channels last, its largest element at most 2^power; and the power that undoes it."""
    largest = at.call(aten.clamp_min.default, at.call(aten.amax.default, at.call(aten.abs.default, tensor), list(range(len(shape(tensor))))), 1e-30)
    back = at.call(aten.sub.Tensor, at.call(aten.ceil.default, at.call(aten.log2.default, largest)), power)
    factor = at.call(aten.pow.Scalar, 2.0, at.call(aten.neg.default, back))  # no kernel takes this call: one that reduces cannot turn
    scaled = at.call(aten.mul.Tensor, tensor, factor)
    return at.call(aten.to.dtype, scaled, torch.float16, memory_format=_FORMATS[len(shape(tensor))]), back


TECHNIQUES = (HalfConvolutions(),)
