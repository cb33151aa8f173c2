"""Precision: float32 matrix products on TF32 tensor cores, with float32-like error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import Edit, GraphIR, aten, dtype, edit, find, is_op, is_parameter_only, shape
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

_SPLIT = '''
def tf32_split(x, dim, low_first):
    """Return [high, low] (or [low, high]) along dim -1 or -2: two numbers that TF32 holds, high + low = x but for 2^-23 of it.

    Where x is Inf, low is NaN. The order of the two last axes in memory is kept.
    """
    turned = x.stride(-2) < x.stride(-1)
    source = x.mT if turned else x
    axis = -3 - dim if turned else dim
    size = list(source.shape)
    size[axis] *= 2
    both = source.new_empty(size)
    first, second = both.chunk(2, axis)
    high, low = (second, first) if low_first else (first, second)
    bits = high.view(torch.int32)
    torch.add(source.view(torch.int32), 0x1000, out=bits)
    bits.bitwise_and_(-0x2000)  # rounded to 10 bits of mantissa
    torch.sub(source, high, out=low)
    return both.mT if turned else both
'''

_PRODUCT = '''
def tf32x3(a, b, chunk):
    """Return x @ y for float32 matrices on tensor cores, of a = [low, high] of x and b = [high, low] of y: the three products that matter.

    A tensor core cuts its running sum off at each step, so that the error grows with the length of the sum. The large products are therefore
    summed in pieces of `chunk`, and the pieces added in rounded float32; the two small ones are one product before them.
    """
    size, k = (*a.shape[:-1], b.shape[-1]), a.shape[-1] // 2
    if b.dim() == 2:
        a, add = a.reshape(-1, 2 * k), torch.Tensor.addmm_
    else:
        a, b, add = a.flatten(0, -3), b.flatten(0, -3), torch.Tensor.baddbmm_
    flags, name, on = torch.backends.cuda.matmul, "allow_tf32", True
    try:
        allowed = flags.allow_tf32
    except RuntimeError:  # the program has set the newer flag, which torch.compile could not trace
        name, on, allowed = "fp32_precision", "tf32", flags.fp32_precision
    setattr(flags, name, on)
    try:
        sums = a @ b
        for start in range(0, k, chunk):
            stop = min(start + chunk, k)
            add(sums, a[..., k + start : k + stop], b[..., start:stop, :])
    finally:
        setattr(flags, name, allowed)
    return sums.view(size)
'''


class Split:
    """The graph's name for the generated function `tf32_split`."""

    __name__ = "tf32_split"

    def __call__(self, x: torch.Tensor, dim: int, low_first: bool) -> torch.Tensor:
        """Return what the function gives in exact arithmetic: x and zeros."""
        parts = (x, torch.zeros_like(x))
        return torch.cat(parts[::-1] if low_first else parts, dim)

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _SPLIT


class SplitProduct:
    """The graph's name for the generated function `tf32x3`."""

    __name__ = "tf32x3"

    def __call__(self, a: torch.Tensor, b: torch.Tensor, chunk: int) -> torch.Tensor:
        """Return the product that the function approximates."""
        return a @ b + a[..., a.shape[-1] // 2 :] @ b[..., : b.shape[-2] // 2, :]

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _PRODUCT


TF32_SPLIT, TF32X3 = Split(), SplitProduct()
_PRODUCTS = (aten.linear.default, aten.matmul.default, aten.mm.default, aten.bmm.default)
_LEAST_FLOPS = 1e9
"""Below this a product costs less than the passes that split its operands."""
_LEAST_INTENSITY, _MOST_PIECES, _EVEN = 256, 64, 4
"""Operations for each number that a call reads or writes, at least: a parameter is split once. With 64 and 128 of them (KernelBench's 1:9, 1:7) an
H200 took 4.7 and 4.8 ms where float32 took 2.6 and 4.1. Pieces of `chunk` terms, at most, which are summed one after the other: 1,024 and 2,048 of
them (1:6, 1:4) took 32 and 50 ms beside 1.3 and 2.4. And what sizes are multiples of for a tensor core's loads: 1:8, of odd ones, took 8.6 ms beside
6.9 (results/kernelbench_whole_h200)."""


def _flops(node: fx.Node) -> float:
    a: Any = node.args[0]
    total = 2.0 * shape(a)[-1]
    for size in shape(node):
        total *= size
    return total


@dataclass(frozen=True)
class Tf32x3:
    """a @ b  ->  (a_low @ b_high + a_high @ b_low) + a_high @ b_high in TF32, for float32 matrices with a = a_high + a_low.

    The product a_low @ b_low that is left out is 2^-22 of the result. A tensor core's running sum is cut off, not rounded (Ootomo and Yokota,
    2022, doi:10.1177/10943420221090256): summed in one piece, 18 of 19 products of KernelBench erred 2 to 20 times more than float32 on an
    H200, with an inner size of 1024 to 8192. So `chunk` bounds how long it sums, and the error goes down with it: 512 held for all but one of
    24 layers, at 1.5 to 2.0 times float32's speed; terms of one sign (two matrices of torch.rand) erred 3e-6 with it, and half of that is
    allowed. In pieces of 128 they passed and ran at 0.6 to 1.0 of float32's speed. Where a or b is Inf the product may be NaN. Operands that
    depend on the state only are split once.
    """

    tf32: bool = False
    """Does the task permit TF32 in products? There one product in it is a third of the work."""
    name: str = "tf32x3"
    chunks: tuple[int, ...] = (512, 256)
    traits: ClassVar[Traits] = Traits("S", tried_first=True)
    """It gains most where it is legal, and nothing that torch.compile does replaces it."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action a chunk, for all large float32 products of matrices together."""
        if not self.tf32 and not permits("matmul") and _large_products(ir):
            longest = max(shape(node.args[0])[-1] for node in _large_products(ir))  # type: ignore[arg-type]
            yield from (Action(self.name, params=(("chunk", chunk),)) for chunk in self.chunks if longest <= chunk * _MOST_PIECES)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every large product split, and the split of a parameter folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"expected a float32 product of at least {_LEAST_FLOPS:.0e} operations and a chunk of {self.chunks}", f"not {action}")
        e = edit(ir)
        for name in [node.name for node in _large_products(ir)]:
            node = e.node(name)
            e.replace(node, _split(e, node, int(dict(action.params)["chunk"])))
        split = e.finish()
        return FOLD.apply(split, Action(FOLD.name)) if list(FOLD.sites(split)) else split


