"""Sums, maxima and minima at places that indices choose, as the end of a program: each element is joined to what its index says.

    index_add, index_put(accumulate=True)      an index for each row, of any number of dimensions
    scatter_add, scatter_reduce                an index for each element

Additions are atomic and come in any order, as those of torch's own index_add and of torch.compile on a GPU; maxima and minima come out the same in
any order, NaN included. An index out of range ends the kernel, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import Move, Program, Target, Unsupported, Value
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

SUMS = (aten.index_add.default, aten.scatter_add.default, aten.index_put.default, aten.scatter_reduce.two)
_JOINS = {"sum": "add", "amax": "max", "amin": "min"}
_SOURCES: Mapping[Any, str] = {aten.index_add.default: "source", aten.index_put.default: "values"}


@dataclass(frozen=True)
class _Form:
    """One of the calls, read."""

    index: Any
    over: tuple[int, ...]
    """The dimensions of what is added over which the index runs."""
    own: tuple[int | None, ...]
    """For each dimension of the result that of what is added; None for the one whose place the index holds."""
    signed: bool = False
    factor: float = 1.0
    how: str = "add"


def source_of(node: fx.Node) -> Any:
    """Return what is added, whose space the kernel goes over."""
    return argument(node, _SOURCES.get(node.target, "src"))


def base_of(node: fx.Node) -> fx.Node:
    """Return what a sum begins with."""
    base: Any = node.args[0]
    return base  # type: ignore[no-any-return]


def fill(node: fx.Node) -> fx.Node | None:
    """Return the call that gives the zeros that a sum begins with; None where it begins with something else."""
    base = base_of(node)
    return base if is_op(base, aten.zeros.default) else None


def added(p: Program, node: fx.Node) -> Value:
    """The elements that are added; `p.sums` says where."""
    source: Any = source_of(node)
    if value(node).dtype != torch.float32 or not is_tensor(source) or value(source).dtype != torch.float32:
        raise Unsupported("a sum at indices of what is not float32")
    sizes = shape(source)
    if p.frame or not sizes or sizes != tuple(p.size(dim) for dim in p.dims):
        raise Unsupported("a sum at indices of a tensor that is not the whole iteration space")
    form = _read(node, sizes)
    if not is_tensor(form.index) or value(form.index).dtype not in (torch.int64, torch.int32):
        raise Unsupported("a sum by what are no indices")
    if shape(form.index) != tuple(sizes[d] for d in form.over) or not any(p.dims[d] for d in form.over):
        raise Unsupported("a sum of a part, or at a single index")
    if any(d is not None and sizes[d] != own for d, own in zip(form.own, shape(node), strict=True)):
        raise Unsupported("a sum of a part")
    x = p.read(source, p.dims)
    places = p.operand(form.index, tuple(p.dims[d] for d in form.over))
    at = form.own.index(None)
    own = tuple(() if d is None else p.dims[d] for d in form.own)
    p.sums[node] = Target(Move("gather", shape(node)[at], dim=at, index=places, signed=form.signed), own, form.how)
    scaled = p.op("{0}", x) if form.factor == 1 else p.op("{0} * {1}", x, p.const(form.factor))
    return p.with_axes(scaled, p.dims)  # of what is broadcast each element is added by itself


def _read(node: fx.Node, sizes: tuple[int, ...]) -> _Form:
    every: tuple[int, ...] = tuple(range(len(sizes)))
    if is_op(node, aten.index_put.default):
        indices: Any = argument(node, "indices")
        if not argument(node, "accumulate") or len(indices) != 1 or not is_tensor(indices[0]):
            raise Unsupported("an index_put that is no sum at one tensor of indices")
        rank = len(shape(indices[0]))
        return _Form(indices[0], every[:rank], (None, *every[rank:]), signed=True)
    d = argument(node, "dim") % len(sizes)
    own = tuple(None if i == d else i for i in every)
    if is_op(node, aten.index_add.default):
        return _Form(argument(node, "index"), (d,), own, factor=float(argument(node, "alpha")))
    how = "sum"
    if is_op(node, aten.scatter_reduce.two):
        how = argument(node, "reduce")
        if how not in _JOINS or not argument(node, "include_self"):
            raise Unsupported("a product or mean at indices, or one that leaves out what is there")
    return _Form(argument(node, "index"), every, own, how=_JOINS[how])
