"""Where the largest or smallest element stands, with torch's rule: of equal ones the first, and NaN before all others.

    argmax(relu(x + b), -1)  ->  a reduction of kind First, of pairs (value, index)
    max(x, 1)                ->  argmax(x, 1), amax(x, 1), which are the two parts of one such reduction

The smallest is the largest of -x: exact, with the same ties and NaN. Which of two elements is the larger follows from their last bits, so a kernel
takes in only calls before it that give torch's own bits: those that IEEE 754 rounds one way. Functions (exp, tanh), divisions by a number (torch
multiplies by its inverse), sums of multiples (torch's are contracted) and arithmetic in 16 bits (which rounds after each call) end before it.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import Program, Value
from warpwright.domains.graph.ir import GraphIR, argument, aten, dtype, edit, find, is_op, is_tensor, shape

INDICES = (aten.argmax.default, aten.argmin.default)
EXTREMES = ("amax", "max", "amin", "min")
_BESIDE = (*INDICES, aten.amax.default, aten.amin.default)

_VIEWS = (
    aten.view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.clone.default,
    aten.contiguous.default, aten.detach.default, aten.alias.default,
)  # fmt: skip
_CHOOSING = (aten.neg.default, aten.abs.default, aten.relu.default)
"""Calls that give one of their operands' elements, or its negative: exact in any type."""
_EXACT = (
    aten.add.Tensor, aten.sub.Tensor, aten.add.Scalar, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar, aten.square.default,
    aten.maximum.default, aten.minimum.default, aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.masked_fill.Scalar,
    aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default,
)  # fmt: skip
_COMPARE = (aten.gt, aten.lt, aten.ge, aten.le, aten.eq, aten.ne, aten.logical_not)


def is_exact(x: Any, members: Collection[fx.Node]) -> bool:
    """Is every call among `members` that a tensor follows from one whose bits are torch's own?"""
    todo, seen = [x], set()
    while todo:
        node = todo.pop()
        if node in seen or node not in members:
            continue
        seen.add(node)
        if not _is_exact(node):
            return False
        todo += node.all_input_nodes
    return True


def _is_exact(node: fx.Node) -> bool:
    if is_op(node, *_VIEWS, *_CHOOSING, *_COMPARE):
        return True
    types = {dtype(n) for n in (node, *node.all_input_nodes) if is_tensor(n)} - {torch.bool}
    if is_op(node, aten.to.dtype):  # to a wider type
        return dtype(node) == torch.float32
    scaled = is_op(node, aten.add, aten.sub) and argument(node, "alpha") != 1
    return is_op(node, *_EXACT) and types == {torch.float32} and not scaled


def beside(node: fx.Node) -> list[fx.Node]:
    """Return the calls that read the same tensor and are best done with this one: an index, and the element that stands there or another index."""
    if not is_op(node, *_BESIDE):
        return []
    source: Any = node.args[0]
    return [other for other in source.users if other is not node and is_op(other, *_BESIDE) and (is_op(node, *INDICES) or is_op(other, *INDICES))]


def first(p: Program, x: Value, dims: Sequence[int], least: bool) -> Value:
    """Return the reduction of kind First over some dimensions: one that the program has, or a new one."""
    return known(p, x, dims, least) or p.reduce("First", p.op("-{0}", x) if least else x, dims)


def known(p: Program, x: Value, dims: Sequence[int], least: bool) -> Value | None:
    """Return the program's reduction of kind First of `x` over these dimensions, or for the `least` element of -x."""
    kept = tuple(() if i in dims else dim for i, dim in enumerate(x.axes))
    found = (v for v in p.values if v.kind == "reduce" and v.text == "First" and v.axes == kept)
    return next((v for v in found if (_negative_of(v.args[0], x) if least else v.args[0] is x)), None)


def _negative_of(v: Value, x: Value) -> bool:
    return v.kind == "op" and v.text == "-{0}" and v.args[0] is x


def extreme(p: Program, reduction: Value, x: Value) -> Value:
    """Return the element of `x` that a reduction of kind First found."""
    top = p.part(reduction, "top")
    return top if reduction.args[0] is x else p.op("-{0}", top)


# --- max and min along a dimension ---------------------------------------------------------------------------------------

_PAIRS = {aten.max.dim: (aten.amax.default, aten.argmax.default), aten.min.dim: (aten.amin.default, aten.argmin.default)}
LEAST_ELEMENTS = 4096
"""Fewer are no kernel, and two calls of torch would take longer than one."""


def expand(ir: GraphIR, floats: Collection[torch.dtype]) -> GraphIR:
    """Return the IR with max and min along a dimension as two calls, which one kernel takes in, for tensors of the types `floats`."""
    names = [node.name for node in find(ir, *_PAIRS) if _applies(node, floats)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        node = e.node(name)
        at, dim, keep = e.before(node), argument(node, "dim"), bool(argument(node, "keepdim"))
        value_of, index_of = _PAIRS[node.target]  # type: ignore[index]
        x = node.args[0]
        parts = {int(user.args[1]): user for user in node.users}  # type: ignore[call-overload, arg-type]
        if 1 in parts:  # the index first: the value is a part of the reduction that finds it
            e.replace(parts[1], at.call(index_of, x, dim, keep))
        if 0 in parts:
            e.replace(parts[0], at.call(value_of, x, [dim], keep))
    return e.finish()


def _applies(node: fx.Node, floats: Collection[torch.dtype]) -> bool:
    x: Any = node.args[0]
    single = len({user.args[1] for user in node.users}) == len(node.users)  # each part selected once
    if not is_tensor(x) or dtype(x) not in floats or not single or any(user.target is not operator.getitem for user in node.users):
        return False
    sizes = shape(x)
    return bool(sizes) and sizes[argument(node, "dim") % len(sizes)] > 1 and torch.Size(sizes).numel() >= LEAST_ELEMENTS
