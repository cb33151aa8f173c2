"""Sums, products, maxima and minima at places that indices choose, and elements put there, as the end of a program: each goes where its index says.

    index_add, index_reduce, index_copy, index_put      an index for each row, of any number of dimensions
    scatter_add, scatter_reduce, scatter                an index for each element

`expand` writes out what has another form: 16 bits, which are added in float32 and rounded once, means, and what leaves out what is there.
Additions and products are atomic and come in any order, as those of torch's own index_add and of torch.compile on a GPU; maxima and minima come out
the same in any order, NaN included. Of elements that are put in one place one stays, any of them, which is all that torch promises on a GPU. An index
out of range ends the kernel, as there. Elements that are put as they lie in memory stay torch's, which does no more; so does one number put in many
places, and masked_scatter, where the place of each depends on all before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS, Move, Program, Target, Unsupported, Value
from warpwright.domains.graph.ir import GraphIR, Inserter, argument, aten, dtype, edit, find, is_op, is_tensor, shape, value

SUMS = (
    aten.index_add.default, aten.scatter_add.default, aten.index_put.default, aten.scatter_reduce.two, aten.index_reduce.default,
    aten.index_copy.default, aten.scatter.src,
)  # fmt: skip
JOINS = {"sum": "add", "amax": "max", "amin": "min", "prod": "mul", "set": "put"}
_NOTHING = {"sum": 0.0, "mean": 0.0, "amax": -math.inf, "amin": math.inf, "prod": 1.0}
"""What changes nothing where it is joined."""
_HALF = (torch.bfloat16, torch.float16)
_SOURCES: Mapping[Any, str] = {
    aten.index_put.default: "values", **dict.fromkeys((aten.index_add.default, aten.index_reduce.default, aten.index_copy.default), "source"),
    **dict.fromkeys((aten.scatter.value, aten.scatter.value_reduce, aten.index_fill.int_Scalar, aten.index_fill.int_Tensor), "value"),
}  # fmt: skip
_OLDER = {"add": "sum", "multiply": "prod"}
"""What scatter(reduce=) calls other than the rest do."""


@dataclass(frozen=True)
class Form:
    """One of the calls, read."""

    index: Any
    over: tuple[int, ...]
    """The dimensions of what is added over which the index runs."""
    own: tuple[int | None, ...]
    """For each dimension of the result that of what is added; None for the one whose place the index holds."""
    signed: bool = False
    factor: float = 1
    how: str = "sum"
    with_own: bool = True
    """Is what is there joined too?"""

    @property
    def dims(self) -> int:
        """Dimensions of what is added."""
        return len({*self.over, *self.own} - {None})


def source_of(node: fx.Node) -> Any:
    """Return what is added, whose space the kernel goes over."""
    return argument(node, _SOURCES.get(node.target, "src"))


def base_of(node: fx.Node) -> fx.Node:
    """Return what a sum begins with."""
    base: Any = node.args[0]
    return base  # type: ignore[no-any-return]


def sets(node: fx.Node) -> bool:
    """Are elements put where indices say, in place of what is there?"""
    return is_op(node, aten.index_copy, aten.scatter.src, aten.scatter.value) or (is_op(node, aten.index_put) and not argument(node, "accumulate"))


def fill(node: fx.Node) -> fx.Node | None:
    """Return the call that gives the zeros that a sum begins with; None where it begins with something else."""
    base = base_of(node)
    return base if is_op(base, aten.zeros.default) else None


def added(p: Program, node: fx.Node) -> Value:
    """The elements that are added; `p.sums` says where."""
    source: Any = source_of(node)
    kinds = FLOATS if sets(node) else (torch.float32,)
    if value(node).dtype not in kinds or not is_tensor(source) or value(source).dtype != value(node).dtype:
        raise Unsupported("a sum at indices of what is not float32")
    if p.frame or not shape(source) or shape(source) != tuple(p.size(dim) for dim in p.dims):
        raise Unsupported("a sum at indices of a tensor that is not the whole iteration space")
    form = _read(node)
    if form.how not in JOINS or not form.with_own or not any(p.dims[d] for d in form.over):
        raise Unsupported("a mean at indices, one that leaves out what is there, or one at a single index")
    x = p.read(source, p.dims)
    places = p.operand(form.index, tuple(p.dims[d] for d in form.over))
    at = form.own.index(None)
    own = tuple(() if d is None else p.dims[d] for d in form.own)
    p.sums[node] = Target(Move("gather", shape(node)[at], dim=at, index=places, signed=form.signed), own, JOINS[form.how])
    scaled = p.op("{0}", x) if form.factor == 1 else p.op("{0} * {1}", x, p.const(float(form.factor)))
    return p.with_axes(scaled, p.dims)  # of what is broadcast each element is added by itself


def _read(node: fx.Node) -> Form:
    """Return a call's form; Unsupported where its index is no tensor of indices, or not one for all that is added."""
    sizes, form = shape(source_of(node)), form_of(node)
    if not is_tensor(form.index) or value(form.index).dtype not in (torch.int64, torch.int32):
        raise Unsupported("a sum by what are no indices")
    if len(sizes) != form.dims or shape(form.index) != tuple(sizes[d] for d in form.over):
        raise Unsupported("a sum of a part, or of what is broadcast")
    if any(d is not None and sizes[d] != own for d, own in zip(form.own, shape(node), strict=True)):
        raise Unsupported("a sum of a part")
    return form


