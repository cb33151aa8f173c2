"""Products of which one side of the diagonal is kept, as that half of one, in bfloat16 and float16. CUDA only.

    tril(mm(x, w) * t)       ->  one kernel, which sums the tiles on and below the diagonal, and zeros
    triu(bmm(x, y.mT), 1)    ->  the same above it, for each of a batch

Products of triangular matrices, decays and causal scores that no softmax follows; the library computes both halves, and torch reads all of it once
more. The kernel is that of `kernels/symmetric_product.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action, digest
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, edit, find, is_op, only_user, shape, value
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.products import fused_product, product_ends
from warpwright.domains.graph.techniques.products import symmetric_product as symmetric
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_PRODUCTS = (aten.mm.default, aten.matmul.default, aten.bmm.default, aten.linear.default)


class TriangularProduct(FromFile):
    """The graph's name for a generated function: a product, the calls after it, and the side of the diagonal that is kept."""

    file = "symmetric_product"

    def __init__(self, by_rows: bool, end: Epilogue | None, kept: str, diagonal: int, blocks: list[int]) -> None:
        """`kept`: lower or upper; `blocks`: what the kernel takes as `shape`."""
        self.by_rows, self.kept, self.diagonal, self.blocks = by_rows, kept, diagonal, blocks
        self.calls = subgraph(end.calls, (end.nodes[0], *end.operands), [end.last]) if end else None
        self.text = end.text("NAME", "row, column, m, n", most=product_ends.MOST_OPERANDS) if end else ""
        self.__name__ = f"triangular_product_{digest(f'{self.text}{by_rows}{kept}{diagonal}{blocks}')[:8]}"

    @property
    def zeros(self) -> int:
        """The result before its tiles are written."""
        return 1

    def __call__(self, x: torch.Tensor, w: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        """Return what the function computes, by torch's own calls."""
        y = x @ w.mT if self.by_rows else x @ w
        y = interpret(self.calls, (y, *operands))[0] if self.calls is not None else y
        return y.tril(self.diagonal) if self.kept == "lower" else y.triu(self.diagonal)

    def python_text(self) -> str:
        """Return the end of the kernel, and the function that hands it over."""
        end = f"_end_of_{self.__name__}" if self.text else "None"
        call = f"triangular_product(x, w, {self.by_rows}, {end}, operands, {self.blocks}, {self.kept!r}, {self.diagonal})"
        return f"{self.text.replace('NAME', end)}\n\ndef {self.__name__}(x, w, *operands):\n    return {call}\n"


@dataclass(frozen=True)
class _Found:
    x: fx.Node
    w: fx.Node
    by_rows: bool
    end: Epilogue | None
    last: fx.Node
    """The call that keeps one side."""

    @property
    def kept(self) -> str:
        """Return which."""
        return "lower" if is_op(self.last, aten.tril.default) else "upper"


def read(node: fx.Node) -> _Found | None:
    """Return the square product at a call, what follows it and the side of it that is kept, where the kernel covers them and is worth it."""
    of = fused_product.operands_of(node) if is_op(node, *_PRODUCTS) else None
    if of is None or of.bias is not None or len(shape(of.x)) not in (2, 3) or len(shape(of.x)) != len(shape(of.w)):
        return None
    end = symmetric.end_of(node)
    last: Any = only_user(end.last if end else node)
    if last is None or not is_op(last, aten.tril.default, aten.triu.default):
        return None
    found, diagonal = _Found(of.x, of.w, of.by_rows, end, last), argument(last, "diagonal")
    if not isinstance(diagonal, int) or (diagonal > 0 if found.kept == "lower" else diagonal < 0):
        return None
    return found if _is_covered(node, found) else None


def _is_covered(node: fx.Node, found: _Found) -> bool:
    (m, n), k, batches = shape(node)[-2:], shape(found.x)[-1], math.prod(shape(node)[:-2])
    plain = value(found.x).is_contiguous() and value(found.w).is_contiguous()
    in_one = plain and m % symmetric.SIDE == 0 and (found.by_rows or k % symmetric.DEPTH == 0)  # a tile lies in one batch
    return m == n and (batches == 1 or in_one) and symmetric.is_worth_it(batches, m, k)


@dataclass(frozen=True)
class TriangularProducts:
    """tril(mm(x, w)), and what stands between element by element  ->  one kernel of half the operations, in bfloat16 and float16.

    Numbers stay in float32 from the sums to the last call, where the original rounds after each.
    """

    name: str = "triangular_product"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("fused_product"), fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all such products together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        if ir.training is None and not any(ir.scheduled(name) for name in late) and any(map(read, find(ir, *_PRODUCTS))):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced, with what follows."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large product in 16 bits of which tril or triu keeps one side", f"not {action}")
        e = edit(ir)
        for name in [node.name for node in find(ir, *_PRODUCTS)]:
            node = next((one for one in e.graph.nodes if one.name == name), None)
            found = read(node) if node is not None and node.users else None
            if node is not None and found is not None:
                _emit(e, node, found)
        return e.finish()


def _emit(e: Edit, node: fx.Node, found: _Found) -> None:
    operands = found.end.operands if found.end else ()
    blocks = symmetric.blocks_of(any(shape(q) == shape(node) for q in operands))
    target = TriangularProduct(found.by_rows, found.end, found.kept, int(argument(found.last, "diagonal")), blocks)
    e.replace(found.last, e.before(found.last).call(target, found.x, found.w, *operands))


TECHNIQUES = (TriangularProducts(),)
