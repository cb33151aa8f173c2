"""Products of a matrix and its own transpose as the half of one, in bfloat16 and float16. CUDA only.

    mm(x, x.T) / t  ->  one kernel, which sums the tiles on and below the diagonal, and writes each twice
    bmm(f, f.mT)    ->  the same, for each of a batch

Gram matrices, covariances, similarities of a batch with itself; the library computes both halves. The kernel is `kernels/symmetric_product.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import fx

from warpwright.base import Action, digest
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.cuda.plan import DEFAULT, MULTIPROCESSORS
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, dtype, edit, find, is_op, is_tensor, shape, value
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions import epilogue
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue, Reading
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.library import untransposed
from warpwright.domains.graph.techniques.products import fused_product, product_ends
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_LEAST_FLOPS = 1e10
"""Operations of the whole product, below which the library's call takes no longer than the launch of ours."""
SIDE, DEPTH, EVEN = 128, 64, 8
"""Of a tile, and what rows of x and of the result are multiples of (16 bytes)."""
_MOST = 0.8
"""Of the library's time by whole waves of tiles, ours at most: 2,048 rows are 136 tiles for 132 multiprocessors, and gain nothing."""
_PRODUCTS = (aten.mm.default, aten.matmul.default, aten.bmm.default, aten.linear.default)


class SymmetricProduct(FromFile):
    """The graph's name for a generated function: x times its own transpose, and the calls after it."""

    file = "symmetric_product"

    def __init__(self, by_rows: bool, end: Epilogue | None, blocks: list[int]) -> None:
        """`by_rows`: the product is x @ x.mT, else x.mT @ x; `blocks`: what the kernel takes as `shape`."""
        self.by_rows, self.blocks = by_rows, blocks
        self.calls = subgraph(end.calls, (end.nodes[0], *end.operands), [end.last]) if end else None
        self.text = end.text("NAME", "row, column, m, n", most=product_ends.MOST_OPERANDS) if end else ""
        self.__name__ = f"symmetric_product_{digest(f'{self.text}{by_rows}{blocks}')[:8]}"

    def __call__(self, x: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        """Return what the function computes, by torch's own calls."""
        y = x @ x.mT if self.by_rows else x.mT @ x
        return interpret(self.calls, (y, *operands))[0] if self.calls is not None else y

    def python_text(self) -> str:
        """Return the end of the kernel, and the function that hands it over."""
        end = f"_end_of_{self.__name__}" if self.text else "None"
        call = f"symmetric_product(x, {self.by_rows}, {end}, operands, {self.blocks})"
        return f"{self.text.replace('NAME', end)}\n\ndef {self.__name__}(x, *operands):\n    return {call}\n"


@dataclass(frozen=True)
class _Found:
    x: fx.Node
    by_rows: bool
    end: Epilogue | None


def tiles(m: int) -> int:
    """Return how many tiles of the result the kernel sums."""
    down = math.ceil(m / SIDE)
    return down * (down + 1) // 2


def read(node: fx.Node) -> _Found | None:
    """Return the product of a matrix and its own transpose at a call, and what follows it, where the kernel covers both and is worth it."""
    x, by_rows = _factor(node)
    if x is None or dtype(x) not in fused_product.KINDS or dtype(node) != dtype(x) or len(shape(x)) not in (2, 3):
        return None
    m, k = shape(node)[-1], shape(x)[-1 if by_rows else -2]
    batches = math.prod(shape(x)[:-2])
    whole = m % SIDE == 0 and (by_rows or k % DEPTH == 0)
    if m % EVEN or shape(x)[-1] % EVEN or (batches != 1 and not whole) or not is_worth_it(batches, m, k):
        return None
    return _Found(x, by_rows, end_of(node))


def end_of(node: fx.Node) -> Epilogue | None:
    """Return what follows a product element by element, where the kernel covers it; of products in batches no other tensors."""
    load = fused_product.load if len(shape(node)) == 2 else (lambda operand, start: None)
    return epilogue.after(node, Reading(load, most=product_ends.MOST_OPERANDS))


def _factor(node: fx.Node) -> tuple[fx.Node | None, bool]:
    """Return x and True for x @ x.mT, x and False for x.mT @ x, and None for another product."""
    if not is_op(node, *_PRODUCTS) or not all(map(is_tensor, node.args[:2])):
        return None, False
    left, right = node.args[:2]
    if is_op(node, aten.linear.default):
        return (left, True) if left is right and argument(node, "bias") is None else (None, False)  # type: ignore[return-value]
    if untransposed(right) is left:
        return left, True  # type: ignore[return-value]
    return (right, False) if untransposed(left) is right else (None, False)  # type: ignore[return-value]


def is_worth_it(batches: int, m: int, k: int) -> bool:
    """Is it quicker than the library's? By operations, and by whole waves of tiles: the library's are twice as large."""
    flops, ours = 2.0 * batches * m * m * k, batches * tiles(m)
    library = batches * math.ceil(m / SIDE) * math.ceil(m / (2 * SIDE))
    waves = [math.ceil(count / MULTIPROCESSORS) for count in (ours, library)]
    return flops >= _LEAST_FLOPS and ours >= MULTIPROCESSORS and waves[0] <= _MOST * 2 * waves[1]


def operations(x: fx.Node, y: fx.Node) -> float:
    """Return the operations of a call's tiles, those that stand idle in the last wave included."""
    count = math.prod(shape(x)[:-2]) * tiles(shape(y)[-1])
    terms = value(x).numel() // math.prod(shape(y)[:-1])
    return 2.0 * SIDE * SIDE * terms * math.ceil(count / MULTIPROCESSORS) * MULTIPROCESSORS


def blocks_of(like: bool) -> list[int]:
    """Return what the kernel takes as `shape`; `like`: does its end read a tensor like the result?"""
    return [SIDE, DEPTH, 8, 8, 4, 4 if like else 2, 1]


@dataclass(frozen=True)
class SymmetricProducts:
    """mm(x, x.T) and what follows element by element  ->  one kernel of half the operations, in bfloat16 and float16.

    Numbers stay in float32 from the sums to the last call, where the original rounds after each.
    """

    name: str = "symmetric_product"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("fused_product"), fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all such products together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        if ir.training is None and not any(ir.scheduled(name) for name in late) and any(map(read, find(ir, *_PRODUCTS))):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced, with what follows."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large product in 16 bits of a matrix and its own transpose", f"not {action}")
        e = edit(ir)
        for name in [node.name for node in find(ir, *_PRODUCTS)]:
            node = next((one for one in e.graph.nodes if one.name == name), None)
            found = read(node) if node is not None and node.users else None
            if node is not None and found is not None:
                _emit(e, node, found)
        return e.finish()


def _emit(e: Edit, node: fx.Node, found: _Found) -> None:
    last, operands = (found.end.last, found.end.operands) if found.end else (node, ())
    target = SymmetricProduct(found.by_rows, found.end, blocks_of(any(shape(q) == shape(node) for q in operands)))
    e.replace(last, e.before(last).call(target, found.x, *operands))


TECHNIQUES = (SymmetricProducts(),)
