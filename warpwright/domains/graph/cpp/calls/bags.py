"""Bags: rows of a table that indices choose, or rows that follow one another, joined to one row a bag by a sum, mean, maximum, minimum or product.

    embedding_bag(indices, weight, offsets, mode="mean")[0]          ->  bag(...), the one result that programs read
    segment_reduce(x, "max", lengths=n)                              ->  segments(x, "max", n, (0, cumsum(n)))

A kernel reads a bag as it reads any operand: a thread goes over the rows of the bag that its element belongs to, in order. What is no bag (one that
begins before what it holds, or ends behind it) ends the kernel, as an index out of range does. How torch's empty bags look is kept: nothing is 0 in
an embedding's, and what a segment begins with, or NaN for a mean without that, in a segment's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.calls.reading import float_result
from warpwright.domains.graph.cpp.program import FLOATS, Bag, Program, Unsupported, Value
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, edit, find, is_op, is_tensor, shape, value
from warpwright.domains.graph.ir.bag import BAG as BAG
from warpwright.domains.graph.ir.bag import MODES
from warpwright.domains.graph.ir.bag import SEGMENTS as SEGMENTS

BAGS = (BAG, SEGMENTS, aten.segment_reduce.default)
LONGEST, FEW = 256, 1 << 14
"""Rows of a bag, in the mean, from which on a thread for each few of its elements is too few, where results are fewer than that. Not measured."""


# --- one result of several -------------------------------------------------------------------------------------------------------------


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with embedding_bags of which one result is read as calls of one result, and with segments by where they begin."""
    names = [node.name for node in find(ir, aten.embedding_bag.padding_idx, aten.segment_reduce.default) if _has_another_form(node)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        node = e.node(name)
        if is_op(node, aten.segment_reduce):
            _by_offsets(e, node)
        else:
            _of_one_result(e, node)
    return e.finish()


def _has_another_form(node: fx.Node) -> bool:
    if is_op(node, aten.segment_reduce):
        lengths = argument(node, "lengths")
        plain = is_tensor(lengths) and argument(node, "offsets") is None and len(shape(lengths)) == 1 and argument(node, "axis") == 0
        return plain and not _few_and_long(shape(node.args[0])[0], shape(lengths)[0], math.prod(shape(node)))  # type: ignore[arg-type]
    plain = not argument(node, "scale_grad_by_freq") and not argument(node, "sparse")
    return plain and bool(node.users) and all(user.target is operator.getitem and user.args[1] == 0 for user in node.users)


def _of_one_result(e: Edit, node: fx.Node) -> None:
    indices, offsets, weights = (argument(node, name) for name in ("indices", "offsets", "per_sample_weights"))
    padding = argument(node, "padding_idx")
    last = bool(argument(node, "include_last_offset"))
    rows = _rows_of(indices, offsets, weights, last)
    if rows is not None:
        indices, offsets, weights = rows
    padding = padding if padding is None or padding >= 0 else padding + shape(argument(node, "weight"))[0]
    new = e.before(node).call(BAG, argument(node, "weight"), indices, offsets, argument(node, "mode"), weights, last, padding)
    for user in list(node.users):
        e.replace(user, new)


def _rows_of(indices: fx.Node, offsets: fx.Node, weights: fx.Node | None, last: bool) -> tuple[fx.Node, None, fx.Node | None] | None:
    """Return indices of two dimensions, a bag a row, where torch has made them one and offsets that say so; None elsewhere."""
    source: Any = indices.args[0] if is_op(indices, aten.reshape.default, aten.view.default) else None
    if not is_tensor(source) or len(shape(source)) != 2 or last or not is_op(offsets, aten.arange.start_step):
        return None
    start, stop, step = offsets.args[:3]
    if start != 0 or step != shape(source)[1] or stop != math.prod(shape(source)) or not shape(source)[0]:
        return None
    if weights is None:
        return source, None, None
    same = is_op(weights, aten.reshape.default, aten.view.default) and is_tensor(weights.args[0]) and shape(weights.args[0]) == shape(source)  # type: ignore[arg-type]
    return (source, None, weights.args[0]) if same else None  # type: ignore[return-value]


def _by_offsets(e: Edit, node: fx.Node) -> None:
    at, lengths = e.before(node), argument(node, "lengths")
    offsets = at.call(aten.pad.default, at.call(aten.cumsum.default, lengths, 0), [1, 0])
    unsafe, initial = argument(node, "unsafe"), argument(node, "initial")
    e.replace(node, at.call(SEGMENTS, node.args[0], argument(node, "reduce"), lengths, offsets, unsafe, initial))


# --- as an operand ---------------------------------------------------------------------------------------------------------------------


def bag(p: Program, node: fx.Node) -> Value:
    """Rows of a table, weighted or not, by indices in rows or in bags that offsets bound."""
    return _read(p, node, *form_of_rows(node, partial(_held, p)))


def segments(p: Program, node: fx.Node) -> Value:
    """Rows that follow one another, in segments that offsets bound."""
    return _read(p, node, *form_of_segments(node, partial(_held, p)))


def form_of_rows(node: fx.Node, number: Callable[[Any], int]) -> tuple[Bag, Any]:
    """Return the bags of a call of `BAG`, and the table; `number` gives the operand that holds a tensor. Unsupported for other weights."""
    table, indices, offsets, mode, weights, last, padding = (
        argument(node, name)
        for name in ("weight", "indices", "offsets", "mode", "per_sample_weights", "include_last_offset", "padding_idx")
    )
    if weights is not None and (not is_tensor(weights) or value(weights).dtype != value(table).dtype or mode != 0):
        raise Unsupported("weights of another type, or of what is no sum")
    form = Bag(
        "largest" if mode == 2 else MODES[mode], number(indices), offsets=-1 if offsets is None else number(offsets), count=shape(node)[0],
        length=shape(indices)[-1], total=math.prod(shape(indices)), last=last, weights=-1 if weights is None else number(weights),
        padding=-1 if padding is None else padding,
    )  # fmt: skip
    return form, table


def form_of_segments(node: fx.Node, number: Callable[[Any], int]) -> tuple[Bag, Any]:
    """Return the bags of a segment_reduce, and its tensor; `number` gives the operand that holds the offsets. Unsupported for other segments."""
    x, offsets, initial, how = (argument(node, name) for name in ("data", "offsets", "initial", "reduce"))
    if is_op(node, aten.segment_reduce) and (not is_tensor(offsets) or len(shape(offsets)) != 1 or argument(node, "axis") != 0):
        raise Unsupported("segments in several dimensions, or by lengths")
    if how not in _NOTHING:
        raise Unsupported(f"segments joined by {how}")
    empty = _NOTHING[how] if initial is None else float(initial)
    begin = 0.0 if how == "mean" and initial is None else empty
    whole = is_op(node, SEGMENTS) and not argument(node, "unsafe")  # torch looks at the sum of lengths
    form = Bag(
        how, offsets=number(offsets), count=shape(node)[0], total=shape(x)[0], last=True, whole=whole, begin=begin, empty=empty,
        lengths=number(argument(node, "lengths")) if is_op(node, SEGMENTS) else -1,
    )  # fmt: skip
    return form, x


_NOTHING = {"sum": 0.0, "mean": math.nan, "max": -math.inf, "min": math.inf, "prod": 1.0}
"""What an empty segment is."""


def _held(p: Program, node: Any) -> int:
    """Return the number of the operand that holds indices, offsets or weights: no element of the space has a place in it."""
    if not is_tensor(node) or value(node).dtype not in (torch.int64, torch.int32, *FLOATS):
        raise Unsupported("bags by what are no indices")
    return p.operand(node, ((),) * len(shape(node)))


def _read(p: Program, node: fx.Node, form: Bag, table: Any) -> Value:
    float_result(node)
    sizes = shape(node)
    axes = p.axes_for(sizes, p.dims)
    if len(sizes) != len(p.dims) or tuple(p.size(dim) for dim in p.dims) != sizes or math.prod(sizes) < 2:
        raise Unsupported("bags that others of the kernel read several times, or a single number")
    if not is_tensor(table) or value(table).dtype not in FLOATS:
        raise Unsupported("bags of what is no float")
    if _few_and_long(form.total, form.count, math.prod(sizes)):
        raise Unsupported("few long bags, for which a thread each is too few")
    return p.bagged(table, axes, form)


def _few_and_long(total: int, count: int, results: int) -> bool:
    return total > LONGEST * count and results < FEW
