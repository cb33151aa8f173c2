"""What the kernel of `fused_product` can end with beside calls element by element: a norm over few neighbouring columns, and a reduction of rows.

    group_norm(linear(x, W), 256)  ->  in the tile: its groups lie in one part of it
    logsumexp(linear(x, W), -1)    ->  logsumexp(parts, -1), where the kernel gives that of each part of a row, and not the product

A reduction of the reductions of parts is that of the whole row, whichever of these it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten, dtype, is_op, only_user, shape
from warpwright.domains.graph.techniques.convolutions.epilogue import Text

MOST_OPERANDS = 8
"""Tensors that the kernel's end reads: two scales, a bias, a norm's two, and what else stands there."""
REDUCTIONS: Mapping[Any, str] = {
    aten.sum.dim_IntList: "sum", aten.mean.dim: "sum", aten.amax.default: "amax", aten.amin.default: "amin", aten.logsumexp.default: "logsumexp",
}  # fmt: skip
"""aten overload -> what each part of a row is reduced to."""
_NEUTRAL = {"sum": 0.0, "amax": float("-inf"), "amin": float("inf"), "logsumexp": float("-inf")}


def group_size(node: fx.Node) -> int:
    """Return how many columns a group norm of rows takes together; 0 for another call, and for groups that no tile holds."""
    if not is_op(node, aten.group_norm.default) or len(shape(node)) != 2:
        return 0
    size = int(shape(node)[1] // argument(node, "num_groups"))
    return size if size > 1 and size & (size - 1) == 0 else 0


def widest_group(nodes: Iterable[fx.Node]) -> int:
    """Return the most columns that a norm among these calls takes together, or 0."""
    return max(map(group_size, nodes), default=0)


def _group_norm(node: fx.Node, names: Sequence[str]) -> str | None:
    if not group_size(node) or any(isinstance(given, fx.Node) for given in node.kwargs.values()):
        return None
    weight, bias = (names[i] if len(names) > i else "" for i in (2, 3))
    text = f"_normed({names[0]}, {group_size(node)}, {float(argument(node, 'eps'))!r})"
    return f"{text}{f' * {weight}' if weight else ''}{f' + {bias}' if bias else ''}"


NORMS: Mapping[Any, Text] = {aten.group_norm.default: _group_norm}


@dataclass(frozen=True)
class RowReduction:
    """A reduction of rows that is all that reads them."""

    node: fx.Node

    @property
    def kind(self) -> str:
        """What each part of a row is reduced to."""
        return REDUCTIONS[self.node.target]

    def emit(self, e: Edit, parts: fx.Node) -> None:
        """Put the reduction of parts [..., parts] in the place of that of rows."""
        at, op = e.before(self.node), self.node.target
        keepdim = bool(argument(self.node, "keepdim"))
        result = at.call(aten.sum.dim_IntList if self.kind == "sum" else op, parts, [-1], keepdim)
        if op is aten.mean.dim:
            result = at.call(aten.mul.Scalar, result, 1.0 / shape(self.node.args[0])[-1])  # type: ignore[arg-type]
        kind = dtype(self.node)
        e.replace(self.node, result if kind == dtype(result) else at.call(aten.to.dtype, result, kind))


def reduction_after(last: fx.Node) -> RowReduction | None:
    """Return the reduction that alone reads this call's rows, if there is one."""
    node = only_user(last)
    if node is None or node.target not in REDUCTIONS or node.args[0] is not last or dtype(node) != dtype(last):
        return None
    dims: Any = argument(node, "dim")
    dims = [dims] if isinstance(dims, int) else list(dims or ())
    rank = len(shape(last))
    return RowReduction(node) if [dim % rank for dim in dims] == [rank - 1] else None


def of_parts(y: torch.Tensor, kind: str, width: int) -> torch.Tensor:
    """Return the reduction of each part of rows of y [..., n], in float32 (float64 for that) [..., parts], as the kernel gives it."""
    y = y if y.dtype == torch.float64 else y.float()
    y = F.pad(y, (0, -y.shape[-1] % width), value=_NEUTRAL[kind]).unflatten(-1, (-1, width))
    if kind == "sum":
        return y.sum(-1)
    return y.logsumexp(-1) if kind == "logsumexp" else y.amax(-1) if kind == "amax" else y.amin(-1)
