"""Calls in the form that a plan has them: no call that only returns what it is given, one operator for all convolutions, batch norms as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp import losses, sums, two_level
from warpwright.domains.graph.cpp.calls import bags
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, is_op, is_tensor, shape, value, written
from warpwright.domains.graph.plan import pools

Writer = Callable[[Edit, fx.Node], fx.Node | None]
"""Inserts what stands for a call and returns it; None where the call stays."""


def prepare(ir: GraphIR) -> GraphIR:
    """Return the IR with every call in a plan's form; raise NotApplicable when it does not run so."""
    e = edit(ir)
    for node in list(e.graph.nodes):
        if is_op(node, aten.lstm_cell):
            _lstm_cell(e, node)
        if node.op != "call_function" or not is_tensor(node) or written(node):
            continue
        write = _WRITERS.get(node.target)
        new = _given_back(node) or (write(e, node) if write is not None else None)
        if new is not None:
            e.replace(node, new)
    return two_level.expand(losses.expand(bags.expand(sums.expand(e.finish()))))


def _given_back(node: fx.Node) -> fx.Node | None:
    """Return the argument that the call returns as it is; a result of the program stays."""
    x = node.args[0] if node.args else None
    if not is_tensor(x) or any(user.op == "output" for user in node.users):
        return None
    a, b = value(x), value(node)  # type: ignore[arg-type]
    same = a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.storage_offset() == b.storage_offset() and a.stride() == b.stride()
    return x if same and dtype(node) == a.dtype and shape(node) == tuple(a.shape) else None  # type: ignore[return-value]


def _converted(e: Edit, node: fx.Node) -> fx.Node | None:
    """to(x, device, dtype, ...)  ->  to(x, dtype)."""
    x: Any = node.args[0]
    return e.before(node).call(aten.to.dtype, x, dtype(node)) if dtype(x) != dtype(node) else None


def _pairs(numbers: Any, count: int) -> list[int]:
    items = [numbers] if isinstance(numbers, int) else list(numbers)
    return items * count if len(items) == 1 else items


def _convolution(e: Edit, node: fx.Node) -> fx.Node | None:
    count = len(shape(node.args[0])) - 2  # type: ignore[arg-type]
    kinds = {aten.conv1d.default: 1, aten.conv2d.default: 2, aten.conv3d.default: 3}
    if node.target in kinds:
        if count != kinds[node.target]:
            return None
        transposed, extra = False, [0] * count
    else:
        transposed, extra = True, _pairs(argument(node, "output_padding"), count)
    x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    stride, padding, dilation = (_pairs(argument(node, name), count) for name in ("stride", "padding", "dilation"))
    return e.before(node).call(aten.convolution.default, x, weight, bias, stride, padding, dilation, transposed, extra, argument(node, "groups"))


def _batch_norm(e: Edit, node: fx.Node) -> fx.Node | None:
    """batch_norm(x)  ->  (x - mean) * (weight / sqrt(variance + eps)) + bias, in evaluation mode."""
    x: Any = argument(node, "input")
    mean, variance = argument(node, "running_mean"), argument(node, "running_var")
    if argument(node, "training") or mean is None or dtype(node) != torch.float32:
        return None
    at = e.before(node)
    along = [shape(x)[1], *[1] * (len(shape(x)) - 2)]
    scale = at.call(aten.rsqrt.default, at.call(aten.add.Tensor, variance, argument(node, "eps")))
    weight, bias = argument(node, "weight"), argument(node, "bias")
    scale = at.call(aten.mul.Tensor, scale, weight) if weight is not None else scale
    result = at.call(aten.sub.Tensor, x, at.call(aten.view.default, mean, along))
    result = at.call(aten.mul.Tensor, result, at.call(aten.view.default, scale, along))
    return at.call(aten.add.Tensor, result, at.call(aten.view.default, bias, along)) if bias is not None else result


def _pooled(name: str) -> Writer:
    """A pool that the runtime does not have, as the operator that the shim has."""

    def write(e: Edit, node: fx.Node) -> fx.Node | None:
        if pools.read(node) is not None:
            return None
        return e.before(node).item(e.before(node).call(getattr(aten, name).default, *node.args, **node.kwargs), 0)

    return write


def _averaged(e: Edit, node: fx.Node) -> fx.Node | None:
    """adaptive_avg_pool2d(x, 1)  ->  mean(x) of each channel; any other size as the operator that the shim has."""
    x: Any = node.args[0]
    sizes: Any = node.args[1]
    if all(size == 1 for size in ([sizes] if isinstance(sizes, int) else sizes)):
        return e.before(node).call(aten.mean.dim, x, [-2, -1], True)
    return e.before(node).call(aten._adaptive_avg_pool2d.default, x, sizes)


