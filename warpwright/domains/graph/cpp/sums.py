"""Sums at places that indices choose (index_add, scatter_add) as the end of a program: each element is added where its index says.

The additions are atomic and come in any order, as torch's own on a GPU do; an index out of range ends the kernel, as there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import Move, Program, Target, Unsupported, Value
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

SUMS = (aten.index_add.default, aten.scatter_add.default)


def source_of(node: fx.Node) -> Any:
    """Return what is added, whose space the kernel goes over."""
    return argument(node, "source" if is_op(node, aten.index_add.default) else "src")


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
    index: Any = argument(node, "index")
    if value(node).dtype != torch.float32 or not is_tensor(source) or value(source).dtype != torch.float32:
        raise Unsupported("a sum at indices of what is not float32")
    if is_op(node, aten.index_add.default) and argument(node, "alpha") != 1:
        raise Unsupported("a sum at indices with a factor")
    sizes = shape(source)
    if p.frame or not sizes or sizes != tuple(p.size(dim) for dim in p.dims):
        raise Unsupported("a sum at indices of a tensor that is not the whole iteration space")
    d = argument(node, "dim") % len(sizes)
    whole = is_op(node, aten.scatter_add.default)
    if whole and (shape(index) != sizes or any(size != own for i, (size, own) in enumerate(zip(sizes, shape(node), strict=True)) if i != d)):
        raise Unsupported("a sum of a part")
    if value(index).dtype not in (torch.int64, torch.int32):
        raise Unsupported("a sum by what are no indices")
    x = p.read(source, p.dims)
    over = p.dims if whole else (p.dims[d],)
    if not p.dims[d] or (not whole and shape(index) != (sizes[d],)):
        raise Unsupported("a sum at a single index")
    places = p.operand(index, over)
    p.sums[node] = Target(Move("gather", shape(node)[d], dim=d, index=places), tuple(() if i == d else dim for i, dim in enumerate(p.dims)))
    if x.axes != p.dims:
        raise Unsupported("a sum at indices of what is broadcast")
    return p.op("{0}", x)
