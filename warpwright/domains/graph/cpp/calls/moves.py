"""Calls that put elements in other places: parts, rolls, gathers, views."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.calls.reading import build, float_result, name_of
from warpwright.domains.graph.cpp.program import Program, Unsupported, Value
from warpwright.domains.graph.ir import argument, is_tensor, shape, value

MOST_PARTS, COSTLY = 8, 120
"""Parts that one kernel puts together, each of which every element passes; and the cycles that all may take to compute."""


def cat(p: Program, node: fx.Node) -> Value:
    """Parts along a dimension: each is computed for all elements, and read where it lies."""
    float_result(node)
    parts: Any = node.args[0]
    rank = len(shape(node))
    d = argument(node, "dim") % rank
    dims = p.axes_for(shape(node), p.dims)
    if len(parts) > MOST_PARTS or any(not is_tensor(part) or len(shape(part)) != rank or value(part).dtype != value(node).dtype for part in parts):
        raise Unsupported("many parts, or parts of several kinds")
    joined: Value | None = None
    cost, end = 0, shape(node)[d]
    for part in reversed(parts):
        start = end - shape(part)[d]
        x = p.part_of(part, partial(build, p), [(dims[d], start, end - start)])
        joined = x if joined is None else p.op("pick({0}, {1}, {2})", p.within(dims[d], start, end), x, joined)
        cost, end = cost + x.cost, start
    if joined is None or cost > COSTLY:
        raise Unsupported("parts that take long to compute")
    return p.op("{0}", joined)


def pad(p: Program, node: fx.Node) -> Value:
    """A part, and a number around it."""
    float_result(node)
    x: Any = node.args[0]
    pads: Any = node.args[1]
    mode = argument(node, "mode") if name_of(node) == "pad" else "constant"
    number = argument(node, "value")
    if mode != "constant" or not isinstance(x, fx.Node) or not isinstance(pads, list | tuple) or min([0, *pads]) < 0:
        raise Unsupported("padding other than by a constant")
    dims = p.axes_for(shape(node), p.dims)
    windows = []
    for back in range(len(pads) // 2):
        before, after = pads[2 * back : 2 * back + 2]
        if before or after:
            windows.append((dims[-1 - back], before, shape(x)[-1 - back]))
    padded = p.part_of(x, partial(build, p), windows)
    for dim, start, size in windows:
        padded = p.op("pick({0}, {1}, {2})", p.within(dim, start, start + size), padded, p.op("{0}", p.const(number or 0)))
    return padded


def roll(p: Program, node: fx.Node) -> Value:
    float_result(node)
    x, shifts, dims = node.args[0], node.args[1], argument(node, "dims")
    if not isinstance(x, fx.Node) or not dims or len(set(dims)) != len(dims):
        raise Unsupported("a roll of the whole as one row")
    rank = len(shape(x))
    return p.rolled(x, [(d % rank, shift) for d, shift in zip(dims, shifts, strict=True) if shift % shape(x)[d]])  # type: ignore[arg-type]


def gather(p: Program, node: fx.Node) -> Value:
    """Embedding, index_select, and indexing by tensors that stand next to one another."""
    float_result(node)
    x: Any = node.args[0]
    index_list: Any = node.args[1]
    if name_of(node) == "index":
        chosen = {d: index for d, index in enumerate(index_list) if index is not None}
    elif name_of(node) == "index_select":
        chosen = {index_list % len(shape(x)): node.args[2]}
    else:
        chosen = {0: index_list}
    first, count, sizes = min(chosen), len(chosen), shape(x)
    if list(chosen) != list(range(first, first + count)) or not all(map(is_tensor, chosen.values())):
        raise Unsupported("indexing by tensors that stand apart")
    shared = tuple(torch.broadcast_shapes(*map(shape, chosen.values())))
    axes = p.axes_for((*sizes[:first], *shared, *sizes[first + count :]), p.dims)
    over = axes[first : first + len(shared)]
    own = (*axes[:first], *((),) * count, *axes[first + len(shared) :])
    indices = [(d, index, p.axes_for(shape(index), over)) for d, index in chosen.items()]
    return p.gathered(x, axes, own, indices, signed=name_of(node) == "index")


def gather_along(p: Program, node: fx.Node) -> Value:
    """torch.gather: an index for each element."""
    float_result(node)
    x: Any = node.args[0]
    index: Any = node.args[2]
    sizes, d = shape(x), argument(node, "dim") % len(shape(x))
    if any(one != other for i, (one, other) in enumerate(zip(sizes, shape(index), strict=True)) if i != d):
        raise Unsupported("a gather from a part")
    axes = p.axes_for(shape(index), p.dims)
    return p.gathered(x, axes, (*axes[:d], (), *axes[d + 1 :]), [(d, index, axes)], signed=False)


def view(p: Program, node: fx.Node) -> Value:
    """Views that only add or drop dimensions of size 1."""
    arg = node.args[0]
    if arg not in p.env:
        raise Unsupported("a view of a tensor from outside")
    x = p.env[arg]  # type: ignore[index]
    long = iter([dim for dim in x.axes if p.size(dim) != 1])
    axes = []
    for size in shape(node):
        dim = next(long, ()) if size != 1 else ()
        if size != 1 and p.size(dim) != size:
            raise Unsupported("a view that regroups dimensions")
        axes.append(dim)
    return p.with_axes(x, tuple(axes))
