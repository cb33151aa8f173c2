"""Batched products of few terms as sums element by element, so that one kernel computes them and what stands around them. CUDA only.

    bmm(x, y)  ->  x[..., 0:1] * y[..., 0:1, :] + x[..., 1:2] * y[..., 1:2, :] + ...        for x [..., m, k] and y [..., k, n] with a small k

Such a product reads and writes as much as it computes. The library has no kernel for three terms, and takes its operands as matrices, so that what is
joined or turned before it is copied once more; `fuse_cuda` reads parts of a `cat` where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, find, is_op, is_parameter_only, only_user, shape, value
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

MOST_TERMS = 4
"""Each is a multiplication of a kernel's, whose operands come from its caches."""
LEAST_ELEMENTS = 1 << 16
"""Of the result: less than that is a launch either way."""


@dataclass(frozen=True)
class _Short:
    """A product by the dimensions that its operands had before they were made matrices."""

    x: fx.Node
    y: fx.Node
    batch: list[int]
    rows: list[int]
    terms: int
    columns: list[int]
    last: fx.Node
    """What has these dimensions: the product, or the reshape after it."""


def read(node: fx.Node) -> _Short | None:
    """Return the product at a `bmm` of few terms, where it is worth it."""
    if not is_op(node, aten.bmm.default) or is_parameter_only(node):
        return None
    left, right = (node.args[0], node.args[1])
    (count, rows, terms), columns = shape(left), shape(right)[2]  # type: ignore[arg-type]
    if not 0 < terms <= MOST_TERMS or value(node).numel() < LEAST_ELEMENTS or not value(node).is_floating_point():
        return None
    reshaped = only_user(node)
    last = reshaped if reshaped is not None and is_op(reshaped, aten.reshape.default, aten.view.default) else node
    parts = _split(shape(last), (count, rows, columns)) or _split(shape(node), (count, rows, columns))
    if parts is None:
        return None
    batch, down, across = parts
    last = last if shape(last) == (*batch, *down, *across) else node
    x, y = _before(left, [*batch, *down, terms]), _before(right, [*batch, terms, *across])
    return _Short(x, y, batch, down, terms, across, last)


def _split(sizes: tuple[int, ...], products: tuple[int, ...]) -> list[list[int]] | None:
    """Return consecutive sizes with these products, of the batch (which may have none), rows and columns; None where there are none."""
    parts: list[list[int]] = []
    rest = list(sizes)
    for number, product in enumerate(products):
        part: list[int] = []
        while rest and (math.prod(part) < product or (number > 0 and not part) or number == len(products) - 1):
            part.append(rest.pop(0))
        if math.prod(part) != product or (number > 0 and not part):
            return None
        parts.append(part)
    return parts


def _before(node: Any, sizes: list[int]) -> fx.Node:
    """Return what an operand is a reshape of, where that has these sizes, or itself."""
    source = node.args[0] if is_op(node, aten.reshape.default, aten.view.default) else node
    return source if list(shape(source)) == sizes else node  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ShortProducts:
    """bmm(x, y) of at most four terms  ->  a sum of products, element by element, for every large one: a kernel's own calls."""

    name: str = "short_products"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT),))
    """Alone it would be two calls of torch's for each term."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "fuse_cuda")
        if not ir.unreadable and ir.training is None and not any(ir.scheduled(name) for name in late) and _short(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such product as a sum."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"expected a batched product of at most {MOST_TERMS} terms with a large result", f"not {action}")
        e = edit(ir)
        for name in _short(ir):
            _replace(e, e.node(name))
        return e.finish()


def _short(ir: GraphIR) -> list[str]:
    return [node.name for node in find(ir, aten.bmm.default) if read(node) is not None]


def _replace(e: Edit, node: fx.Node) -> None:
    found = read(node)
    assert found is not None
    at = e.before(node)
    x = at.shaped(found.x, [*found.batch, *found.rows, *[1] * (len(found.columns) - 1), found.terms])
    y = at.shaped(found.y, [*found.batch, *[1] * (len(found.rows) - 1), found.terms, *found.columns])
    down = -len(found.columns) - 1
    total: fx.Node | None = None
    for term in range(found.terms):
        product = _product(at, _part(at, x, len(shape(x)) - 1, term), _part(at, y, len(shape(y)) + down, term))
        total = product if total is None else at.call(aten.add.Tensor, total, product)
    assert total is not None
    e.replace(found.last, _of_kind(at, total, dtype(node)))


def _part(at: Inserter, x: fx.Node, dim: int, place: int) -> fx.Node:
    """Return x[..., place : place + 1, ...] along a dimension, taken out of what it is turned from or joined of."""
    args: Any = x.args
    if is_op(x, aten.permute.default):
        return at.call(aten.permute.default, _part(at, args[0], args[1][dim] % len(shape(x)), place), args[1])
    if is_op(x, aten.cat.default) and argument(x, "dim") % len(shape(x)) == dim:
        for part in (one for one in args[0] if shape(one) != (0,)):  # torch joins an empty vector to anything
            if place < shape(part)[dim]:
                return _of_kind(at, _part(at, part, dim, place), dtype(x))
            place -= shape(part)[dim]
    return x if shape(x)[dim] == 1 else at.call(aten.slice.Tensor, x, dim, place, place + 1)


def _of_kind(at: Inserter, x: fx.Node, kind: torch.dtype) -> fx.Node:
    return x if dtype(x) == kind else at.call(aten.to.dtype, x, kind)


def _product(at: Inserter, left: fx.Node, right: fx.Node) -> fx.Node:
    """Return left * right, of 16 bits in float32, which the library sums such in: one of them is converted, and what is of parameters alone is not,
    for no kernel would take that in."""
    wide = torch.promote_types(dtype(left), torch.float32)
    if is_parameter_only(right):
        left = _of_kind(at, left, wide)
    else:
        right = _of_kind(at, right, wide)
    return at.call(aten.mul.Tensor, left, right)


TECHNIQUES = (ShortProducts(),)
