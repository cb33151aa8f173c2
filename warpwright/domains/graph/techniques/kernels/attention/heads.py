"""Keys and values that several query heads share, as they are before they are written once for each of those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape
from warpwright.domains.graph.techniques.kernels.attention.forms import Attention

_RESHAPES = (aten.reshape.default, aten.view.default, aten.flatten.using_ints)


def unspread(found: Attention) -> Attention:
    """Return an attention of batch and heads with its keys and values as they are before they are spread; as it is where they are not."""
    if len(found.lead) != 2:
        return found
    k, v = (_before(x) for x in (found.k, found.v))
    return replace(found, k=k, v=v) if k is not None and v is not None and shape(k)[:2] == shape(v)[:2] else found


def _before(node: fx.Node) -> fx.Node | None:
    """Return [b, kv, n, d] of which each head stands several times, one after the other, in `node` [b, heads, n, d]."""
    if len(shape(node)) != 4:
        return None
    if is_op(node, *_RESHAPES):  # transformers' repeat_kv
        wide: Any = node.args[0]
        parts = shape(wide)
        joined = len(parts) == 5 and shape(node) == (parts[0], parts[1] * parts[2], *parts[3:])
        x = _of_one(wide, 2) if joined else None
        return _without(x, 2) if x is not None else None
    times = _interleaved(node, 1)
    return times if times is not None else _of_one(node, 1)


def _of_one(node: Any, axis: int) -> fx.Node | None:
    """Return x with one element along this axis, which stands there several times in `node`, and no other axis of it does."""
    x = _interleaved(node, axis)
    if x is None and is_op(node, aten.expand.default, aten.repeat.default) and is_tensor(node.args[0]):
        x = node.args[0]
    sizes = shape(node)
    return x if x is not None and shape(x) == (*sizes[:axis], 1, *sizes[axis + 1 :]) else None


def _interleaved(node: Any, axis: int) -> fx.Node | None:
    """Return what each element of stands several times along this axis, one after the other."""
    if not is_op(node, aten.repeat_interleave.self_int) or argument(node, "dim") is None or argument(node, "dim") % len(shape(node)) != axis:
        return None
    return node.args[0]  # type: ignore[no-any-return]


def _without(node: fx.Node, axis: int) -> fx.Node | None:
    """Return x of which `node` is x with one axis of one element more."""
    if not is_op(node, aten.unsqueeze.default, *_RESHAPES) or not is_tensor(node.args[0]):
        return None
    sizes = shape(node)
    return node.args[0] if shape(node.args[0]) == (*sizes[:axis], *sizes[axis + 1 :]) else None  # type: ignore[return-value, arg-type]
