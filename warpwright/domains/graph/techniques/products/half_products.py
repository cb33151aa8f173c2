"""Products with parameters by float16 operands where TF32 is what the task or its flags permit: both have ten bits of mantissa, and float16 runs
twice as fast. CUDA only.

    x @ w  ->  (half(x * s) @ half(w * t)) / (s * t)        s a power of two for each row of x, t one for each column of w, worked out on the device

float16's range is the difference: so each row and column is scaled to its own largest element. What is cut from a parameter is cut once. Sums and
result are float32: rounded to float16 a sum of terms of one sign would lose more than all of its operands did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, aten, edit, find, is_parameter_only, shape
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.products.product import PRODUCTS, Product, read
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

_LEAST_FLOPS, _EVEN = 4e9, 8
"""Operations below which the passes cost more than they save, and what sizes are multiples of for a tensor core."""
_LEAST_INTENSITY = 256
"""Operations for each number of x and of the result: below that the passes over them cost more than they save."""
LARGEST, OF_A_PARAMETER = 14, 7
"""Powers of two that the largest element of a row of x and of a column of w are scaled to, at most: float16 ends at 65,504. The product of both is
scaled back in two steps, first by the smaller factor: the other way round what is small in the end may overflow."""

_HALF_PRODUCT = '''
def half_product(x, w, by_rows):
    """Return x @ w, or x @ w.mT, for float16 operands, summed and given in float32."""
    w = w.mT if by_rows else w
    if not x.is_cuda:
        return x.float() @ w.float()
    if w.dim() > 2:
        product = torch.bmm(x.flatten(0, -3), w.flatten(0, -3), out_dtype=torch.float32)
    else:
        product = torch.mm(x.reshape(-1, x.shape[-1]), w, out_dtype=torch.float32)
    return product.view(*x.shape[:-1], w.shape[-1])
'''


class HalfProduct:
    """The graph's name for the generated function `half_product`."""

    __name__ = "half_product"

    def __call__(self, x: torch.Tensor, w: torch.Tensor, by_rows: bool) -> torch.Tensor:
        """Return the product that the function computes."""
        return x.float() @ (w.mT if by_rows else w).float()

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _HALF_PRODUCT


HALF_PRODUCT = HalfProduct()


@dataclass(frozen=True)
class HalfProducts:
    """linear(x, w, b)  ->  half_product(half(x * s), half(w * t)) / (s * t) + b, for every large product with a float32 parameter.

    A w that is no parameter would be cut in each call: of 4,096 cubed the library's TF32 took 0.35 ms on an H200, and this 0.39.

    The verifier allows what TF32 operands would do where the task permits TF32, or the program's flags in products. Elements below 2^-38 of their
    row's largest are lost, and those below 2^-28 have fewer bits. An infinite element makes its row NaN.
    """

    tf32: bool = False
    """Does the task permit TF32 in products? Else the program's flags may."""
    name: str = "half_products"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("fused_product"), fuse_cuda(1, DEFAULT), Action("cuda_graph")))
    """Alone each pass is a call of torch's."""
    assume: str = "what goes into a product is finite"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        permitted = (self.tf32 or permits("matmul")) and "dtype" in torch.ops.aten.mm.overloads()
        if permitted and ir.training is None and not any(ir.scheduled(name) for name in late) and _large(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product in float16, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large float32 product where TF32 is permitted", f"not {action}")
        e, cut = edit(ir), dict[fx.Node, tuple[fx.Node, fx.Node]]()
        for name in _large(ir):
            _replace(e, e.node(name), cut)
        done = e.finish(self.assume)
        return FOLD.apply(done, Action(FOLD.name)) if list(FOLD.sites(done)) else done


def _large(ir: GraphIR) -> list[str]:
    return [node.name for node in find(ir, *PRODUCTS) if (product := read(node)) is not None and _is_worth_it(product)]


def _is_worth_it(product: Product) -> bool:
    left, right = shape(product.x), shape(product.right)
    if len(left) < 2 or len(right) < 2 or (len(right) > 2 and left[:-2] != right[:-2]):
        return False
    rows, k, n = math.prod(left[:-1]), left[-1], right[-2] if product.by_rows else right[-1]
    flops, moved = 2.0 * rows * k * n, rows * k + rows * n
    even = all(size % _EVEN == 0 for size in (k, n))
    return is_parameter_only(product.right) and even and flops >= _LEAST_FLOPS and flops >= _LEAST_INTENSITY * moved


def _replace(e: Edit, node: fx.Node, cut: dict[fx.Node, tuple[fx.Node, fx.Node]]) -> None:
    """Replace a product; `cut`: left operands of those before it, which are cut once, and what came of it."""
    product = read(node)
    assert product is not None
    at = e.before(node)
    if product.x not in cut:
        cut[product.x] = _halved(at, product.x, -1, LARGEST)
    x, of_x = cut[product.x]
    w, of_w = _halved(at, product.right, -1 if product.by_rows else -2, OF_A_PARAMETER)
    if product.by_rows:
        of_w = at.call(aten.reshape.default, of_w, [shape(product.right)[0]])
    small = at.call(HALF_PRODUCT, x, w, product.by_rows)
    least, most = (at.call(end, of_x, of_w) for end in (aten.minimum.default, aten.maximum.default))
    result = at.call(aten.mul.Tensor, at.call(aten.mul.Tensor, small, least), most)
    e.replace(node, at.call(aten.add.Tensor, result, product.bias) if product.bias is not None else result)


def _halved(at: Inserter, tensor: fx.Node, dimension: int, power: int) -> tuple[fx.Node, fx.Node]:
    """Return the tensor in float16, the elements along a dimension times a power of two with which the largest is at most 2^power; and the factors
    that undo it, with that dimension kept as one."""
    largest = at.call(aten.clamp_min.default, at.call(aten.amax.default, at.call(aten.abs.default, tensor), [dimension], True), 1e-30)
    back = at.call(aten.sub.Tensor, at.call(aten.ceil.default, at.call(aten.log2.default, largest)), power)
    scaled = at.call(aten.mul.Tensor, tensor, at.call(aten.exp2.default, at.call(aten.neg.default, back)))
    return at.call(aten.to.dtype, scaled, torch.float16), at.call(aten.exp2.default, back)


TECHNIQUES = (HalfProducts(),)
