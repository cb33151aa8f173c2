"""Small products with parameters as sums of rows, so that one kernel computes a product and what stands around it. CUDA only.

    relu(linear(x, w, b))  ->  kernel(x, w, b)        kernel: relu(sum(x[:, None] * w[None], -1) + b)

What such a product costs is its call: on an H200 host a call of the library and one of ours behind it took 40 to 70 us where fourteen other processes
were busy, and one call of ours alone 12 to 20 (results/cuda_l1_beside_h200). `fuse_cuda` makes the kernel; its sums are formed in double.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, aten, edit, find, is_parameter_only, shape
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.products.product import PRODUCTS, Product, read
from warpwright.errors import NotApplicable
from warpwright.space import Traits

MOST_TERMS = 1 << 20
"""Multiplications of a product. Each reads two numbers from the caches: 8 MB, about 2 us of an H200 (predicted, not measured)."""


@dataclass(frozen=True)
class SmallProducts:
    """linear(x, w, b)  ->  sum(x[..., None, :] * w, -1) + b, for every small float32 product with a parameter: a kernel's own calls."""

    name: str = "small_products"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), fuse_cuda(1, DEFAULT, 0)))
    """Alone it would be two calls of torch's in place of one, and a tensor of all terms."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        if not ir.unreadable and ir.training is None and not any(ir.scheduled(name) for name in (self.name, *late)) and _small(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product as a sum, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a float32 product with a parameter, of few terms", f"not {action}")
        e = edit(ir)
        for name in _small(ir):
            _replace(e, e.node(name))
        done = e.finish().with_schedule(action)
        return FOLD.apply(done, Action(FOLD.name)) if list(FOLD.sites(done)) else done


def _small(ir: GraphIR) -> list[str]:
    return [node.name for node in find(ir, *PRODUCTS) if (product := read(node)) is not None and _is_small(product)]


def _is_small(product: Product) -> bool:
    """Is it a product with a matrix or a vector that is a parameter, of few terms?"""
    left, right = shape(product.x), shape(product.right)
    if len(left) < 2 or len(right) > 2 or not is_parameter_only(product.right) or is_parameter_only(product.x):
        return False
    columns = 1 if len(right) < 2 else right[0] if product.by_rows else right[1]
    return 0 < math.prod(left) * columns <= MOST_TERMS


def _replace(e: Edit, node: fx.Node) -> None:
    product = read(node)
    assert product is not None
    at, x, rows = e.before(node), product.x, product.right
    if len(shape(rows)) > 1:
        x = at.call(aten.unsqueeze.default, x, -2)
        if not product.by_rows:  # once for each state of the parameters: they are folded
            rows = at.call(aten.contiguous.default, at.call(aten.transpose.int, rows, 0, 1))
    result = at.call(aten.sum.dim_IntList, at.call(aten.mul.Tensor, x, rows), [-1])
    e.replace(node, at.call(aten.add.Tensor, result, product.bias) if product.bias is not None else result)


TECHNIQUES = (SmallProducts(),)