def form_of(node: fx.Node) -> Form:
    """Return how a call is read, whatever its sizes; Unsupported for an index_put at several tensors of indices."""
    rank = len(shape(node))
    if is_op(node, aten.index_put.default):
        indices: Any = argument(node, "indices")
        if not all(index is None for index in indices[:-1]) or not is_tensor(indices[-1]):
            raise Unsupported("an index_put at several tensors of indices")
        d, count = len(indices) - 1, len(shape(indices[-1]))
        own = (*range(d), None, *range(d + count, rank + count - 1))
        return Form(indices[-1], tuple(range(d, d + count)), own, signed=True, how="set" if sets(node) else "sum")
    every, d, index = tuple(range(rank)), argument(node, "dim") % max(rank, 1), argument(node, "index")
    own = tuple(None if i == d else i for i in every)
    if is_op(node, aten.index_copy, aten.index_fill):
        return Form(index, (d,), own, signed=is_op(node, aten.index_fill), how="set")
    if is_op(node, aten.scatter.src, aten.scatter.value):
        return Form(index, every, own, how="set")
    if is_op(node, aten.scatter.reduce, aten.scatter.value_reduce):
        return Form(index, every, own, how=_OLDER[argument(node, "reduce")])
    if is_op(node, aten.index_add.default):
        return Form(index, (d,), own, factor=argument(node, "alpha"))
    if is_op(node, aten.index_reduce, aten.scatter_reduce.two):
        over = (d,) if is_op(node, aten.index_reduce) else every
        return Form(index, over, own, how=argument(node, "reduce"), with_own=bool(argument(node, "include_self")))
    return Form(index, every, own)


# --- other forms -----------------------------------------------------------------------------------------------------------------------


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with what is joined at indices in the forms that kernels have."""
    names = [node.name for node in find(ir, *SUMS) if _has_another_form(node)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        node = e.node(name)
        e.replace(node, _written_out(e.before(node), node, _read(node)))
    return e.finish()


def _has_another_form(node: fx.Node) -> bool:
    kind, source = dtype(node), source_of(node)
    if not is_tensor(source) or dtype(source) != kind or kind not in (*_HALF, torch.float32):
        return False
    try:
        form = _read(node)
    except Unsupported:
        return False
    return form.how in _NOTHING and (kind in _HALF or form.how == "mean" or not form.with_own)


def _written_out(at: Inserter, node: fx.Node, form: Form) -> fx.Node:
    """Return the same by a call that joins float32 to all that is there; a mean is that sum over how many there are."""
    base, source, kind = base_of(node), source_of(node), dtype(node)
    if not form.with_own:
        put = aten.scatter.value if len(form.over) == len(form.own) and is_op(node, aten.scatter_reduce) else aten.index_fill.int_Scalar
        base = at.call(put, base, argument(node, "dim"), form.index, _NOTHING[form.how])
    if kind in _HALF:
        source, zeros = at.call(aten.to.dtype, source, torch.float32), is_op(base, aten.zeros.default)
        base = _filled(at, aten.zeros.default, shape(node)) if zeros else at.call(aten.to.dtype, base, torch.float32)
    joined = _joined(at, node, base, source)
    if form.how == "mean":
        one = at.call(aten.to.dtype, at.call(aten.ge.Scalar, form.index, 0), torch.float32)  # for each, without memory of its own
        dim = argument(node, "dim")
        if is_op(node, aten.index_reduce):  # a number for each row
            row = _filled(at, aten.ones.default if form.with_own else aten.zeros.default, (shape(node)[dim],))
            along = [size if d == dim % len(shape(node)) else 1 for d, size in enumerate(shape(node))]
            count = at.call(aten.view.default, at.call(aten.index_add.default, row, 0, form.index, one), along)
        else:
            began = _filled(at, aten.ones.default if form.with_own else aten.zeros.default, shape(node))
            count = at.call(aten.scatter_add.default, began, dim, form.index, one)
        joined = at.call(aten.div.Tensor, joined, at.call(aten.clamp_min.default, count, 1.0))
    return at.call(aten.to.dtype, joined, kind) if kind in _HALF else joined


def _filled(at: Inserter, fill: Any, sizes: tuple[int, ...]) -> fx.Node:
    return at.call(fill, list(sizes), dtype=torch.float32, device=torch.device("meta"))


def _joined(at: Inserter, node: fx.Node, base: fx.Node, source: Any) -> fx.Node:
    if is_op(node, aten.index_put.default):
        return at.call(node.target, base, argument(node, "indices"), source, True)
    dim, index = argument(node, "dim"), argument(node, "index")
    if is_op(node, aten.index_reduce):
        how = argument(node, "reduce")
        if how == "mean":
            return at.call(aten.index_add.default, base, dim, index, source)
        return at.call(node.target, base, dim, index, source, how)
    if is_op(node, aten.scatter_reduce.two):
        how = argument(node, "reduce")
        return at.call(node.target, base, dim, index, source, "sum" if how == "mean" else how)
    return at.call(node.target, base, dim, index, source, **({"alpha": alpha} if (alpha := node.kwargs.get("alpha")) is not None else {}))
