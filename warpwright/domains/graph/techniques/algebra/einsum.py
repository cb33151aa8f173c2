"""einsum of two tensors as one matrix product, so that whatever is known of products holds for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, aten, dtype, is_tensor, shape
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


@dataclass(frozen=True)
class Product:
    """The letters of an equation by what they are: of a batch, of one operand alone, or summed over."""

    first: str
    second: str
    out: str
    batch: str
    left: str
    right: str
    summed: str


def read(equation: str) -> Product | None:
    """Return the product that an equation is, or None: other than two operands, diagonals, `...`, a letter that one operand alone sums over."""
    subscripts, arrow, out = equation.replace(" ", "").partition("->")
    operands = subscripts.split(",")
    if len(operands) != 2 or "." in equation:
        return None
    first, second = operands
    if not arrow:  # letters that occur once, in alphabetical order, capitals first
        out = "".join(sorted(letter for letter in set(first + second) if (first + second).count(letter) == 1))
    if any(len(set(letters)) != len(letters) for letters in (first, second, out)):
        return None
    if set(first) - set(second) - set(out) or set(second) - set(first) - set(out):
        return None
    batch = "".join(letter for letter in first if letter in second and letter in out)
    summed = "".join(letter for letter in first if letter in second and letter not in out)
    left, right = "".join(x for x in first if x not in second), "".join(x for x in second if x not in first)
    return Product(first, second, out, batch, left, right, summed) if summed and left and right else None


def operations(node: fx.Node) -> float:
    """Return the multiply-adds of a call that is a product, 0 for any other."""
    match = _match(node)
    return float(math.prod(match[1].values())) if match is not None else 0.0


def _match(node: fx.Node) -> Any:
    equation, operands = node.args[:2]
    product = read(equation) if isinstance(equation, str) else None
    if product is None or not isinstance(operands, list | tuple) or not all(is_tensor(x) and dtype(x) == dtype(node) for x in operands):  # type: ignore[arg-type]
        return None
    sizes: dict[str, int] = {}
    for letters, x in zip((product.first, product.second), operands, strict=True):
        for letter, size in zip(letters, shape(x), strict=True):  # type: ignore[arg-type]
            if sizes.setdefault(letter, size) != size:
                return None  # broadcast
    return (product, sizes, operands) if math.prod(sizes.values()) else None


def _emit(e: Edit, node: fx.Node, match: Any) -> None:
    product, sizes, (first, second) = match
    at = e.before(node)
    batch = [math.prod(_sizes(product.batch, sizes))] if product.batch else []
    outer = batch + ([math.prod(_sizes(product.left, sizes))] if batch else _sizes(product.left, sizes))
    inner, right = (math.prod(_sizes(letters, sizes)) for letters in (product.summed, product.right))
    a = _shaped(at, _ordered(at, first, product.first, product.batch + product.left + product.summed), [*outer, inner])
    b = _shaped(at, _ordered(at, second, product.second, product.batch + product.summed + product.right), [*batch, inner, right])
    result = at.call(aten.bmm.default if batch else aten.matmul.default, a, b)
    letters = product.batch + product.left + product.right
    e.replace(node, _ordered(at, _shaped(at, result, _sizes(letters, sizes)), letters, product.out))


def _sizes(letters: str, sizes: Mapping[str, int]) -> list[int]:
    return [sizes[letter] for letter in letters]


def _shaped(at: Inserter, x: fx.Node, sizes: Sequence[int]) -> fx.Node:
    return x if shape(x) == tuple(sizes) else at.call(aten.reshape.default, x, list(sizes))


def _ordered(at: Inserter, x: fx.Node, letters: str, wanted: str) -> fx.Node:
    return x if letters == wanted else at.call(aten.permute.default, x, [letters.index(letter) for letter in wanted])


EINSUM = Rewrite(
    "einsum_as_product", Traits("E", enabling=True, idle=True), (aten.einsum.default,), _match, _emit,
    "einsum('bijl,lk->bijk', x, y)  ->  matmul(x, y), with axes put in order before and after; with letters that both operands and the result have "
    "a batched product.",
    together=True,
)  # fmt: skip

TECHNIQUES = (EINSUM,)