def _addmm(e: Edit, node: fx.Node) -> fx.Node | None:
    """addmm(c, a, b)  ->  mm(a, b) + c where c is no row of numbers, whose sum a kernel makes."""
    c, a, b = node.args
    plain = argument(node, "beta") == 1 and argument(node, "alpha") == 1
    if plain and math.prod(shape(c)[:-1]) == 1 and shape(c)[-1:] == shape(node)[-1:]:  # type: ignore[arg-type]
        return None
    at = e.before(node)
    total = at.call(aten.mm.default, a, b)
    for term, factor in ((total, argument(node, "alpha")), (c, argument(node, "beta"))):
        if factor != 1:
            scaled = at.call(aten.mul.Tensor, term, factor)
            total, c = (scaled, c) if term is total else (total, scaled)
    return at.call(aten.add.Tensor, total, c)


def _gates(e: Edit, node: fx.Node, x: Any, hidden: Any) -> tuple[Inserter, fx.Node, fx.Node]:
    """Return a cell's products with what it is given and with its state, the gates side by side."""
    at = e.before(node)
    parts = [(x, "w_ih", "b_ih"), (hidden, "w_hh", "b_hh")]
    of_input, of_state = (at.call(aten.linear.default, y, *(argument(node, name) for name in names)) for y, *names in parts)
    return at, of_input, of_state


def _split(at: Inserter, x: fx.Node, count: int) -> list[fx.Node]:
    size = shape(x)[-1] // count
    return [at.call(aten.slice.Tensor, x, -1, size * i, size * (i + 1)) for i in range(count)]


def _gru_cell(e: Edit, node: fx.Node) -> fx.Node:
    hidden = argument(node, "hx")
    at, of_input, of_state = _gates(e, node, argument(node, "input"), hidden)
    (reset, update, new), (reset_h, update_h, new_h) = _split(at, of_input, 3), _split(at, of_state, 3)
    reset, update = (at.call(aten.sigmoid.default, at.call(aten.add.Tensor, *pair)) for pair in ((reset, reset_h), (update, update_h)))
    new = at.call(aten.tanh.default, at.call(aten.add.Tensor, new, at.call(aten.mul.Tensor, reset, new_h)))
    return at.call(aten.add.Tensor, at.call(aten.mul.Tensor, at.call(aten.sub.Tensor, hidden, new), update), new)


def _plain_cell(name: str) -> Writer:
    def write(e: Edit, node: fx.Node) -> fx.Node:
        at, *parts = _gates(e, node, argument(node, "input"), argument(node, "hx"))
        return at.call(getattr(aten, name).default, at.call(aten.add.Tensor, *parts))

    return write


def _lstm_cell(e: Edit, node: fx.Node) -> None:
    """Replace both results of a cell."""
    hidden, cell = argument(node, "hx")
    at, *parts = _gates(e, node, argument(node, "input"), hidden)
    gates = _split(at, at.call(aten.add.Tensor, *parts), 4)
    names = ("sigmoid", "sigmoid", "tanh", "sigmoid")
    enter, forget, new, out = (at.call(getattr(aten, name).default, x) for name, x in zip(names, gates, strict=True))
    cell = at.call(aten.add.Tensor, at.call(aten.mul.Tensor, forget, cell), at.call(aten.mul.Tensor, enter, new))
    made = at.call(aten.mul.Tensor, out, at.call(aten.tanh.default, cell)), cell
    for user in list(node.users):
        e.replace(user, made[user.args[1]])  # type: ignore[index]


_WRITERS: Mapping[Any, Writer] = {
    **dict.fromkeys((aten.to.device, aten.to.dtype_layout, aten.to.other, aten._to_copy.default), _converted),
    **dict.fromkeys((
        aten.conv1d.default, aten.conv2d.default, aten.conv3d.default, aten.conv_transpose1d.default, aten.conv_transpose2d.input,
        aten.conv_transpose3d.input,
    ), _convolution),
    aten.batch_norm.default: _batch_norm,
    aten.max_pool2d.default: _pooled("max_pool2d_with_indices"),
    aten.max_pool3d.default: _pooled("max_pool3d_with_indices"),
    aten.adaptive_avg_pool2d.default: _averaged,
    aten.addmm.default: _addmm, aten.gru_cell.default: _gru_cell,
    aten.rnn_tanh_cell.default: _plain_cell("tanh"), aten.rnn_relu_cell.default: _plain_cell("relu"),
}  # fmt: skip
