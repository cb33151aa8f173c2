"""Precision: float32 matrix products on TF32 tensor cores, with float32-like error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import Edit, GraphIR, aten, dtype, edit, find, is_op, shape
from warpwright.domains.graph.techniques.convolution import CONVOLUTIONS, TRANSPOSED
from warpwright.errors import NotApplicable

_TEXT = '''
def tf32x3(a, b):
    """a @ b for float32 matrices: each is split into two TF32 numbers, and the three products that matter are summed on tensor cores.

    One product over three times the inner size, so that the sum stays in the accumulator: [low, high, high] @ [high, low, high].
    """

    def split(x):
        high = ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)  # round to 10 bits of mantissa
        high = torch.where(x.isfinite() & high.isfinite(), high, x)
        return high, torch.where(high.isfinite(), x - high, torch.zeros_like(x))

    a_high, a_low = split(a)
    b_high, b_low = split(b)
    left, right = torch.cat([a_low, a_high, a_high], -1), torch.cat([b_high, b_low, b_high], -2)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return left @ right
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
'''


class SplitProduct:
    """The graph's name for the generated function `tf32x3`."""

    __name__ = "tf32x3"

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return the product that the function approximates."""
        return a @ b

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _TEXT


TF32X3 = SplitProduct()
_PRODUCTS = (aten.linear.default, aten.matmul.default, aten.mm.default, aten.bmm.default)
_LEAST_FLOPS = 1e9
"""Below this a product costs less than the passes that split its operands."""


def _flops(node: fx.Node) -> float:
    a: Any = node.args[0]
    total = 2.0 * shape(a)[-1]
    for size in shape(node):
        total *= size
    return total


@dataclass(frozen=True)
class Tf32x3:
    """a @ b  ->  (a_low @ b_high + a_high @ b_low) + a_high @ b_high in TF32, for float32 matrices with a = a_high + a_low.

    The product a_low @ b_low that is left out is 2^-22 of the result. Inf and NaN stay where they were.
    """

    name: str = "tf32x3"
    legality: str = "S"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all large float32 products of matrices together."""
        if _large_products(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every large product split."""
        names = [node.name for node in _large_products(ir)]
        if not names:
            raise NotApplicable(f"expected a float32 product of at least {_LEAST_FLOPS:.0e} operations, saw none")
        e = edit(ir)
        for name in names:
            node = e.node(name)
            e.replace(node, _split(e, node))
        return e.finish()


def _large_products(ir: GraphIR) -> list[fx.Node]:
    return [
        node for node in find(ir, *_PRODUCTS)
        if dtype(node) == torch.float32 and len(shape(node)) >= 2 and min(len(shape(a)) for a in node.args[:2]) >= 2  # type: ignore[arg-type]
        and _flops(node) >= _LEAST_FLOPS
    ]  # fmt: skip


def _split(e: Edit, node: fx.Node) -> fx.Node:
    at = e.before(node)
    a, b = node.args[:2]
    if not is_op(node, aten.linear):
        return at.call(TF32X3, a, b)
    turned = at.call(aten.t.default, b)
    product = at.call(TF32X3, a, turned)
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
    legality: str = "S"
    more_exact: bool = True
    """What a search tries when rewrites failed by their error."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action when a convolution's input or weight is computed: one of the user's input and a parameter is as the original has it."""
        convolutions = [] if ir.scheduled(self.name) or ir.scheduled("cuda_graph") else find(ir, *CONVOLUTIONS, *TRANSPOSED)
        if any(isinstance(operand, fx.Node) and operand.op != "placeholder" for node in convolutions for operand in node.args[:2]):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with TF32 off in its convolutions."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        return ir.with_schedule(action)


TECHNIQUES = (FullPrecisionConvolutions(), Tf32x3(),)
