"""A graph in words, for a policy that reads it: every node's name after an @, its operator, and its size as a power of two.

There are more operators than a policy has read. For each of a graph's words `stand_ins` names some that most policies know: operators of its kind,
which is told from what goes in and comes out, not from its name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import fx

from warpwright.domains.graph.ir import GraphIR


def words(ir: GraphIR) -> tuple[str, ...]:
    """Return the words of a graph, in its order; "unreadable" for a program that could not be captured."""
    if ir.unreadable:
        return ("unreadable",)
    return tuple(word for node in ir.graph.nodes if node.op != "output" for word in (f"@{node.name}", _operator(node), *_size(node)))


def _operator(node: fx.Node) -> str:
    if node.op == "placeholder":
        return str(node.meta.get("role", "input"))
    packet = getattr(node.target, "overloadpacket", None)
    return str(packet).rpartition(".")[2] if packet is not None else str(getattr(node.target, "__name__", node.target))


def _size(node: fx.Node) -> tuple[str, ...]:
    """Return the words of a tensor's size, of how many axes it has, and of its type where that is not float32."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return ()
    kind = () if value.dtype == torch.float32 else (str(value.dtype).rpartition(".")[2],)
    return (f"e{int(math.log2(max(1, value.numel())))}", f"axes{value.dim()}", *kind)


def stand_ins(ir: GraphIR) -> dict[str, tuple[str, ...]]:
    """Return for each word of a graph those that may stand for it where it was never read, the most fitting first; none: it may be left out."""
    found: dict[str, tuple[str, ...]] = {}
    for node in [] if ir.unreadable else ir.graph.nodes:
        if node.op == "output":
            continue
        found.setdefault(_operator(node), _alike(node))
        for word in _size(node):
            axes = word.removeprefix("axes")
            found[word] = tuple(f"axes{count}" for count in range(int(axes) - 1, -1, -1)) if axes != word else ()
    return found


def _alike(node: fx.Node) -> tuple[str, ...]:
    """Return operators of a node's kind."""
    given = [one for one in node.all_input_nodes if _tensor(one) is not None]
    tensors = [value for one in given if (value := _tensor(one)) is not None]
    made = _tensor(node)
    if not tensors or made is None:
        return ("input",) if not tensors else ("getitem",)
    if torch.Tag.pointwise in getattr(node.target, "tags", ()):
        return ("sigmoid", "relu") if len(tensors) == 1 else ("mul", "add")
    if _is_view(node):
        return ("getitem", "expand_as")
    weights = [value for one, value in zip(given, tensors, strict=True) if one.meta.get("role") == "state"]
    return _by_size(made, tensors, weights)


def _by_size(made: torch.Tensor, given: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]) -> tuple[str, ...]:
    """Return operators that make of such tensors such a one: products, windows, reductions, norms, copies."""
    most = max(value.dim() for value in weights) if weights else 0
    if most >= 2:
        return ("linear", "matmul") if most == 2 else ("conv3d", "conv2d") if most == 5 else ("conv2d", "conv3d")
    first, size = given[0], made.numel()
    moved = size == sum(value.numel() for value in given)
    if len(given) > 1 and not moved and not weights and min(given[0].dim(), given[1].dim()) >= 2 and first.is_floating_point():
        return ("matmul", "linear")
    if size < first.numel():
        return _narrowed(made, first)
    if size == first.numel() and not moved:
        return ("batch_norm", "layer_norm")
    return ("softmax", "cumsum") if size == first.numel() else ("expand_as", "add")


def _narrowed(made: torch.Tensor, first: torch.Tensor) -> tuple[str, ...]:
    """Return operators that make fewer elements of more: a window over space where its axes are left and longer than one, else a reduction."""
    space = made.shape[2:]
    if made.dim() == first.dim() >= 4 and min(space) > 1:
        return ("avg_pool3d", "avg_pool2d") if made.dim() == 5 else ("avg_pool2d", "avg_pool3d")
    return ("mean", "sum")


def _is_view(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    aliases = [one.alias_info for one in schema.arguments] if schema is not None else []
    return any(one is not None and not one.is_write for one in aliases)


def _tensor(node: fx.Node) -> torch.Tensor | None:
    """Return what a node computes, of several tensors the first."""
    value = node.meta.get("val")
    if isinstance(value, tuple | list):
        value = next((one for one in value if isinstance(one, torch.Tensor)), None)
    return value if isinstance(value, torch.Tensor) else None
