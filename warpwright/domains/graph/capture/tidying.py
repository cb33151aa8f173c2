"""Tidying a recorded training step: calls are replaced by forms that compute the same and that kernels are made of."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture.meta import infer
from warpwright.domains.graph.ir import argument, aten, dtype, is_op, is_tensor, remove_dead, shape, value

_SCALED = (aten.mul.Scalar, aten.div.Scalar)
_BROADCAST = (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.where.self, aten.mul.Scalar, aten.div.Scalar)


def tidy(graph: fx.Graph) -> None:
    """Replace calls by others that compute the same: variance and mean apart, numbers as numbers, no expansion before what broadcasts, and none that
    writes over a result of its own (`add_` of an RMS norm, `masked_fill_` of a norm's gradient), which no kernel takes in."""
    _out_of_place(graph)
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if is_op(node, aten.var_mean.correction):
            _apart(graph, node)
        elif is_op(node, aten.full.default, aten.scalar_tensor.default) and shape(node) == ():
            node.meta["number"] = node.args[1] if is_op(node, aten.full.default) else node.args[0]
        elif is_op(node, aten.new_zeros.default, aten.zeros_like.default) and value(node).is_contiguous():
            node.target, node.args = aten.zeros.default, (list(shape(node)),)  # sums at indices begin with it
            node.kwargs = {"dtype": value(node).dtype, "device": torch.device("meta")}
        elif is_op(node, *_SCALED) and is_op(node.args[0], aten.expand.default):
            _scaled_before(graph, node)
        elif is_op(node, *_BROADCAST):
            _unexpanded(node)
    for node in list(graph.nodes):
        if is_op(node, aten.add.Tensor) and not (len(node.users) == 1 and _is_sum(next(iter(node.users)))):
            _put_together(graph, node)
    remove_dead(graph)


def _out_of_place(graph: fx.Graph) -> None:
    """f_(g(x))  ->  f(g(x)), where nobody reads g(x) afterwards, and nothing shares its memory."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        target, base = node.target, node.args[0] if node.args else None
        name = str(getattr(target, "_opname", ""))
        if not isinstance(target, torch._ops.OpOverload) or not name.endswith("_") or name.startswith("_") or not isinstance(base, fx.Node):
            continue
        plain = getattr(getattr(aten, name[:-1], None), target._overloadname, None)
        own = base.op == "call_function" and not _shares(base) and not any(_shares(user) for user in base.users if user is not node)
        drawn = torch.Tag.nondeterministic_seeded in target.tags
        if target.namespace == "aten" and plain is not None and own and not drawn and all(place[user] <= place[node] for user in base.users):
            node.target = plain
            if (found := infer(node)) is None or (found.dtype, found.shape) != (value(node).dtype, value(node).shape):  # what is written to decides
                node.target = target


def _shares(node: fx.Node) -> bool:
    """May a call's result share memory with what it is given?"""
    return not isinstance(node.target, torch._ops.OpOverload) or any(result.alias_info is not None for result in node.target._schema.returns)


def _apart(graph: fx.Graph, node: fx.Node) -> None:
    """var_mean(x)  ->  var(x), mean(x)."""
    x, dims = node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    keep = bool(node.kwargs.get("keepdim", False))
    for user in list(node.users):
        if user.target is not operator.getitem:
            return
    with graph.inserting_before(node):
        first = graph.call_function(aten.var.correction, (x, dims), {"correction": node.kwargs.get("correction"), "keepdim": keep})
        second = graph.call_function(aten.mean.dim, (x, dims, keep))
    for user in list(node.users):
        new = (first, second)[user.args[1]]  # type: ignore[index]
        new.meta["val"] = user.meta["val"]
        user.replace_all_uses_with(new)
        graph.erase_node(user)


def _scaled_before(graph: fx.Graph, node: fx.Node) -> None:
    """f(expand(x), 2)  ->  expand(f(x, 2)): the gradient of a mean, which what follows then reads without a copy.

    A view of the whole, as a product takes it of rows in several dimensions, may be none of an expansion: it is a reshape then. A result, to which
    whoever has it may write, stays a tensor of its own.
    """
    if _is_result(node):
        return
    expansion: Any = node.args[0]
    x: Any = expansion.args[0]
    with graph.inserting_before(node):
        small = graph.call_function(node.target, (x, *node.args[1:]), dict(node.kwargs))  # type: ignore[arg-type]
        large = graph.call_function(aten.expand.default, (small, list(shape(node))))
    small.meta["val"] = value(node).new_empty(shape(x))
    large.meta["val"] = small.meta["val"].expand(shape(node))
    _reshaped(node)
    node.replace_all_uses_with(large)
    graph.erase_node(node)


def _is_result(node: fx.Node) -> bool:
    """Is a tensor given back, as it is or as a view?"""
    return any(user.op == "output" or (_shares(user) and _is_result(user)) for user in node.users)


def _reshaped(node: fx.Node) -> None:
    """Let what views a tensor, also through other views, take a copy where its strides will not do."""
    for user in node.users:
        if is_op(user, aten.view.default, aten._unsafe_view.default):
            user.target = aten.reshape.default
        if _shares(user):
            _reshaped(user)


def _is_sum(node: fx.Node) -> bool:
    if not is_op(node, aten.add.Tensor) or argument(node, "alpha") != 1:
        return False
    return all(is_tensor(arg) and shape(arg) == shape(node) for arg in node.args[:2])  # type: ignore[arg-type]


def _terms(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the terms of a sum, left to right."""
    todo = [node]
    while todo:
        one = todo.pop()
        if _is_sum(one) and (one is node or len(one.users) == 1):
            todo += [one.args[1], one.args[0]]  # type: ignore[list-item]
        else:
            yield one


@dataclass(frozen=True)
class _Part:
    """A tensor that is zeros but for some of its places along a dimension."""

    term: Any
    dim: int
    start: int
    stop: int
    piece: Any
    selected: bool
    """Has `piece` no such dimension?"""


def _put_together(graph: fx.Graph, total: fx.Node) -> None:
    """select_scatter(0, a, d, 0) + select_scatter(0, b, d, 1) + c  ->  stack([a, b], d) + c; slices likewise by cat: the gradient of what a loop
    reads step by step, and of the halves of a rotation."""
    groups: list[list[_Part]] = []
    rest: list[fx.Node] = []
    for term in _terms(total) if _is_sum(total) else ():
        part = _part(term)
        if part is None:
            rest.append(term)
        elif (group := next((one for one in groups if _is_beside(part, one)), None)) is not None:
            group.append(part)
        else:
            groups.append([part])
    rest += [part.term for group in groups if len(group) == 1 for part in group]
    groups = [sorted(group, key=lambda part: part.start) for group in groups if len(group) > 1]
    if not groups:
        return
    with graph.inserting_before(total):
        joined, *others = [_together(graph, total, group) for group in groups]
        for term in (*others, *rest):
            joined = _valued(graph.call_function(aten.add.Tensor, (joined, term)), shape(total), total)
    total.replace_all_uses_with(joined)
    graph.erase_node(total)


def _is_beside(part: _Part, group: list[_Part]) -> bool:
    return all(part.dim == one.dim and (part.stop <= one.start or one.stop <= part.start) for one in group)


def _together(graph: fx.Graph, total: fx.Node, parts: list[_Part]) -> fx.Node:
    dim, sizes = parts[0].dim, shape(total)
    if all(part.selected for part in parts) and len(parts) == sizes[dim]:
        return _valued(graph.call_function(aten.stack.default, ([part.piece for part in parts], dim)), sizes, total)
    pieces: list[fx.Node] = []
    at = 0
    for part in [*parts, _Part(None, dim, sizes[dim], sizes[dim], None, False)]:
        if part.start > at:
            gap = (*sizes[:dim], part.start - at, *sizes[dim + 1 :])
            options: dict[str, Any] = {"dtype": value(total).dtype, "device": torch.device("meta")}
            pieces.append(_valued(graph.call_function(aten.zeros.default, (list(gap),), options), gap, total))
        if part.selected:
            one = (*sizes[:dim], 1, *sizes[dim + 1 :])
            pieces.append(_valued(graph.call_function(aten.unsqueeze.default, (part.piece, dim)), one, total))
        elif part.piece is not None:
            pieces.append(part.piece)
        at = part.stop
    return _valued(graph.call_function(aten.cat.default, (pieces, dim)), sizes, total)


def _valued(node: fx.Node, sizes: tuple[int, ...], like: fx.Node) -> fx.Node:
    node.meta["val"] = torch.empty(sizes, dtype=value(like).dtype, device="meta")
    return node


def _part(term: fx.Node) -> _Part | None:
    """Return a term as zeros but for a part; None for any other."""
    if not is_op(term, aten.select_scatter.default, aten.slice_scatter.default) or len(term.users) != 1:
        return None
    base, piece = term.args[:2]
    if not is_op(base, aten.zeros.default, aten.new_zeros.default, aten.zeros_like.default) or dtype(piece) != dtype(term):  # type: ignore[arg-type]
        return None
    dim = argument(term, "dim") % len(shape(term))
    size = shape(term)[dim]
    if is_op(term, aten.select_scatter.default):
        index = argument(term, "index")
        return _Part(term, dim, index % size, index % size + 1, piece, True) if isinstance(index, int) else None
    start, stop, step = (argument(term, name) for name in ("start", "end", "step"))
    if step != 1 or not all(place is None or isinstance(place, int) for place in (start, stop)):
        return None
    start, stop, _ = slice(start, stop).indices(size)
    return _Part(term, dim, start, stop, piece, False) if start < stop else None


def _unexpanded(node: fx.Node) -> None:
    """add(expand(x), y)  ->  add(x, y), where the result has its shape from y."""
    for position, arg in enumerate(node.args):
        if not is_op(arg, aten.expand.default):
            continue
        inner: Any = arg.args[0]  # type: ignore[union-attr]
        others = [a for i, a in enumerate(node.args) if i != position and is_tensor(a)]
        sizes = [shape(inner), *(shape(other) for other in others)]  # type: ignore[arg-type]
        if torch.broadcast_shapes(*sizes) == torch.Size(shape(node)):
            node.update_arg(position, inner)
