"""Attention sinks: of each row one score more, which takes part in the softmax and whose weight is then dropped."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import fx

from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, only_user, shape
from warpwright.domains.graph.techniques.kernels.attention.forms import is_real


class Beside(NamedTuple):
    """A softmax of scores and sinks, as one row."""

    whole: fx.Node
    scores: fx.Node
    sinks: fx.Node | float


def beside_sinks(weights: fx.Node) -> Beside | None:
    """Return the softmax of which `weights` are all columns but the sinks', which is the first or the last; None for other calls.

    Its argument may be less its rows' largest: models write what softmax itself does.
    """
    if not is_op(weights, aten.slice.Tensor) or not _is_last(weights, argument(weights, "dim")) or not is_tensor(weights.args[0]):
        return None
    whole: Any = weights.args[0]
    joined = _as_they_are(whole) if is_op(whole, aten.softmax.int) and only_user(whole) is weights else None
    if joined is None:
        return None
    start, end, step = (argument(weights, name) for name in ("start", "end", "step"))
    columns = shape(joined)[-1]
    first, last, _ = slice(start, end).indices(columns)
    if step != 1 or last - first != columns - 1:
        return None
    scores, sinks = _parts(joined, first == 1)
    return Beside(whole, scores, sinks) if is_tensor(scores) and shape(scores) == shape(weights) else None


def of_rows(sinks: fx.Node, lead: Sequence[int]) -> fx.Node | None:
    """Return sinks of batch and heads as they are before they are expanded; None where the scores' axes are others."""
    while is_op(sinks, aten.expand.default) and is_tensor(sinks.args[0]) and len(shape(sinks.args[0])) == len(lead) + 2:  # type: ignore[arg-type]
        sinks = sinks.args[0]  # type: ignore[assignment]
    return sinks if len(lead) == 2 and len(shape(sinks)) == 4 else None


def _parts(joined: fx.Node, before: bool) -> tuple[Any, Any]:
    """Return the scores and the sinks that a call joins, these `before` the others or behind; (None, None) for other calls."""
    first: Any = joined.args[0]
    if is_op(joined, aten.cat.default) and len(first) == 2 and _is_last(joined, argument(joined, "dim")):
        sinks, scores = first if before else first[::-1]
        fits = is_tensor(sinks) and is_tensor(scores) and shape(sinks) == (*shape(scores)[:-1], 1)
        return (scores, sinks) if fits else (None, None)
    if is_op(joined, aten.pad.default, aten.constant_pad_nd.default) and list(argument(joined, "pad")) == ([1, 0] if before else [0, 1]):
        constant = not is_op(joined, aten.pad.default) or argument(joined, "mode") == "constant"
        return (first, float(argument(joined, "value") or 0.0)) if constant else (None, None)
    return None, None


def _as_they_are(softmax: fx.Node) -> fx.Node | None:
    """Return what a softmax is of, before a conversion, and before each row's largest is subtracted; None where others read what is between."""
    node: Any = softmax.args[0]
    if only_user(node) is None:
        return None
    if is_op(node, aten.sub.Tensor):
        x, largest = node.args[:2]
        at = largest.args[0] if isinstance(largest, fx.Node) and largest.target is operator.getitem and largest.args[1] == 0 else largest
        if not _is_largest(at, x) or argument(node, "alpha") != 1 or set(x.users) != {node, at} or only_user(largest) is None:
            return None
        node = x
    while is_op(node, aten.to.dtype) and is_real(node) and only_user(node.args[0]) is not None:
        node = node.args[0]
    return node  # type: ignore[no-any-return]


def _is_largest(node: Any, x: Any) -> bool:
    """Is it the largest of each row of x, as a column?"""
    if not is_op(node, aten.max.dim, aten.amax.default) or node.args[0] is not x or not argument(node, "keepdim"):
        return False
    axes = argument(node, "dim")
    axes = [axes] if isinstance(axes, int) else list(axes)
    return len(axes) == 1 and _is_last(x, axes[0])


def _is_last(node: fx.Node, axis: int) -> bool:
    return axis in (-1, len(shape(node)) - 1)
