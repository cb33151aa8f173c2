"""A product with a diagonal matrix is a product with its diagonal, element by element."""

from __future__ import annotations

from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten, dtype, is_op, is_tensor, shape
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


def _diagonal(node: Any) -> fx.Node | None:
    """Return what stands on the diagonal of a matrix that is made of it, the main one."""
    if (is_op(node, aten.diag.default) and argument(node, "diagonal") == 0) or (is_op(node, aten.diag_embed.default) and _is_main(node)):
        inner = node.args[0]
        return inner if is_tensor(inner) and len(shape(inner)) == 1 else None
    return None


def _is_main(node: fx.Node) -> bool:
    return argument(node, "offset") == 0 and {argument(node, "dim1"), argument(node, "dim2")} in ({-2, -1}, {0, 1})


def _match(node: fx.Node) -> Any:
    left, right = node.args[:2]
    for number, (matrix, other) in enumerate(((left, right), (right, left))):
        diagonal = _diagonal(matrix)
        if diagonal is not None and is_tensor(other) and len(shape(other)) > 1 and dtype(other) == dtype(diagonal):  # type: ignore[arg-type]
            return diagonal, other, number == 0
    return None


def _emit(e: Edit, node: fx.Node, match: Any) -> None:
    diagonal, other, rows = match
    at = e.before(node)
    e.replace(node, at.call(aten.mul.Tensor, at.call(aten.unsqueeze.default, diagonal, 1) if rows else diagonal, other))


DIAGONAL_PRODUCT = Rewrite(
    "diagonal_product", Traits("E"), (aten.matmul.default, aten.mm.default), _match, _emit,
    "diag(a) @ b  ->  a[:, None] * b,  b @ diag(a)  ->  b * a: all other terms are 0 for finite b.",
    assume="a product with a diagonal matrix: the other factor is finite",
)  # fmt: skip

TECHNIQUES = (DIAGONAL_PRODUCT,)
