"""Calls that write tensors anew: fills, copies into a part of another tensor, repeats, padding by what is there, sums by index, one-hot rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.ir import argument, aten, is_op, value
from warpwright.domains.graph.plan import loops
from warpwright.domains.graph.plan.builder import MOST_LITERAL, Builder

Writer = Callable[[Builder, fx.Node], bool]

_ONES = (aten.ones, aten.ones_like, aten.new_ones)
_GIVEN = (aten.full, aten.full_like, aten.new_full)


def _fill(b: Builder, node: fx.Node) -> bool:
    """A number in every element; few of them are written out."""
    number: Any = argument(node, "fill_value") if is_op(node, *_GIVEN) else int(is_op(node, *_ONES))
    val = value(node)
    if not isinstance(number, bool | int | float):
        return False
    if val.numel() <= MOST_LITERAL and val.is_contiguous():
        b.places[node] = b.literal(torch.full(val.shape, number, dtype=val.dtype))
        return True
    to = b.fresh(val)
    b.step(loops.over(to.sizes, [to], f"{{0}} = {loops.number(number, to.type)};"), to)
    b.places[node] = to
    return True


def _copy(b: Builder, node: fx.Node) -> bool:
    """copy(x, source): what is written into x, in its type and size."""
    source = b.place(node.args[1])
    to = b.fresh(value(node))
    b.step(loops.copy(to, source.broadcast(to.sizes)), to, source)
    b.places[node] = to
    return True


def _into_part(b: Builder, node: fx.Node) -> bool:
    """slice_scatter and select_scatter: x, and in a part of it another tensor."""
    x, source = b.place(node.args[0]), b.place(node.args[1])
    to = b.fresh(value(node))
    dim = argument(node, "dim") % len(to.sizes)
    size = to.sizes[dim]
    if is_op(node, aten.select_scatter):
        start, step = argument(node, "index") % size, 1
        part = to.viewed((*to.sizes[:dim], *to.sizes[dim + 1 :]), (*to.strides[:dim], *to.strides[dim + 1 :]), start * to.strides[dim])
    else:
        start, end, step = slice(argument(node, "start"), argument(node, "end"), argument(node, "step")).indices(size)
        count = len(range(start, end, step))
        sizes, strides = list(to.sizes), list(to.strides)
        sizes[dim], strides[dim] = count, strides[dim] * step
        part = to.viewed(sizes, strides, start * to.strides[dim])
    if source.sizes != part.sizes:
        return False
    b.step([*loops.copy(to, x), *loops.copy(part, source)], to, x, source)
    b.places[node] = to
    return True


def _repeat(b: Builder, node: fx.Node) -> bool:
    x, to = b.place(node.args[0]), b.fresh(value(node))
    missing = len(to.sizes) - len(x.sizes)
    own, steps = [*[1] * missing, *x.sizes], [*[0] * missing, *x.strides]
    pairs = [(times // size, size) for times, size in zip(to.sizes, own, strict=True)]
    written = to.viewed(
        [size for pair in pairs for size in pair],
        [stride for size, step in zip(own, to.strides, strict=True) for stride in (size * step, step)],
    )  # fmt: skip
    read = x.viewed(written.sizes, [stride for step in steps for stride in (0, step)])
    b.step(loops.copy(written, read), to, x)
    b.places[node] = to
    return True


def _pieces(mode: str, size: int, before: int, after: int) -> list[tuple[int, int, int, int]]:
    """Return the pieces that a padded dimension is made of: where it begins, its size, where it is read, and the step there."""
    at = {"circular": (size - before, 1, 0, 1), "reflect": (before, -1, size - 2, -1), "replicate": (0, 0, size - 1, 0)}.get(mode)
    if at is None:
        raise Unsupported(f"padding by {mode}")
    pieces = [(0, before, at[0], at[1]), (before, size, 0, 1), (before + size, after, at[2], at[3])]
    return [piece for piece in pieces if piece[1]]


def pad(b: Builder, node: fx.Node) -> bool:
    """Add padding by what is there: copies of the pieces of each dimension. Raise Unsupported for other padding."""
    amounts: Any = argument(node, "pad")
    if min(amounts) < 0:
        raise Unsupported("padding that takes away")
    x, to = b.place(node.args[0]), b.fresh(value(node))
    rank = len(to.sizes)
    per_dim = [[(0, size, 0, 1)] for size in x.sizes]
    for i in range(len(amounts) // 2):
        per_dim[rank - 1 - i] = _pieces(argument(node, "mode"), x.sizes[rank - 1 - i], *amounts[2 * i : 2 * i + 2])
    lines: list[str] = []
    for parts in itertools.product(*per_dim):
        sizes = [part[1] for part in parts]
        written = to.viewed(sizes, to.strides, sum(part[0] * step for part, step in zip(parts, to.strides, strict=True)))
        strides = [part[3] * step for part, step in zip(parts, x.strides, strict=True)]
        lines += loops.copy(written, x.viewed(sizes, strides, sum(part[2] * step for part, step in zip(parts, x.strides, strict=True))))
    b.step(lines, to, x)
    b.places[node] = to
    return True


def _one_hot(b: Builder, node: fx.Node) -> bool:
    index, to = b.place(node.args[0]), b.fresh(value(node))
    b.step([*loops.over(to.sizes, [to], "{0} = 0;"), *loops.ones_at(to, index, b.now)], to, index)
    b.places[node] = to
    return True


_REDUCED: Mapping[Any, tuple[str, str]] = {
    aten.sum: ("0", "{0} += {1};"), aten.prod: ("1", "{0} *= {1};"), aten.any: ("false", "{0} |= {1} != 0;"), aten.all: ("true", "{0} &= {1} != 0;"),
}  # fmt: skip
"""What a reduction begins with, and what each element does: of integers and masks, and products of numbers. Others are fused kernels."""


def _reduction(b: Builder, node: fx.Node) -> bool:
    """Reductions that are no fused kernel, in one thread: of integers, truth values, and products."""
    x, val = b.place(node.args[0]), value(node)
    if (val.is_floating_point() and not is_op(node, aten.prod)) or (is_op(node, aten.any.dims, aten.all.dims) and argument(node, "dim") == []):
        return False  # `any` over no dimensions at all leaves them, where a sum takes all of them
    first, each = _REDUCED[node.target.overloadpacket]  # type: ignore[union-attr]
    b.places[node] = to = b.fresh(val)
    dims = _dims(node, len(x.sizes))
    kept = [1 if d in dims else size for d, size in enumerate(x.sizes)]
    steps = iter(to.strides if len(to.sizes) < len(x.sizes) else [s for d, s in enumerate(to.strides) if d not in dims])
    spread = to.viewed(x.sizes, [0 if d in dims else next(steps) for d in range(len(kept))])
    each = each.replace("{1}", f"({to.type}){{1}}") if to.dtype != torch.bool else each
    b.step([*loops.over(to.sizes, [to], f"{{0}} = {first};"), *loops.over(x.sizes, [spread, x], each, shared=False)], to, x)
    return True


def _dims(node: fx.Node, rank: int) -> list[int]:
    names = [formal.name for formal in node.target._schema.arguments]  # type: ignore[union-attr]
    dims: Any = argument(node, "dim") if "dim" in names else None
    dims = [dims] if isinstance(dims, int) else dims
    return sorted(d % rank for d in dims) if dims and rank else list(range(rank))


def _first_extreme(b: Builder, node: fx.Node) -> bool:
    """argmax and argmin: the first index of the largest, or of the first NaN."""
    x, dim = b.place(node.args[0]), argument(node, "dim")
    if dim is None:
        x = (x if x.contiguous else b.contiguous(x)).viewed((x.count,), (1,))
    if not x.sizes:
        return False
    dim = (dim or 0) % len(x.sizes)
    to = b.fresh(value(node))
    strides = list(to.strides)
    if len(to.sizes) == len(x.sizes):
        del strides[dim]
    elif argument(node, "dim") is None:
        strides = []
    lines = loops.first_extreme(to, strides, x, dim, largest=is_op(node, aten.argmax))
    b.step(lines, to, x)
    b.places[node] = to
    return True


CALLS: Mapping[Any, Writer] = {
    **dict.fromkeys((*_GIVEN, *_ONES, aten.zeros, aten.zeros_like, aten.new_zeros), _fill),
    aten.copy: _copy, aten.slice_scatter: _into_part, aten.select_scatter: _into_part, aten.repeat: _repeat,
    aten.one_hot: _one_hot,
    **dict.fromkeys(_REDUCED, _reduction), aten.argmax: _first_extreme, aten.argmin: _first_extreme,
}  # fmt: skip
