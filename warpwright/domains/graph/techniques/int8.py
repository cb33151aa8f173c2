"""Strict float32 products on INT8 tensor cores: exact sums of slices, with float32's error (docs/ops.md). Hopper GPUs only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright import ops
from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, dtype, edit, find, is_op, is_parameter_only, shape, value
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.templates import standalone
from warpwright.templates.int8_product import LONGEST, Layout

_CUT = '''
def int8_cut(rows):
    """Return the memory of the INT8 slices of rows [n, k]."""
    return _int8.cut(rows).memory if _on_hopper(rows) else rows.new_empty(0, dtype=torch.uint8)
'''

_LINEAR = '''
def _on_hopper(x):
    return x.is_cuda and torch.cuda.get_device_capability(x.device) == (9, 0)


def int8_linear(x, rows, slices=None):
    """Return x @ rows.T with float32's error, summed exactly from INT8 slices on a Hopper GPU; `slices`: those of the rows, cut before."""
    return _int8.linear(x, rows, slices) if _on_hopper(x) else torch.nn.functional.linear(x, rows)
'''


class Int8Cut:
    """The graph's name for the generated function `int8_cut`."""

    __name__ = "int8_cut"

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return memory as large as that of the slices; what is in it only the GPU's kernels know."""
        n, k = rows.shape
        return rows.new_zeros(Layout.of(n, -(-k // 128) * 128).end, dtype=torch.uint8)

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _CUT


class Int8Linear:
    """The graph's name for the generated function `int8_linear`."""

    __name__ = "int8_linear"

    def __call__(self, x: torch.Tensor, rows: torch.Tensor, slices: torch.Tensor | None = None) -> torch.Tensor:
        """Return the product that the function computes."""
        return torch.nn.functional.linear(x, rows)

    def python_text(self) -> str:
        """Return the function's text and its kernels', for the generated file."""
        return standalone.int8() + _LINEAR


INT8_CUT, INT8_LINEAR = Int8Cut(), Int8Linear()
_PRODUCTS = (aten.linear.default, aten.matmul.default, aten.mm.default, aten.addmm.default)


@dataclass(frozen=True)
class Int8Slices:
    """x @ W.T  ->  the sum of the products of INT8 slices of x and W, for large float32 matrices; what depends on the state only is cut once.

    Sums of slices are exact; how many slices each tile takes follows from its rows on the device, so that the error is no larger than float32's
    (docs/ops.md). On an H200 4 to 5.5 times cuBLAS in float32 from 2,048 cubed on. Which products are worth it is `ops.worthwhile`. An inner size
    past LONGEST, whose sums could overflow, is cut in pieces that are added in float32.
    """

    name: str = "int8_slices"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT),))
    """What stands around a product that has become so fast is a large part of the time: biases, activations and norms are fused at once."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all products that gain, together."""
        if not (ir.scheduled("compile") or ir.scheduled("cuda_graph")) and _products(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced, and the slices of parameters folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a float32 product of matrices that is large enough to gain by slices", f"not {action}")
        e = edit(ir)
        for name in _products(ir):
            _replace(e, e.node(name))
        sliced = e.finish()
        return FOLD.apply(sliced, Action(FOLD.name)) if list(FOLD.sites(sliced)) else sliced


@dataclass(frozen=True)
class _Product:
    """x [..., k] times `right`, which is [n, k] where `by_rows` and else [k, n]; plus `bias`."""

    x: fx.Node
    right: fx.Node
    by_rows: bool
    bias: Any = None


def _read(node: fx.Node) -> _Product | None:
    if dtype(node) != torch.float32:
        return None
    if is_op(node, aten.linear):
        return _Product(node.args[0], node.args[1], True, argument(node, "bias"))  # type: ignore[arg-type]
    if is_op(node, aten.addmm):
        plain = argument(node, "beta") == 1 and argument(node, "alpha") == 1
        return _Product(node.args[1], node.args[2], False, node.args[0]) if plain else None  # type: ignore[arg-type]
    return _Product(node.args[0], node.args[1], False)  # type: ignore[arg-type]


def _products(ir: GraphIR) -> list[str]:
    names = []
    for node in find(ir, *_PRODUCTS):
        product = _read(node)
        if product is None or len(shape(product.x)) < 2 or len(shape(product.right)) != 2:
            continue
        x, right = value(product.x), value(product.right)
        kept = is_parameter_only(product.right)
        a, b = x.reshape(-1, x.shape[-1]), right.T if product.by_rows else right
        if all(ops.worthwhile(a[:, start:stop], b[start:stop], kept) for start, stop in _pieces(x.shape[-1])):
            names.append(node.name)
    return names


def _pieces(k: int) -> list[tuple[int, int]]:
    """Return the parts of an inner size that are each one product: as few as their length allows, whole steps of 128 but for the last."""
    count = -(-k // LONGEST)
    size = -(-k // (128 * count)) * 128 if count else k
    return [(start, min(start + size, k)) for start in range(0, k, size)] if size else [(0, 0)]


def _replace(e: Edit, node: fx.Node) -> None:
    product = _read(node)
    assert product is not None
    at = e.before(node)
    rows = product.right if product.by_rows else at.call(aten.t.default, product.right)
    pieces = _pieces(shape(rows)[1])
    total: fx.Node | None = None
    for start, stop in pieces:
        x, part = product.x, rows
        if len(pieces) > 1:
            x, part = (at.call(aten.slice.Tensor, whole, len(shape(whole)) - 1, start, stop) for whole in (x, rows))
        arguments = [x, part, *([at.call(INT8_CUT, part)] if is_parameter_only(product.right) else [])]
        piece = at.call(INT8_LINEAR, *arguments)
        total = piece if total is None else at.call(aten.add.Tensor, total, piece)
    assert total is not None
    e.replace(node, at.call(aten.add.Tensor, total, product.bias) if product.bias is not None else total)


TECHNIQUES = (Int8Slices(),)
