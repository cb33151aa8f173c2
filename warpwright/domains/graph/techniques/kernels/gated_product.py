"""Two products of one left operand that are joined element by element, as one kernel, in bfloat16 and float16. CUDA only.

    mul(silu(linear(x, W)), linear(x, V))             ->  one kernel, which reads x once and writes neither product
    a, b = linear(x, [W; V]).chunk(2, -1); a * gelu(b)  ->  the same, of both halves of the parameter
    half_product(x, W) ..., half_product(x, V) ...    ->  the same, from float16 to float32: what half_products.py makes of such

The gated blocks of today's transformers. The kernel is `kernels/gated_product.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action, digest
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, aten, dtype, edit, is_op, shape, value
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions import epilogue
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue, Reading
from warpwright.domains.graph.techniques.kernels import fused_product, product_ends
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.kernels.fused_product import Operands
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_ROWS, _COLUMNS = 128, 128
_TILES = 132
"""Below so many tiles, one a multiprocessor, their columns are half as many."""


def block_shape(m: int, n: int, reads: bool) -> list[int]:
    """Return what the kernel takes as `shape`; `reads`: does its end read a tensor like the result, for which shared memory is left?"""
    wide = math.ceil(m / _ROWS) * math.ceil(n / _COLUMNS) >= _TILES
    return [_ROWS, _COLUMNS if wide else _COLUMNS // 2, 64, 8, 8, 3 if reads else 4]


class GatedProduct(FromFile):
    """The graph's name for a generated function: two products of x, and the calls after them."""

    file = "gated_product"

    def __init__(self, end: Epilogue, by_rows: bool, biases: tuple[int, ...], blocks: list[int], wide: bool = False) -> None:
        """`biases`: which of the products have one, the last operands; `wide`: the result is float32, of operands of 16 bits."""
        self.by_rows, self.biases, self.blocks, self.wide = by_rows, biases, blocks, wide
        self.calls = subgraph(end.calls, (*end.nodes[:2], *end.operands), [end.last])
        self.text = end.text("NAME", "row, column, m, n", most=product_ends.MOST_OPERANDS)
        self.__name__ = f"gated_product_{digest(f'{self.text}{by_rows}{blocks}{wide}')[:8]}"

    def __call__(self, x: torch.Tensor, w: torch.Tensor, v: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        """Return what the function computes, by torch's own calls."""
        x, w, v = (x.float(), w.float(), v.float()) if self.wide else (x, w, v)
        both = [x @ (right.mT if self.by_rows else right) for right in (w, v)]
        for place, bias in zip(self.biases, operands[len(operands) - len(self.biases) :], strict=True):
            both[place] = both[place] + bias
        return interpret(self.calls, (*both, *operands))[0]  # type: ignore[no-any-return]

    def python_text(self) -> str:
        """Return the end of the kernel, and the function that hands it over."""
        end = f"_end_of_{self.__name__}"
        call = f"gated_product(x, w, v, {self.by_rows}, {end}, operands, {self.blocks}{', torch.float32' if self.wide else ''})"
        return f"{self.text.replace('NAME', end)}\n\ndef {self.__name__}(x, w, v, *operands):\n    return {call}\n"


@dataclass(frozen=True)
class _Side:
    """One of both products: a call, or columns of one, `start` to `stop`."""

    node: fx.Node
    of: Operands
    start: int = 0
    stop: int = 0

    def operands(self, at: Inserter) -> tuple[fx.Node, fx.Node | None]:
        """Return its right operand and its bias: views of the whole call's where it is a part."""
        if not self.stop:
            return self.of.w, self.of.bias
        w = at.call(aten.slice.Tensor, self.of.w, 0 if self.of.by_rows else 1, self.start, self.stop)
        return w, at.call(aten.slice.Tensor, self.of.bias, 0, self.start, self.stop) if self.of.bias is not None else None


@dataclass(frozen=True)
class _Found:
    sides: tuple[_Side, _Side]
    end: Epilogue


def read(ir: GraphIR) -> _Found | None:
    """Return the first pair of products that a kernel covers with what joins them."""
    sides = [*_sides(ir)]
    for i, first in enumerate(sides):
        for second in sides[i + 1 :]:
            if _are_alike(first, second) and (end := _end(first, second)) is not None:
                return _Found((first, second), end)
    return None


def _sides(ir: GraphIR) -> Iterator[_Side]:
    """Yield products, and parts of products that nothing else reads, in graph order."""
    for node in fused_product.starts(ir):
        of = fused_product.operands_of(node)
        if of is None or len(shape(of.w)) != 2:
            continue
        parts = [*_parts(node)]
        columns = shape(of.w)[0 if of.by_rows else 1]
        if of.bias is not None and shape(of.bias) != (columns,):
            continue
        if parts:
            yield from (_Side(part, of, i * columns // 2, (i + 1) * columns // 2) for i, part in enumerate(parts))
        else:
            yield _Side(node, of)


def _parts(node: fx.Node) -> Iterator[fx.Node]:
    """Yield both halves of a call's last dimension, the first one first, where a `chunk` or `split` in two is all that reads it."""
    if len(node.users) != 1:
        return
    [cut] = node.users
    args: Any = cut.args
    if not is_op(cut, aten.chunk.default, aten.split.Tensor) or len(args) < 3 or args[2] % len(shape(node)) != len(shape(node)) - 1:
        return
    found = {user.args[1]: user for user in cut.users if user.target is operator.getitem}
    halves = len(cut.users) == 2 == len(found) and set(found) == {0, 1} and shape(found[0]) == shape(found[1])  # type: ignore[index]
    if halves and 2 * shape(found[0])[-1] == shape(node)[-1]:  # type: ignore[index]
        yield from (found[0], found[1])  # type: ignore[index]


def _are_alike(first: _Side, second: _Side) -> bool:
    a, b = first.of, second.of
    alike = a.x is b.x and a.by_rows == b.by_rows and shape(first.node) == shape(second.node) and dtype(first.node) == dtype(second.node)
    return alike and dtype(a.w) == dtype(b.w) and (shape(first.node)[-1] * value(a.x).element_size()) % fused_product.EVEN == 0


def _end(first: _Side, second: _Side) -> Epilogue | None:
    """Return what follows both, where the kernel takes both in, and their biases."""
    reading = Reading(fused_product.load, most=product_ends.MOST_OPERANDS)
    end = epilogue.after(first.node, reading, (second.node,))
    biases = [side.of.bias for side in (first, second) if side.of.bias is not None]
    if end is None or len(end.operands) + len(biases) > product_ends.MOST_OPERANDS:
        return None
    shared = any(bias in end.operands for bias in biases) or (len({*biases}) < len(biases) and not first.stop)
    return None if shared else end


@dataclass(frozen=True)
class GatedProducts:
    """mul(silu(linear(x, W)), linear(x, V)) and its like  ->  one kernel, in bfloat16 and float16, or from float16 to float32.

    Numbers stay in float32 from the sums to the last call, where the original rounds after each.
    """

    name: str = "gated_product"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("fused_product"), fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all such pairs together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        if ir.training is None and not any(ir.scheduled(name) for name in late) and read(ir) is not None:
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such pair replaced, with what follows."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected two large products in 16 bits of one operand that are joined element by element", f"not {action}")
        e = edit(ir)
        while (found := read(e.ir)) is not None:
            _emit(e, found)
            e = edit(e.finish())
        return e.finish()


def _emit(e: Edit, found: _Found) -> None:
    (first, second), end = found.sides, found.end
    at = e.before(end.last)
    (w, bias), (v, other) = first.operands(at), second.operands(at)
    places = tuple(i for i, one in enumerate((bias, other)) if one is not None)
    for place, one in zip(places, (one for one in (bias, other) if one is not None), strict=True):
        lines = (f"v{place} = v{place} + p{len(end.operands)}", *end.lines)
        end = replace(end, operands=(*end.operands, one), loads=(*end.loads, fused_product.OF_COLUMNS), lines=lines)
    x = first.of.x
    reads = any(shape(q) == shape(first.node) for q in end.operands)
    blocks = block_shape(math.prod(shape(x)[:-1]), shape(first.node)[-1], reads)
    target = GatedProduct(end, first.of.by_rows, places, blocks, dtype(first.node) != dtype(x))
    e.replace(end.last, at.call(target, x, w, v, *end.operands))


TECHNIQUES = (GatedProducts(),)
