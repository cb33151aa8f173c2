"""Dead code: results that are computed and thrown away."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

_VALUES_ONLY = {aten.max.dim: aten.amax.default, aten.min.dim: aten.amin.default}


def _match_indices(node: fx.Node) -> Any:
    if any(user.target is not operator.getitem or user.args[1] != 0 for user in node.users):
        return None
    return _VALUES_ONLY[node.target]  # type: ignore[index]


def _emit_indices(e: Edit, node: fx.Node, op: Any) -> None:
    new = e.before(node).call(op, node.args[0], [argument(node, "dim")], argument(node, "keepdim"))
    for user in list(node.users):
        e.replace(user, new)


UNUSED_INDICES = Rewrite(
    "unused_indices", Traits("D"), (aten.max.dim, aten.min.dim), _match_indices, _emit_indices,
    "values, _ = torch.max(x, dim)  ->  values = torch.amax(x, dim). The indices are never read; NaN wins in both.",
    together=True,
)  # fmt: skip


def _match_select(node: fx.Node) -> Any:
    """A selection from what acts on every position of the selected axis by itself."""
    source = node.args[0]
    if not isinstance(source, fx.Node) or len(source.users) != 1:
        return None
    dim, rank = argument(node, "dim"), len(source.meta["val"].shape) if hasattr(source.meta.get("val"), "shape") else 0
    inner = source.args[0] if source.args else None
    if source.target not in _POSITIONWISE or not isinstance(inner, fx.Node) or len(inner.meta["val"].shape) != rank:
        return None
    if dim % rank >= rank - _POSITIONWISE[source.target](source):
        return None
    return source, inner


def _emit_select(e: Edit, node: fx.Node, match: tuple[fx.Node, fx.Node]) -> None:
    source, inner = match
    at = e.before(node)
    part = at.call(node.target, inner, *node.args[1:], **node.kwargs)
    e.replace(node, at.call(source.target, part, *source.args[1:], **source.kwargs))


_POSITIONWISE: dict[Any, Any] = {
    aten.linear.default: lambda node: 1,
    aten.layer_norm.default: lambda node: len(node.args[1]),
    **dict.fromkeys(
        (aten.relu.default, aten.gelu.default, aten.silu.default, aten.sigmoid.default, aten.tanh.default, aten.exp.default),
        lambda node: 0,
    ),
}
"""Operators that act on each index of the leading axes by itself, and how many trailing axes they mix."""

SELECT_FIRST = Rewrite(
    "select_first", Traits("D"), (aten.select.int, aten.slice.Tensor), _match_select, _emit_select,
    "linear(x)[:, 0]  ->  linear(x[:, 0]), and the same for layer norms and element-wise functions: the other positions are never read.",
)  # fmt: skip

TECHNIQUES = (UNUSED_INDICES, SELECT_FIRST)
