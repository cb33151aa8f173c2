"""Products as kernels of ours take them: linear, addmm and the others read as one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import argument, aten, dtype, is_op

PRODUCTS = (aten.linear.default, aten.matmul.default, aten.mm.default, aten.addmm.default, aten.bmm.default)


@dataclass(frozen=True)
class Product:
    """x [..., k] times `right` [..., k, n], which is [n, k] where `by_rows`; plus `bias`."""

    x: fx.Node
    right: fx.Node
    by_rows: bool = False
    bias: Any = None


def read(node: fx.Node) -> Product | None:
    """Return the product that a call of PRODUCTS is, or None for one that is not of float32, or multiplies its bias or its result by a number."""
    if dtype(node) != torch.float32:
        return None
    if is_op(node, aten.linear):
        return Product(node.args[0], node.args[1], True, argument(node, "bias"))  # type: ignore[arg-type]
    if is_op(node, aten.addmm):
        plain = argument(node, "beta") == 1 and argument(node, "alpha") == 1
        return Product(node.args[1], node.args[2], False, node.args[0]) if plain else None  # type: ignore[arg-type]
    return Product(node.args[0], node.args[1])  # type: ignore[arg-type]
