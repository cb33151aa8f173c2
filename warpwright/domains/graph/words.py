"""A graph in words, for a policy that reads it: every node's name after an @, its operator, and its size as a power of two."""

from __future__ import annotations

import math

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
