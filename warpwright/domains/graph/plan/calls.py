"""The calls of a graph as steps of a native plan: each operator that has a text of its own, the others by loops or by torch's library."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp import sums
from warpwright.domains.graph.cpp.kernel import Kernel
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value
from warpwright.domains.graph.ir.bag import BAG, SEGMENTS
from warpwright.domains.graph.plan import bags, convolutions, integers, loops, pools, products, writes
from warpwright.domains.graph.plan.builder import Builder
from warpwright.domains.graph.plan.memory import Place


def add(b: Builder, node: fx.Node) -> None:
    """Add one call; raise Unsupported with the reason where a plan cannot hold it."""
    val = node.meta["val"]
    if any(v.numel() == 0 for v in ([val] if is_tensor(node) else val) if isinstance(v, torch.Tensor)):
        raise Unsupported("a tensor without elements")
    if node.target is operator.getitem:
        b.places[node] = b.places[node.args[0]][node.args[1]]  # type: ignore[index]
    elif isinstance(node.target, Kernel):
        b.kernel(node, node.target)
    elif not b.views(node):
        write = CALLS.get(getattr(node.target, "overloadpacket", None))
        if (write is None or not write(b, node)) and not _elementwise(b, node):
            b.torch_call(node)


def _written(b: Builder, node: fx.Node, lines: Callable[[Place], Sequence[str]], *read: Place) -> bool:
    """Add a call whose one result `lines` writes to its place, reading `read`."""
    to = b.fresh(value(node))
    b.step(lines(to), to, *read)
    b.places[node] = to
    return True


def _linear(b: Builder, node: fx.Node) -> bool:
    x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    if len(shape(weight)) != 2:
        return False
    w = b.place(weight)
    return _product(b, node, b.place(x), w.viewed(w.sizes[::-1], w.strides[::-1]), b.place(bias) if bias is not None else None)


def _product(b: Builder, node: fx.Node, x: Place, w: Place, bias: Place | None) -> bool:
    """Add x w + bias, where x has any number of leading dimensions."""
    x = products.as_matrix(x, b.contiguous)
    bias = products.as_row(bias, w.sizes[1], b.contiguous) if bias is not None else None
    out = b.fresh(value(node))
    to = products.as_matrix(out, b.contiguous)
    if to.memory is not out.memory:
        raise Unsupported("a product whose result is no matrix")
    b.step(products.product(to, x, w, bias, b.handle), to, x, w, *([bias] if bias is not None else []))
    b.places[node] = out
    return True


def _mm(b: Builder, node: fx.Node) -> bool:
    return _product(b, node, b.place(node.args[0]), b.place(node.args[1]), None)


def _addmm(b: Builder, node: fx.Node) -> bool:
    c = b.place(node.args[0])
    if any(size != 1 for size in c.sizes[:-1]):
        return False
    row = c.viewed(c.sizes[-1:], c.strides[-1:])
    return _product(b, node, b.place(node.args[1]), b.place(node.args[2]), row)


def _matmul(b: Builder, node: fx.Node) -> bool:
    x, y = b.place(node.args[0]), b.place(node.args[1])
    out = value(node)
    if len(x.sizes) >= 2 and len(y.sizes) == 2:
        return _product(b, node, x, y, None)
    if len(y.sizes) == 1 and len(x.sizes) >= 2:
        y = y.viewed((*y.sizes, 1), (*y.strides, 1))
        to = b.fresh(out)
        matrix, flat = products.as_matrix(x, b.contiguous), to.viewed((to.count, 1), (1, 1))
        b.step(products.product(flat, matrix, y, None, b.handle), to, matrix, y)
        b.places[node] = to
        return True
    if len(x.sizes) < 2 or len(y.sizes) < 2:
        return False
    return _written(b, node, lambda to: products.batched(to, x, y, b.contiguous, b.handle), x, y)


def _attention(b: Builder, node: fx.Node) -> bool:
    q, k, v, mask = (argument(node, name) for name in ("query", "key", "value", "attn_mask"))
    queries, keys, values = (b.place(x) for x in (q, k, v))
    seen = b.place(mask) if mask is not None else None
    scale = argument(node, "scale")
    scale = 1 / math.sqrt(shape(q)[-1]) if scale is None else scale
    if argument(node, "enable_gqa") and shape(q)[-3] != shape(k)[-3]:
        return False
    to = b.fresh(value(node))
    lines = products.attention(to, queries, keys, values, seen, bool(argument(node, "is_causal")), float(scale), b.contiguous)
    if lines is None:
        raise Unsupported("attention of many keys or wide heads")
    b.step(lines, to, queries, keys, values, *([seen] if seen is not None else []))
    b.places[node] = to
    return True


def _sums(b: Builder, node: fx.Node, places: Sequence[Place]) -> bool:
    """Add a convolution as sums over its taps, where that is worth it."""
    groups, transposed = int(argument(node, "groups")), bool(argument(node, "transposed"))
    if shape(node)[1] // groups < products.LEAST_ROWS:
        return False
    stride, padding, dilation = (list(argument(node, name)) for name in ("stride", "padding", "dilation"))
    found = convolutions.sums(places[0].sizes, places[1].sizes, shape(node), stride, padding, dilation, transposed, groups)
    if found is None:
        return False
    number = len(b.constants)
    b.constants.append(convolutions.text(found, number))
    rooms: list[Place] = []

    def room(sizes: Sequence[int]) -> Place:
        rooms.append(b.temporary(sizes, torch.float32))
        return rooms[0]

    to, bias = b.fresh(value(node)), places[2] if len(places) > 2 else None
    b.step(convolutions.call(found, number, to, places[0], places[1], bias, groups, transposed, room), to, *places, *rooms)
    b.places[node] = to
    return True


def _convolution(b: Builder, node: fx.Node) -> bool:
    x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    if value(node).dtype != torch.float32:
        return False
    places = [b.place(item) for item in (x, weight, bias) if item is not None]
    work = value(node).numel() * math.prod(shape(weight)[1:])
    if not places[0].contiguous or not places[1].contiguous or not value(node).is_contiguous():
        return False
    if bias is not None:
        places[2] = products.as_row(places[2], shape(node)[1], b.contiguous)
    if argument(node, "transposed") or work > products.SMALL_CONVOLUTION or math.prod(shape(weight)[1:]) > products.DEEPEST:
        return _sums(b, node, places)
    groups = int(argument(node, "groups"))
    if groups > 1 and shape(weight)[0] // groups < products.LEAST_ROWS:
        return False
    to = b.fresh(value(node))
    lists = [list(argument(node, name)) for name in ("stride", "padding", "dilation")]
    filters = places[2] if bias is not None else None
    rooms: list[Place] = []

    def room(sizes: Sequence[int]) -> Place:
        rooms.append(b.temporary(sizes, torch.float32))
        return rooms[0]

    lines = products.convolution(to, places[0], places[1], filters, lists[0], lists[1], lists[2], groups, room)
    b.step(lines, to, *places, *rooms)
    b.places[node] = to
    return True


def _pool(b: Builder, node: fx.Node) -> bool:
    window = pools.read(node)
    if window is None:
        return False
    x = b.place(window.x)
    x = x if x.contiguous else b.contiguous(x)
    return _written(b, node, lambda to: pools.lines(window, to, x), x)


def _copy(b: Builder, node: fx.Node) -> bool:
    """A call that gives the same elements in the same order: reshape, contiguous, clone, and conversions."""
    source = b.place(node.args[0])
    return _written(b, node, lambda to: loops.copy(to, source), source)


def _cat(b: Builder, node: fx.Node) -> bool:
    parts: Any = [arg for arg in node.args[0] if shape(arg) != (0,)]  # type: ignore[union-attr, arg-type]
    rank, stacked = len(shape(node)), is_op(node, aten.stack)
    dim = argument(node, "dim") % rank
    to, at, lines, read = b.fresh(value(node)), 0, [], []
    for part in parts:
        source = b.place(part)
        sizes = [*source.sizes[:dim], 1, *source.sizes[dim:]] if stacked else list(source.sizes)
        steps = [*source.strides[:dim], 0, *source.strides[dim:]] if stacked else list(source.strides)
        lines += loops.copy(to.viewed(sizes, to.strides, at * to.strides[dim]), source.viewed(sizes, steps))
        at += sizes[dim]
        read.append(source)
    b.step(lines, to, *read)
    b.places[node] = to
    return True


def _embedding(b: Builder, node: fx.Node) -> bool:
    table, indices = b.place(node.args[0]), b.place(node.args[1])
    return _written(b, node, lambda to: loops.rows_of(to, table, indices, b.now), table, indices)


def _index(b: Builder, node: fx.Node) -> bool:
    source = b.place(node.args[0])
    indices = [b.place(item) if item is not None else None for item in node.args[1]]  # type: ignore[union-attr]
    read = [place for place in indices if place is not None]
    return _written(b, node, lambda to: loops.indexed(to, source, indices, b.now), source, *read)


def _index_select(b: Builder, node: fx.Node) -> bool:
    source, dim, index = b.place(node.args[0]), argument(node, "dim") % len(shape(node)), b.place(node.args[2])
    return _written(b, node, lambda to: loops.indexed(to, source, [None] * dim + [index], b.now), source, index)


def _gather(b: Builder, node: fx.Node) -> bool:
    source, dim, index = b.place(node.args[0]), argument(node, "dim") % len(shape(node)), b.place(node.args[2])
    return _written(b, node, lambda to: loops.gathered(to, source, dim, index, b.now), source, index)


def _bags(b: Builder, node: fx.Node) -> bool:
    form, table, held = bags.read(node)
    x, places = b.place(table), [b.place(item) for item in held]
    return _written(b, node, lambda to: bags.lines(form, to, x, places, b.now), x, *places)


def _at_indices(b: Builder, node: fx.Node) -> bool:
    """Sums, products, maxima and minima at places that indices choose, and elements put there."""
    try:
        form = sums.form_of(node)
    except Unsupported:
        return False
    base, index, given = b.place(node.args[0]), b.place(form.index), sums.source_of(node)
    if not base.sizes or not form.over or len(index.sizes) != len(form.over) or not form.with_own or form.how == "mean":
        return False
    sizes = tuple(index.sizes[form.over.index(d)] if d in form.over else base.sizes[form.own.index(d)] for d in range(form.dims))
    source = b.place(given) if is_tensor(given) else given
    if is_op(node, aten.index_put):
        source = source.broadcast(sizes)
    if isinstance(source, Place) and (len(source.sizes) != len(sizes) or source.dtype != base.dtype):
        return False
    read = [base, index, *([source] if isinstance(source, Place) else [])]
    return _written(b, node, lambda to: loops.joined_at(to, base, source, index, form, sizes, b.now), *read)


def _where(b: Builder, node: fx.Node) -> bool:
    if is_op(node, aten.masked_fill):
        source, condition, other = node.args
        condition, yes, no = condition, other, source
    else:
        condition, yes, no = node.args
    items: list[Any] = [b.place(item) if is_tensor(item) else item for item in (condition, yes, no)]
    return _written(b, node, lambda to: loops.pick(to, *items), *(item for item in items if isinstance(item, Place)))


def _pad(b: Builder, node: fx.Node) -> bool:
    amounts: Any = argument(node, "pad")
    if is_op(node, aten.pad) and argument(node, "mode") != "constant":
        return writes.pad(b, node)
    source, filler = b.place(node.args[0]), argument(node, "value") or 0
    to = b.fresh(value(node))
    rank = len(to.sizes)
    before = [0] * rank
    for i in range(len(amounts) // 2):
        before[rank - 1 - i] = amounts[2 * i]
    kept = [min(size, out - max(ahead, 0)) + min(ahead, 0) for size, out, ahead in zip(source.sizes, to.sizes, before, strict=True)]
    if min(amounts) < 0:
        raise Unsupported("padding that takes away")
    inner = to.viewed(kept, to.strides, sum(ahead * step for ahead, step in zip(before, to.strides, strict=True)))
    b.step([*loops.over(to.sizes, [to], f"{{0}} = {loops.number(filler, to.type)};"), *loops.copy(inner, source)], to, source)
    b.places[node] = to
    return True


def _operands(node: fx.Node, count: int) -> list[Any]:
    """Return the first `count` arguments of a call; [None] where another is not as if it were left out: alpha, decimals, a mode of rounding."""
    formals = node.target._schema.arguments  # type: ignore[union-attr]
    given = [argument(node, formal.name) for formal in formals]
    plain = len(given) >= count and all(one == formal.default_value for one, formal in zip(given[count:], formals[count:], strict=True))
    return given[:count] if plain else [None]


def _elementwise(b: Builder, node: fx.Node) -> bool:
    """Add a call of numbers, integers or masks that joined no kernel."""
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    if name not in loops.EXPRESSIONS or not is_tensor(node):
        return False
    arguments = _operands(node, loops.arity(name))
    if not all(is_tensor(a) or isinstance(a, bool | int | float) for a in arguments):
        return False
    operands = [b.place(a) if is_tensor(a) else a for a in arguments]
    computed = value(node).dtype
    if name in loops.WHOLE and not computed.is_floating_point:
        return _copy(b, node)
    if name in loops.COMPARISONS:
        vals: list[Any] = [value(a) if isinstance(a, fx.Node) else a for a in arguments]
        computed = functools.reduce(torch.promote_types, [torch.result_type(vals[0], x) for x in vals[1:]] or [vals[0].dtype])
    return _written(b, node, lambda to: loops.elementwise(name, to, operands, computed), *(item for item in operands if isinstance(item, Place)))


CALLS: Mapping[Any, Callable[[Builder, fx.Node], bool]] = {
    aten.linear: _linear, aten.mm: _mm, aten.addmm: _addmm, aten.matmul: _matmul, aten.bmm: _matmul, aten.scaled_dot_product_attention: _attention,
    aten.convolution: _convolution,
    **dict.fromkeys((
        aten.max_pool1d, aten.max_pool2d, aten.max_pool3d, aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d,
    ), _pool),
    **dict.fromkeys((aten.reshape, aten.contiguous, aten.clone, aten.flatten, aten.to, aten.view, aten._unsafe_view, aten._to_copy), _copy),
    aten.cat: _cat, aten.concat: _cat, aten.stack: _cat, aten.embedding: _embedding, aten.index: _index, aten.index_select: _index_select,
    aten.gather: _gather, BAG.overloadpacket: _bags, SEGMENTS.overloadpacket: _bags, aten.segment_reduce: _bags,
    **dict.fromkeys((
        aten.index_put, aten.index_add, aten.index_copy, aten.index_reduce, aten.index_fill, aten.scatter, aten.scatter_add, aten.scatter_reduce,
    ), _at_indices),
    aten.where: _where, aten.masked_fill: _where, aten.pad: _pad, aten.constant_pad_nd: _pad, **writes.CALLS, **integers.CALLS,
}  # fmt: skip
"""Operators with a text of their own; any other is a loop over elements, or a call of torch's library."""
