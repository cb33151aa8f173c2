"""Products of matrices that end with what follows them element by element, in one kernel on tensor cores. CUDA only.

    add(gelu(linear(x, W, b)), r)  ->  one kernel, whose last lines are `gelu(v + b) + r`
    relu(bmm(x, y))                ->  the same of each batch, where no tile would lie in two
    amax(silu(group_norm(linear(x, W, b), 256, v, c)), -1)  ->  the largest number of each part of a row, from one kernel (`product_ends`)
    half_product(x, W) * minimum(s, t) * maximum(s, t) + b  ->  the same, from float16 to float32: what half_products.py makes of a product

Where tiles do not fill the multiprocessors, `fill=1` takes blocks that do, or cuts the terms of some in pieces (`tiles.py`).

The library has few such ends (a bias, a ReLU, one form of GELU); torch.compile writes what follows as a kernel of its own, which reads the product
again. The kernel is `kernels/fused_product.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action, digest
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, dtype, edit, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions import epilogue
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue, Reading
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.library import untransposed
from warpwright.domains.graph.techniques.products import product_ends, tiles
from warpwright.domains.graph.techniques.products.half_products import HALF_PRODUCT
from warpwright.domains.graph.techniques.products.product_ends import RowReduction
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_LEAST_FLOPS = 1e9
"""Operations below which the library's call and one more cost no more than a launch of ours."""
_EVEN = 16
"""Bytes that rows of all tensors are multiples of, for the hardware that copies blocks of them."""
KINDS = (torch.bfloat16, torch.float16)
"""float32 in TF32 is not among them: the tensor cores cut operands off, which erred 2.6 times as much as cuBLAS's TF32 on an H200, and gained nothing
(results/fused_product_h200)."""
_PRODUCTS = (aten.linear.default, aten.addmm.default, aten.mm.default, aten.matmul.default, aten.bmm.default)


SHARED_BYTES = 227 << 10
"""Of a block on a Hopper GPU."""


def parts_of(shape: list[int], size: int, result: int, read: int) -> int:
    """Return in how many parts a tile of these blocks ends, so that its operands, what it writes and what its end reads fit shared memory. `result`,
    `read`: bytes of an element of the result, and of the largest tensor like it that the end reads, or 0: Triton moves both through it."""
    rows, columns, depth, _, _, stages = shape
    operands = stages * (rows + columns) * depth * size + 1024  # and barriers
    return 2 if operands + rows * columns // 2 * (result + read) <= SHARED_BYTES else 4