def _large_products(ir: GraphIR) -> list[fx.Node]:
    return [node for node in find(ir, *_PRODUCTS) if dtype(node) == torch.float32 and _of_matrices(node) and _gains(node)]


def _gains(node: fx.Node) -> bool:
    """Is a product large enough, and limited by its arithmetic?"""
    operands: Any = node.args
    a, b = operands[:2]
    read = [node, a] if is_parameter_only(b) else [node, a, b]
    numbers = sum(math.prod(shape(tensor)) for tensor in read)
    flops, inner = _flops(node), shape(a)[-1]
    even = inner % _EVEN == 0 and shape(node)[-1] % _EVEN == 0 and inner <= Tf32x3.chunks[0] * _MOST_PIECES
    return even and flops >= max(_LEAST_FLOPS, _LEAST_INTENSITY * numbers)


def _of_matrices(node: fx.Node) -> bool:
    """Is b one matrix, or has a matrix of its own for each of a's?"""
    a, b = (shape(operand) for operand in node.args[:2])  # type: ignore[arg-type]
    return len(a) >= 2 and (len(b) == 2 or a[:-2] == b[:-2])


def _split(e: Edit, node: fx.Node, chunk: int) -> fx.Node:
    at = e.before(node)
    a, b = node.args[:2]
    left = at.call(TF32_SPLIT, a, -1, True)
    if not is_op(node, aten.linear):
        return at.call(TF32X3, left, at.call(TF32_SPLIT, b, -2, False), chunk)
    turned = at.call(aten.t.default, at.call(TF32_SPLIT, b, -1, False))
    product = at.call(TF32X3, left, turned, chunk)
    bias = node.args[2] if len(node.args) > 2 else None
    return at.call(aten.add.Tensor, product, bias) if bias is not None else product


@dataclass(frozen=True)
class FullPrecisionConvolutions:
    """conv(x, W) with torch's default flags (TF32 on tensor cores)  ->  the same in full float32.

    A rewrite that sums before it convolves has fewer, larger terms to round: in TF32 it may err more than the original did (KernelBench
    L2-13: 1.5 times the RMS, 2.5 times the largest error), while the convolution that is left is too small for its speed to matter. And where the
    original's convolution had no TF32 kernel, one with a merged weight may have (L2-65).
    """

    name: str = "full_precision_convolutions"
    traits: ClassVar[Traits] = Traits("S", more_exact=True)
    """What a search tries when rewrites failed by their error."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action when a convolution's input or weight is computed: one of the user's input and a parameter is as the original has it."""
        convolutions = [] if ir.scheduled(self.name) or ir.scheduled("cuda_graph") else _in_float32(ir)
        if any(isinstance(operand, fx.Node) and operand.op != "placeholder" for node in convolutions for operand in node.args[:2]):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with TF32 off in its convolutions."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        return ir.with_schedule(action)


def _in_float32(ir: GraphIR) -> list[fx.Node]:
    return [node for node in find(ir, *CONVOLUTIONS, *TRANSPOSED) if dtype(node) == torch.float32]


TECHNIQUES = (FullPrecisionConvolutions(), Tf32x3(),)
