"""Batched products of tensors as they lie: no copy puts heads beside the batch, and none puts them back. CUDA only.

    reshape(bmm(reshape(permute(x)), reshape(permute(y)))).permute(order)  ->  view_product(order, x', y')        x', y': views
    view_product(order, x, y) + view_product(order, z, w)                  ->  view_product(order, x, y, z, w)

`bmm` takes one dimension as its batch. Where heads stand behind the sequence, as [batch, length, heads, width] has them, batch and heads are no such
dimension, so that torch copies each operand and the result. The library itself only asks for one distance between matrices and one between rows:
`view_product` calls it for each head (or whatever is fewest), and it reads and writes in place.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, aten, dtype, edit, find, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

MOST_CALLS = 16
"""Of the library for one product: each takes a host 5 to 15 us."""
LEAST_BYTES = 1 << 24
"""Of a product's operands and result: copies of less than that take an H200 a launch or two."""
LEAST_SIZE = 8
"""Rows, columns and terms of each matrix: the library's kernels for less are slow, and `fuse_cuda` may do it."""


def _one_dimension(sizes, strides):  # type: ignore[no-untyped-def]
    """Return the most dimensions that all tensors hold as one, outer ones first. `strides`: of each tensor, of the same dimensions."""
    chains: list[tuple[int, ...]] = [(i,) for i in range(len(sizes))]
    joined = True
    while joined:
        joined = False
        for outer, inner in itertools.permutations(chains, 2):
            if all(one[outer[-1]] == one[inner[0]] * sizes[inner[0]] for one in strides):
                chains = [chain for chain in chains if chain not in (outer, inner)] + [outer + inner]
                joined = True
                break
    return max(chains, key=lambda chain: math.prod(sizes[i] for i in chain))


def view_product(order, *operands):  # type: ignore[no-untyped-def]
    """Return a @ b + c @ d + ... of operands a [..., m, k], b [..., k, n], c, d, ... as they lie, with the dimensions in the order `order`."""
    sizes = [*operands[0].shape[:-1], operands[1].shape[-1]]
    result = operands[0].new_empty([sizes[i] for i in order])
    placed = result.permute([order.index(i) for i in range(len(order))])
    batch = range(len(sizes) - 2)
    for number, (a, b) in enumerate(zip(operands[::2], operands[1::2], strict=True)):
        three = (a, b, placed)
        one = _one_dimension(sizes[:-2], [t.stride() for t in three])
        others = [i for i in batch if i not in one]
        count = math.prod(sizes[i] for i in one)
        for place in itertools.product(*(range(sizes[i]) for i in others)):
            x, y, z = (
                t.as_strided(
                    (count, *t.shape[-2:]), (t.stride(one[-1]), *t.stride()[-2:]),
                    t.storage_offset() + sum(at * t.stride(i) for at, i in zip(place, others, strict=True)),
                ) for t in three
            )  # fmt: skip
            if number == 0:
                torch.bmm(x, y, out=z)
            else:
                z.baddbmm_(x, y)
    return result


class ViewProduct:
    """The graph's name for the generated function `view_product`."""

    __name__ = "view_product"

    def __call__(self, order: Sequence[int], *operands: torch.Tensor) -> torch.Tensor:
        """Return what the function computes, in torch's calls."""
        products = [a @ b for a, b in zip(operands[::2], operands[1::2], strict=True)]
        return sum(products[1:], products[0]).permute(list(order)).contiguous()

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        functions = [inspect.getsource(one).replace("  # type: ignore[no-untyped-def]", "") for one in (_one_dimension, view_product)]
        return "\n\n".join(["import itertools\nimport math\n", *functions])


VIEW_PRODUCT = ViewProduct()


def calls_of(node: fx.Node) -> int:
    """Return how often a call of VIEW_PRODUCT calls the library."""
    order: Any = node.args[0]
    operands: Any = node.args[1:]
    sizes = [*shape(operands[0])[:-1], shape(operands[1])[-1]]
    placed = value(node).permute([order.index(i) for i in range(len(sizes))])
    batch = sizes[:-2]
    count = 0
    for x, y in zip(operands[::2], operands[1::2], strict=True):
        one = _one_dimension(batch, [value(x).stride(), value(y).stride(), placed.stride()])
        count += math.prod(batch) // math.prod(batch[i] for i in one)
    return count


