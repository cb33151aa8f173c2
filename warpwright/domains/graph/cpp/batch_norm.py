"""BatchNorm in training mode as its parts, so that they can join a kernel: statistics, normalisation, and the update of the buffers.

On a GPU the updates of all layers are few launches instead of five a layer (`updated_together`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, find, is_tensor, role, shape, users, value


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with every float32 batch norm in training mode written out, but for those whose statistics are another's too."""
    norms = [node for node in find(ir, aten.batch_norm.default) if argument(node, "training") and dtype(node) == torch.float32]
    names = [node.name for node in norms if not any(source.meta.get("shared") for source in node.all_input_nodes if role(source) == "state")]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        _expand(e, e.node(name))
    return e.finish()


def _expand(e: Edit, node: fx.Node) -> None:
    at = e.before(node)
    x: Any = argument(node, "input")
    dims = [0, *range(2, len(shape(x)))]
    expand_by(e, node, at.call(aten.var.correction, x, dims, correction=0, keepdim=True), at.call(aten.mean.dim, x, dims, True))


def normalised(at: Inserter, x: fx.Node, variance: fx.Node, mean: fx.Node, norm: fx.Node) -> fx.Node:
    """Insert (x - mean) / sqrt(variance + eps) * weight + bias with eps, weight and bias of `norm`."""
    sizes = shape(x)
    along = [1, sizes[1], *[1] * (len(sizes) - 2)]
    scale = at.call(aten.rsqrt.default, at.call(aten.add.Tensor, variance, argument(norm, "eps")))
    weight, bias = argument(norm, "weight"), argument(norm, "bias")
    if weight is not None:
        scale = at.call(aten.mul.Tensor, scale, at.call(aten.view.default, weight, along))
    new = at.call(aten.mul.Tensor, at.call(aten.sub.Tensor, x, mean), scale)
    return at.call(aten.add.Tensor, new, at.call(aten.view.default, bias, along)) if bias is not None else new


def expand_by(e: Edit, node: fx.Node, variance: fx.Node, mean: fx.Node) -> None:
    """Write out a batch norm by the variance and the mean [1, channels, 1, ...] of its input."""
    at = e.before(node)
    x: Any = argument(node, "input")
    sizes = shape(x)
    new = normalised(at, x, variance, mean, node)
    if argument(node, "running_mean") is not None:
        share, count = argument(node, "momentum"), x.meta["val"].numel() // sizes[1]
        for buffer, seen, factor in (("running_mean", mean, share), ("running_var", variance, share * count / max(count - 1, 1))):
            flat = at.call(aten.view.default, seen, [sizes[1]])
            at.call(aten.mul_.Tensor, argument(node, buffer), 1 - share)
            at.call(aten.add_.Tensor, argument(node, buffer), flat, alpha=factor)
    e.replace(node, new)
    e.graph.erase_node(node)


def updated_together(ir: GraphIR) -> GraphIR:
    """Return the IR with the updates of buffers that nothing else reads at its end, many in a call.

    running.mul_(0.9); running.add_(seen, alpha=0.1); count.add_(1), each a launch, of every layer  ->  torch._foreach_mul_(all, 0.9), ...
    """
    counts: dict[Any, list[fx.Node]] = defaultdict(list)
    averages: list[tuple[fx.Node, fx.Node]] = []
    for buffer in _alone(ir):
        updates = users(buffer)
        if any(update.users or update.args[0] is not buffer for update in updates):
            continue
        if len(updates) == 1 and _adds_number(updates[0]):
            counts[updates[0].args[1], dtype(buffer)].append(updates[0])
        elif len(updates) == 2 and updates[0].target is aten.mul_.Tensor and isinstance(updates[0].args[1], float) and _adds_tensor(updates[1]):
            averages.append((updates[0], updates[1]))
    groups = [group for group in counts.values() if len(group) > 1]
    if len(averages) < 2 and not groups:
        return ir
    e = edit(ir)
    at = e.before(e.graph.output_node())
    for group in groups:
        at.call(aten._foreach_add_.Scalar, [e.node(node.name).args[0] for node in group], group[0].args[1])
    shrunk: dict[Any, list[fx.Node]] = defaultdict(list)
    grown: dict[Any, list[fx.Node]] = defaultdict(list)
    for shrinks, adds in averages if len(averages) > 1 else ():
        shrunk[shrinks.args[1], dtype(shrinks)].append(e.node(shrinks.name))
        grown[adds.kwargs.get("alpha", 1), dtype(adds)].append(e.node(adds.name))
    for (factor, _), nodes in shrunk.items():
        at.call(aten._foreach_mul_.Scalar, [node.args[0] for node in nodes], factor)
    for (alpha, _), nodes in grown.items():
        at.call(aten._foreach_add_.List, [node.args[0] for node in nodes], [node.args[1] for node in nodes], alpha=alpha)
    for node in [*(e.node(one.name) for group in groups for one in group), *(one for nodes in (*grown.values(), *shrunk.values()) for one in nodes)]:
        e.graph.erase_node(node)
    return e.finish()


def _alone(ir: GraphIR) -> list[fx.Node]:
    """Return the tensors of the state that lie in no storage with others."""
    return [node for node in ir.graph.nodes if role(node) == "state" and is_tensor(node) and not node.meta.get("shared")]


def _adds_number(node: fx.Node) -> bool:
    return node.target is aten.add_.Tensor and isinstance(node.args[1], int | float) and not node.kwargs


def _adds_tensor(node: fx.Node) -> bool:
    """Is it an update by a tensor of the same shape and type, by a factor that is a number?"""
    if node.target is not aten.add_.Tensor or not isinstance(node.args[1], fx.Node):
        return False
    one, other = value(node.args[0]), value(node.args[1])  # type: ignore[arg-type]
    return one.shape == other.shape and one.dtype == other.dtype
