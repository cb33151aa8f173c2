"""Strict float32 products on INT8 tensor cores: exact sums of slices, with float32's error (docs/ops.md). Hopper GPUs only."""

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
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, find, is_op, is_parameter_only, shape, value
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.products.product import PRODUCTS, Product, read
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.templates import standalone
from warpwright.templates.int8_product import LONGEST, Layout
from warpwright.tf32 import permits

_CUT = '''
def int8_cut(rows):
    """Return the memory of the INT8 slices of rows [n, k], or of several such matrices."""
    return _int8.cut(rows).memory if _on_hopper(rows) else rows.new_empty(0, dtype=torch.uint8)
'''

_LINEAR = '''
def _on_hopper(x):
    return x.is_cuda and torch.cuda.get_device_capability(x.device) == (9, 0)


def int8_linear(x, rows, slices=None):
    """Return x @ rows.T with float32's error, summed exactly from INT8 slices on a Hopper GPU; `slices`: those of the rows, cut before."""
    return _int8.linear(x, rows, slices) if _on_hopper(x) else x @ rows.mT
'''


class Int8Cut:
    """The graph's name for the generated function `int8_cut`."""

    __name__ = "int8_cut"

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return memory as large as that of the slices; what is in it only the GPU's kernels know."""
        k = rows.shape[-1]
        return rows.new_zeros(Layout.of(math.prod(rows.shape[:-1]), -(-k // 128) * 128).end, dtype=torch.uint8)

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _CUT


class Int8Linear:
    """The graph's name for the generated function `int8_linear`."""

    __name__ = "int8_linear"

    def __call__(self, x: torch.Tensor, rows: torch.Tensor, slices: torch.Tensor | None = None) -> torch.Tensor:
        """Return the product that the function computes."""
        return x @ rows.mT

    def python_text(self) -> str:
        """Return the function's text and its kernels', for the generated file."""
        return standalone.int8() + _LINEAR


INT8_CUT, INT8_LINEAR = Int8Cut(), Int8Linear()


RECORDED = Action("int8_slices", params=(("recorded", 1),))


@dataclass(frozen=True)
class Int8Slices:
    """x @ W.T  ->  the sum of the products of INT8 slices of x and W, for large float32 matrices; what depends on the state only is cut once.

    Sums of slices are exact; how many slices each tile takes follows from its rows on the device, so that the error is no larger than float32's
    (docs/ops.md). On an H200 4 to 5.5 times cuBLAS in float32 from 2,048 cubed on. Which products are worth it is `ops.worthwhile`. An inner size
    past LONGEST, whose sums could overflow, is cut in pieces that are added in float32; one that has few tiles of results beside it too, and then
    all pieces are one product of a batch. Products of batches are done where both outer sizes are multiples of 128, and the two of an attention whose
    heads are so wide (512 and more) that both gain. `recorded`: also those products that gain only within a CUDA graph, where the launches cost
    little.
    """

    tf32: bool = False
    """Does the task permit TF32 in products? There the library's, and float16 operands, are twice as fast or more."""
    name: str = "int8_slices"
    traits: ClassVar[Traits] = Traits(
        "S", tried_first=True, best_with=(Action("tf32x3"), fuse_cuda(1, DEFAULT), fuse_cuda(1, DEFAULT, 0), Action("cuda_graph"))
    )
    """Products that slices do not pay for go to `tf32x3`. What stands around a product that has become so fast is a large part of the time: biases,
    activations and norms are fused at once."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all products that gain, together, and one for more of them."""
        if self.tf32 or permits("matmul") or ir.scheduled("compile") or ir.scheduled("launch_plan") or ir.scheduled("cuda_graph"):
            return
        alone, recorded = _products(ir, ops.COSTS), _products(ir, ops.RECORDED)
        if alone:
            yield Action(self.name)
        if set(recorded) - set(alone):
            yield RECORDED

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced, and the slices of parameters folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a float32 product of matrices that is large enough to gain by slices", f"not {action}")
        e, costs = edit(ir), ops.RECORDED if action == RECORDED else ops.COSTS
        for name in _products(ir, costs):
            _replace(e, e.node(name), costs)
        sliced = e.finish()
        return FOLD.apply(sliced, Action(FOLD.name)) if list(FOLD.sites(sliced)) else sliced


def _products(ir: GraphIR, costs: ops.Costs) -> list[str]:
    nodes = [node.name for node in find(ir, *PRODUCTS) if (product := read(node)) is not None and _way(product, costs) is not None]
    return nodes + [node.name for node in find(ir, aten.scaled_dot_product_attention.default) if _attention(node, costs)]


def _attention(node: fx.Node, costs: ops.Costs) -> bool:
    """Are both products of this attention worth it? Those of wide heads only: for others a kernel of the library's never writes the scores."""
    q, k, v = (value(x) for x in node.args[:3] if isinstance(x, fx.Node))
    plain = argument(node, "attn_mask") is None and argument(node, "dropout_p") == 0 and not argument(node, "is_causal")
    if not plain or dtype(node) != torch.float32 or q.dim() < 3 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        return False
    scores = q.new_empty((*q.shape[:-1], k.shape[-2]))
    return all(ops.worthwhile(a.flatten(0, -3), b.flatten(0, -3), False, 1, costs) for a, b in ((q, k.mT), (scores, v)))


def _way(product: Product, costs: ops.Costs) -> int | None:
    """Return into how many equal pieces of a batch the inner size of a product is cut, 0 for `_pieces`, None for a product that would not gain.

    A product of batches is one in any case (1).
    """
    x, right, kept = value(product.x), value(product.right), is_parameter_only(product.right)
    if x.dim() < 2 or right.dim() < 2:
        return None
    if right.dim() > 2:
        alike = x.shape[:-2] == right.shape[:-2] and not product.by_rows
        return 1 if alike and ops.worthwhile(x.flatten(0, -3), right.flatten(0, -3), kept, 1, costs) else None
    a, b = x.reshape(-1, x.shape[-1]), right.T if product.by_rows else right
    pieces = ops.best_split(a, b, kept, costs)
    if pieces > 1 and ops.worthwhile(a, b, kept, pieces, costs):
        return pieces
    return 0 if all(ops.worthwhile(a[:, start:stop], b[start:stop], kept, 1, costs) for start, stop in _pieces(x.shape[-1])) else None


def _pieces(k: int) -> list[tuple[int, int]]:
    """Return the parts of an inner size that are each one product: as few as their length allows, whole steps of 128 but for the last."""
    count = -(-k // LONGEST)
    size = -(-k // (128 * count)) * 128 if count else k
    return [(start, min(start + size, k)) for start in range(0, k, size)] if size else [(0, 0)]


def _replace(e: Edit, node: fx.Node, costs: ops.Costs) -> None:
    if is_op(node, aten.scaled_dot_product_attention):
        _replace_attention(e, node)
        return
    product = read(node)
    assert product is not None
    at, way = e.before(node), _way(product, costs)
    total = _in_turn(at, product) if way == 0 else _in_a_batch(at, product) if way == 1 else _of_pieces(at, product, way or 1)
    e.replace(node, at.call(aten.add.Tensor, total, product.bias) if product.bias is not None else total)


def _product(at: Inserter, x: fx.Node, rows: fx.Node) -> fx.Node:
    return at.call(INT8_LINEAR, x, rows, *([at.call(INT8_CUT, rows)] if is_parameter_only(rows) else []))


def _in_turn(at: Inserter, product: Product) -> fx.Node:
    rows = product.right if product.by_rows else at.call(aten.t.default, product.right)
    pieces, total = _pieces(shape(rows)[1]), None
    for start, stop in pieces:
        x, part = product.x, rows
        if len(pieces) > 1:
            x, part = (at.call(aten.slice.Tensor, whole, len(shape(whole)) - 1, start, stop) for whole in (x, rows))
        piece = _product(at, x, part)
        total = piece if total is None else at.call(aten.add.Tensor, total, piece)
    assert total is not None
    return total


def _in_a_batch(at: Inserter, product: Product) -> fx.Node:
    leading = list(shape(product.x)[:-2])
    x, rows = (at.shaped(side, [math.prod(leading), *shape(side)[-2:]]) for side in (product.x, product.right))
    rows = rows if product.by_rows else at.call(aten.transpose.int, rows, 1, 2)
    return at.shaped(_product(at, x, rows), [*leading, shape(x)[1], shape(rows)[1]])


def _replace_attention(e: Edit, node: fx.Node) -> None:
    at, (q, k, v) = e.before(node), node.args[:3]
    scale = argument(node, "scale")
    scores = _in_a_batch(at, Product(q, k, True))  # type: ignore[arg-type]
    scaled = at.call(aten.mul.Tensor, scores, shape(q)[-1] ** -0.5 if scale is None else scale)  # type: ignore[arg-type]
    e.replace(node, _in_a_batch(at, Product(at.call(aten.softmax.int, scaled, -1), v)))  # type: ignore[arg-type]


def _of_pieces(at: Inserter, product: Product, pieces: int) -> fx.Node:
    *leading, k = shape(product.x)
    size = k // pieces
    x = at.call(aten.transpose.int, at.shaped(product.x, [math.prod(leading), pieces, size]), 0, 1)
    if product.by_rows:
        rows = at.call(aten.transpose.int, at.shaped(product.right, [shape(product.right)[0], pieces, size]), 0, 1)
    else:
        rows = at.call(aten.transpose.int, at.shaped(product.right, [pieces, size, shape(product.right)[1]]), 1, 2)
    return at.shaped(at.call(aten.sum.dim_IntList, _product(at, x, rows), [0]), [*leading, shape(rows)[1]])


TECHNIQUES = (Int8Slices(),)