@dataclass(frozen=True)
class _Found:
    """A product of views: its operands [..., m, k] and [..., k, n] with the same first dimensions, where they are copied from; and its last view."""

    a: tuple[fx.Node, list[int]]
    b: tuple[fx.Node, list[int]]
    last: fx.Node
    order: list[int]


def read(node: fx.Node) -> _Found | None:
    """Return the product at a `bmm` whose operands or result are copied to another order, where it can do without."""
    if not is_op(node, aten.bmm.default):
        return None
    left, right = node.all_input_nodes if len(node.all_input_nodes) == 2 else [node.all_input_nodes[0]] * 2
    (rows, terms), columns = shape(left)[1:], shape(right)[2]
    reshaped = only_user(node)
    if min(rows, terms, columns) < LEAST_SIZE or reshaped is None or not is_op(reshaped, aten.reshape.default, aten.view.default):
        return None
    batch = list(shape(reshaped))[:-2]
    if len(batch) < 2 or shape(reshaped)[-2:] != (rows, columns):
        return None
    turned = only_user(reshaped)
    permuted: Any = turned.args[1] if turned is not None and is_op(turned, aten.permute.default) else None
    last = reshaped if turned is None or permuted is None else turned
    order = list(range(len(batch) + 2)) if permuted is None else [i % (len(batch) + 2) for i in permuted]
    a, b = _before(left, [*batch, rows, terms]), _before(right, [*batch, terms, columns])
    moved = sum(value(x).nbytes for x in (left, right, node))
    copied = order != sorted(order) or any(_is_copied(side) for side in (left, right))
    if a is None or b is None or not copied or moved < LEAST_BYTES:
        return None
    return _Found(a, b, last, order)


def _before(node: Any, sizes: list[int]) -> tuple[fx.Node, list[int]] | None:
    """Return what an operand is a reshape of, which has these sizes, or itself, which is then viewed so."""
    if is_op(node, aten.reshape.default, aten.view.default) and list(shape(node.args[0])) == sizes:
        return node.args[0], sizes
    return (node, sizes) if value(node).is_contiguous() else None


def _is_copied(node: Any) -> bool:
    """Is it a reshape of what does not lie so that a view would do?"""
    if not is_op(node, aten.reshape.default) or not is_tensor(node.args[0]):
        return False
    return value(node).untyped_storage()._cdata != value(node.args[0]).untyped_storage()._cdata


@dataclass(frozen=True)
class ViewProducts:
    """Every batched product between reshapes of permuted tensors  ->  calls of the library for what lies apart; sums of such products as one.

    The same sums in the same precision; of several products what the library adds to is the sum so far.
    """

    name: str = "view_products"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("short_products"), fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        if not ir.unreadable and ir.training is None and not any(ir.scheduled(name) for name in late) and _worth_it(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product replaced."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a large batched product of tensors that are copied for it", f"not {action}")
        e = edit(ir)
        for name in _worth_it(ir):
            node = e.node(name)
            found = read(node)
            if found is not None:
                e.replace(found.last, _emit(e.before(node), found))
        for node in find(e.ir, aten.add.Tensor):
            _join(e, node)
        return e.finish()


def _worth_it(ir: GraphIR) -> list[str]:
    """Return the products that take few calls."""
    trial = edit(ir)
    names = []
    for node in find(trial.ir, aten.bmm.default):
        found = read(node)
        if found is not None and calls_of(_emit(trial.before(node), found)) <= MOST_CALLS:
            names.append(node.name)
    return names


def _emit(at: Inserter, found: _Found) -> fx.Node:
    return at.call(VIEW_PRODUCT, found.order, *(at.shaped(*side) for side in (found.a, found.b)))


def _join(e: Edit, node: fx.Node) -> None:
    """Have a sum of two such products added up by the library."""
    left, right = node.args
    both = all(isinstance(x, fx.Node) and x.target is VIEW_PRODUCT and only_user(x) is node for x in (left, right))
    if not both or left is right or left.args[0] != right.args[0] or node.kwargs.get("alpha", 1) != 1:  # type: ignore[union-attr]
        return
    if shape(left) != shape(right) or dtype(left) != dtype(right):  # type: ignore[arg-type]
        return
    e.replace(node, e.before(node).call(VIEW_PRODUCT, left.args[0], *left.args[1:], *right.args[1:]))  # type: ignore[union-attr]


TECHNIQUES = (ViewProducts(),)
