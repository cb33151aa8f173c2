"""Strict float32 products by three products of TF32 halves, in one kernel: those that INT8 slices do not pay for. CUDA only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import fx

from warpwright import ops
from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, aten, edit, find, shape
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.products.product import PRODUCTS, Product, read
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.templates import standalone
from warpwright.templates.tf32x3 import LARGE, SHORT, SMALL, parts
from warpwright.tf32 import permits

_TEXT = '''
def tf32x3(a, b):
    """Return a @ b with float32's error, on tensor cores."""
    return _tf32x3.matmul(a, b)
'''


class Tf32x3Product:
    """The graph's name for the generated function `tf32x3`."""

    __name__ = "tf32x3"

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return the product that the function computes."""
        return a @ b

    def python_text(self) -> str:
        """Return the function's text and its kernel's, for the generated file."""
        return standalone.tf32x3() + _TEXT


TF32X3 = Tf32x3Product()
MULTIPROCESSORS = 132
RATE, MEMORY, LAUNCH = 56e12 / MULTIPROCESSORS, 3.6e12, 5e-6
"""Operations a second of a multiprocessor of an H200, bytes a second with which results are written, and what a call takes besides."""
GAIN, EVEN, OF_TERMS = 0.955, 4, 16
"""A product is taken where it should need at most this share of cuBLAS's time; it is 4 to 21 % faster where it is taken. What sizes are multiples of:
4,099 x 777 x 2,951 took 1.24 times cuBLAS's time."""


@dataclass(frozen=True)
class Tf32x3:
    """x @ W  ->  three products of TF32 halves of both, in one kernel, for float32 matrices.

    The error is float32's (templates/tf32x3.cu). On an H200 1.04 to 1.21 times as fast as cuBLAS in float32 (results/tf32x3_h200), where INT8 slices
    are 4 to 5 times as fast; those need 512 terms and more, Hopper, and passes over both operands, and this one needs none of that.
    """

    tf32: bool = False
    """Does the task permit TF32 in products? There one product in it is a third of the work."""
    name: str = "tf32x3"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), fuse_cuda(1, DEFAULT, 0), Action("cuda_graph")))
    """It gains most where it is legal, and nothing that torch.compile does replaces it."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all products that gain, together."""
        late = ("compile", "launch_plan", "cuda_graph")
        if not self.tf32 and not permits("matmul") and ir.training is None and not any(ir.scheduled(name) for name in late) and _products(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a float32 product of matrices that is large enough to gain by three products of TF32", f"not {action}")
        e = edit(ir)
        for name in _products(ir):
            node = e.node(name)
            product = read(node)
            assert product is not None
            at = e.before(node)
            right = at.call(aten.transpose.int, product.right, -2, -1) if product.by_rows else product.right
            result = at.call(TF32X3, product.x, right)
            e.replace(node, at.call(aten.add.Tensor, result, product.bias) if product.bias is not None else result)
        return e.finish()


def _products(ir: GraphIR) -> list[str]:
    return [node.name for node in find(ir, *PRODUCTS) if (product := read(node)) is not None and _gains(product, node)]


def _gains(product: Product, node: fx.Node) -> bool:
    """Is it a product of matrices that should be faster than the library's?"""
    x, right = shape(product.x), shape(product.right)
    if len(x) < 2 or len(right) < 2 or 0 in (*x, *right) or (len(right) > 2 and x[:-2] != right[:-2]):
        return False
    n, k = right[-2:] if product.by_rows else right[:-3:-1]
    if n % EVEN or k % OF_TERMS:
        return False
    batches = math.prod(right[:-2])
    m = math.prod(x[:-1]) // batches
    return seconds(batches, m, n, k) <= GAIN * library_seconds(batches, m, n, k)


def seconds(batches: int, m: int, n: int, k: int) -> float:
    """Return what the kernel should take on an H200 for `batches` products of m x k and k x n."""
    tile = SMALL if k <= SHORT else LARGE
    tiles = batches * -(-m // tile.rows) * -(-n // tile.columns)
    cut = parts(tiles, k, MULTIPROCESSORS)
    waves = -(-tiles * cut * tile.rows * tile.columns // (MULTIPROCESSORS * LARGE.rows * LARGE.columns))
    arithmetic = waves * 2.0 * LARGE.rows * LARGE.columns * -(-k // cut) / RATE
    return LAUNCH + arithmetic + 4.0 * batches * (2 * cut - 1) * m * n / MEMORY


def library_seconds(batches: int, m: int, n: int, k: int) -> float:
    """Return what cuBLAS takes in float32: its arithmetic, then the result (1:7 and 1:9 of KernelBench: 4.1 and 2.6 ms of an H200)."""
    return 2e-6 * batches * m * n * k / ops.COSTS.cublas + 4.0 * batches * m * n / MEMORY


TECHNIQUES = (Tf32x3(),)