def block_shape(m: int, n: int, size: int) -> list[int]:
    """Return rows, columns and depth of a block, rows of blocks in a group, warps and stages; `size`: bytes of an element."""
    if math.ceil(m / 128) * math.ceil(n / 128) < 132:
        return [128, 64, 128 // size, 8, 4, 4]
    if size == 4 or math.ceil(m / 128) * math.ceil(n / 256) < 132:
        return [128, 128, 128 // size, 8, 8, 4]
    return [128, 256, 128 // size, 8, 8, 3]


def part_of(shape: list[int]) -> int:
    """Return the columns of a part of a tile."""
    return shape[1] // (shape[6] if len(shape) > 6 else 2)


class FusedProduct(FromFile):
    """The graph's name for a generated function: the product, and the calls after it."""

    file = "fused_product"

    def __init__(self, end: Epilogue, by_rows: bool, biased: bool, blocks: list[int], wide: bool = False, reduce: str | None = None) -> None:
        """`wide`: the result is float32, of operands of 16 bits; `reduce`: the result is what `product_ends.of_parts` says, of parts of rows."""
        self.biased, self.wide, self.reduce = biased, wide, reduce
        self.calls = subgraph(end.calls, (end.nodes[0], *end.operands), [end.last])
        self.text = end.text("NAME", "row, column, m, n", most=product_ends.MOST_OPERANDS)
        self.by_rows, self.blocks = by_rows, blocks
        self.__name__ = f"fused_product_{digest(f'{self.text}{by_rows}{blocks}{wide}{reduce}')[:8]}"

    @property
    def pieces(self) -> int:
        """In how many the terms of the tiles that do not fill the multiprocessors are cut."""
        return self.blocks[8] if len(self.blocks) > 8 else 1

    @property
    def zeros(self) -> int:
        """Counts of the pieces that have come."""
        return int(self.pieces > 1)

    def __call__(self, x: torch.Tensor, w: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        """Return what the function computes, by torch's own calls."""
        x, w = (x.float(), w.float()) if self.wide else (x, w)
        product = x @ w.mT if self.by_rows else x @ w
        y = interpret(self.calls, (product + operands[-1] if self.biased else product, *operands))[0]
        return product_ends.of_parts(y, self.reduce, part_of(self.blocks)) if self.reduce else y

    def python_text(self) -> str:
        """Return the end of the kernel, and the function that hands it over."""
        end = f"_end_of_{self.__name__}"
        more = f", None, {self.reduce!r}" if self.reduce else ", torch.float32" if self.wide else ""
        call = f"fused_product(x, w, {self.by_rows}, {end}, operands, {self.blocks}{more})"
        return f"{self.text.replace('NAME', end)}\n\ndef {self.__name__}(x, w, *operands):\n    return {call}\n"


@dataclass(frozen=True)
class _Found:
    """x [..., k] times rows of w [n, k], or w [k, n]; and what follows."""

    x: fx.Node
    w: fx.Node
    by_rows: bool
    biased: bool
    """Is the last operand of the end the product's bias?"""
    end: Epilogue
    blocks: list[int]
    """What the kernel takes as `shape`."""
    reduction: RowReduction | None


def load(operand: fx.Node, start: fx.Node) -> str | None:
    """Return how an operand is read: a number a column, a number a row, one in all, or a tensor like the result."""
    sizes = (1,) * (len(shape(start)) - len(shape(operand))) + shape(operand)
    if len(sizes) != len(shape(start)):
        return None
    if all(size == 1 for size in sizes[:-1]) and sizes[-1] in (1, shape(start)[-1]):
        at = "{q} + column" if sizes[-1] > 1 else "{q} + column * 0"
        return f"tl.load({at}, mask=column < n, other=0.0)[None, :].to(tl.float32)"
    if sizes == (*shape(start)[:-1], 1):
        return "tl.load({q} + row, mask=row < m, other=0.0)[:, None].to(tl.float32)"
    if sizes != shape(start):
        return None
    at, inside = "{q} + row.to(tl.int64)[:, None] * n + column[None, :]", "(row < m)[:, None] & (column < n)[None, :]"
    return f"tl.load({at}, mask={inside}, other=0.0).to(tl.float32)"


@dataclass(frozen=True)
class Operands:
    """What a product in 16 bits is of: x [..., k] times rows of w [n, k], or w [k, n], or as many of them as x has batches; and a bias, or None."""

    x: fx.Node
    w: fx.Node
    by_rows: bool
    bias: Any


def operands_of(node: fx.Node) -> Operands | None:
    """Return what the product at a call is of, where a kernel covers it, whatever follows."""
    bias: Any = None
    if is_op(node, aten.linear.default):
        x, w, by_rows, bias = node.args[0], node.args[1], True, argument(node, "bias")
    elif node.target is HALF_PRODUCT:
        (x, w), by_rows = node.args[:2], bool(node.args[2])
    elif is_op(node, aten.addmm.default):
        if argument(node, "beta") != 1 or argument(node, "alpha") != 1:
            return None
        (bias, x, w), by_rows = node.args[:3], False
    else:
        (x, w), by_rows = node.args[:2], False
    if not is_tensor(x) or not is_tensor(w):
        return None
    if not by_rows and (source := untransposed(w)) is not None:
        w, by_rows = source, True
    covered = _covered(node, x, w)  # type: ignore[arg-type]
    return Operands(x, w, by_rows, bias) if covered else None  # type: ignore[arg-type]


def read(node: fx.Node, fill: bool = False) -> _Found | None:
    """Return the product at a call and what follows it, where the kernel covers both; with `fill` in blocks that fill the multiprocessors, where
    these are others than the usual ones."""
    of = operands_of(node)
    if of is None:
        return None
    x, bias = of.x, of.bias
    for norms in (product_ends.NORMS, {}):
        end = epilogue.after(node, Reading(load, norms, product_ends.MOST_OPERANDS)) or Epilogue((node,), (), (), ())
        reduction = product_ends.reduction_after(end.last)
        blocks = _blocks(node, x, end, reduction, fill)
        if product_ends.widest_group(end.nodes) <= part_of(blocks):
            break
    if len(shape(of.w)) > 2 and not _lie_in_one(of, end, blocks):
        return None
    if bias is not None:
        text = load(bias, node)
        if text is None or bias in end.operands or len(end.operands) == product_ends.MOST_OPERANDS:
            return None
        lines = (f"v0 = v0 + p{len(end.operands)}", *end.lines)
        end = replace(end, operands=(*end.operands, bias), loads=(*end.loads, text), lines=lines)
    if len(end.nodes) == 1 and reduction is None:
        return None
    return _Found(of.x, of.w, of.by_rows, bias is not None, end, blocks, reduction)


def _lie_in_one(of: Operands, end: Epilogue, blocks: list[int]) -> bool:
    """Do tiles lie in one batch each, of operands that are no copies? A softmax reads scores after the library's call anyway, scaled as well."""
    reader = only_user(end.last)
    plain = value(of.x).is_contiguous() and value(of.w).is_contiguous() and not (reader is not None and is_op(reader, aten.softmax.int))
    return plain and shape(of.x)[-2] % blocks[0] == 0 and (of.by_rows or shape(of.x)[-1] % blocks[2] == 0)


def _blocks(node: fx.Node, x: fx.Node, end: Epilogue, reduction: RowReduction | None, fill: bool) -> list[int]:
    """Return the kernel's `shape` for a product that ends so."""
    size, pieces = value(x).element_size(), 1
    m, n, k = math.prod(shape(x)[:-1]), shape(node)[-1], shape(x)[-1]
    blocks = block_shape(m, n, size)
    if fill and (other := tiles.filling(m, n, k, blocks)) is not None:
        *blocks, pieces = other
    read = max((value(q).element_size() for q in end.operands if shape(q) == shape(node)), default=0)
    written = 0 if reduction is not None else value(node).element_size()
    parts = parts_of(blocks, size, max(written, 4 if pieces > 1 else 0), read)  # sums of pieces are float32
    return [*blocks, parts, 1, pieces] if pieces > 1 else [*blocks, parts] if parts > 2 else blocks


def _covered(node: fx.Node, x: fx.Node, w: fx.Node) -> bool:
    batched = len(shape(w)) > 2
    alike = len({dtype(t) for t in (x, w, *([] if node.target is HALF_PRODUCT else [node]))}) == 1
    if len(shape(x)) < 2 or len(shape(w)) < 2 or (batched and shape(w)[:-2] != shape(x)[:-2]) or not alike:
        return False
    (k, n), size = (shape(x)[-1], shape(node)[-1]), value(x).element_size()
    m = math.prod(shape(x)[:-1])
    return dtype(x) in KINDS and k * size % _EVEN == 0 and n * size % _EVEN == 0 and m < 1 << 31 and 2.0 * m * n * k >= _LEAST_FLOPS


FILLED = Action("fused_product", params=(("fill", 1),))
"""The same with blocks that fill the multiprocessors, of which some may be cut in pieces."""


@dataclass(frozen=True)
class FusedProducts:
    """linear(x, W, b) and what follows element by element, norms over groups of columns of one tile, and a reduction of rows  ->  one kernel, in
    bfloat16 and float16, or from float16 to float32; the reduction's parts are joined by a small call.

    Numbers stay in float32 from the sums to the last call, where the original rounds after each.
    """

    name: str = "fused_product"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all such products together; and one that fills the multiprocessors, where that is another for some."""
        late = ("compile", "cuda_graph", "plan", "fuse_cuda")
        if ir.training is not None or any(ir.scheduled(name) for name in late):
            return
        found = [(node, one) for node in _starts(ir) if (one := read(node)) is not None]
        if found:
            yield Action(self.name)
        if any((other := read(node, fill=True)) is not None and other.blocks != one.blocks for node, one in found):
            yield FILLED

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced, with what follows."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large product in 16 bits that element-wise calls follow", f"not {action}")
        e, fill = edit(ir), action == FILLED
        for name in [node.name for node in _starts(ir)]:
            node = next((one for one in e.graph.nodes if one.name == name), None)
            found = read(node, fill) if node is not None and node.users else None
            if node is not None and found is not None:
                _emit(e, node, found)
        return e.finish()


def _starts(ir: GraphIR) -> list[fx.Node]:
    """Return the products that kernels may compute."""
    return [node for node in ir.graph.nodes if is_op(node, *_PRODUCTS) or node.target is HALF_PRODUCT]


def _emit(e: Edit, node: fx.Node, found: _Found) -> None:
    reduction = found.reduction
    target = FusedProduct(
        found.end, found.by_rows, found.biased, found.blocks, dtype(node) != dtype(found.x), reduction.kind if reduction is not None else None,
    )  # fmt: skip
    last = reduction.node if reduction is not None else found.end.last
    call = e.before(last).call(target, found.x, found.w, *found.end.operands)
    if reduction is not None:
        reduction.emit(e, call)
    else:
        e.replace(last, call)


TECHNIQUES = (FusedProducts(),)
