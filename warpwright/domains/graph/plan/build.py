"""From the graph to a native plan: what depends on no input is written out, then one call after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture.meta import on_device
from warpwright.domains.graph.cpp.kernel import Kernel
from warpwright.domains.graph.ir import aten, is_op, is_random, value
from warpwright.domains.graph.plan.builder import MOST_LITERAL, Builder, Plan
from warpwright.domains.graph.plan.calls import add
from warpwright.domains.graph.plan.memory import Place


def _literals(graph: fx.Graph, parameters: Mapping[str, torch.Tensor]) -> dict[fx.Node, Any]:
    """Return the values of all that depends on no input and no state."""
    values: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if node.name in parameters:
            values[node] = parameters[node.name]
        elif node.op == "call_function" and all(arg in values for arg in node.all_input_nodes) and not is_random(node) and not _unwritten(node):
            val = node.meta["val"]
            if isinstance(val, torch.Tensor) and val.numel() <= MOST_LITERAL and not isinstance(node.target, Kernel):
                args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
                cpu = torch.device("cpu")
                with torch.no_grad(), cpu:
                    target: Any = node.target
                    values[node] = target(*on_device(args, cpu), **on_device(kwargs, cpu))
    return values


def _unwritten(node: fx.Node) -> bool:
    return is_op(node, aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty)


def build(
    graph: fx.Graph, calls: Sequence[fx.Node], parameters: Sequence[fx.Node], literals: Mapping[str, torch.Tensor], results: Sequence[fx.Node],
    wanted: Sequence[tuple[int, ...]],
) -> Plan:  # fmt: skip
    """Return the plan of some calls of a graph; raise Unsupported with the reason where there is none."""
    b = Builder(graph, parameters, literals, results, wanted)
    for number, node in enumerate(parameters):
        val = value(node)
        b.places[node] = Place(b.memory("argument", number), 0, tuple(val.shape), tuple(val.stride()), val.dtype)
    known = _literals(graph, literals)
    read = {arg for node in calls if node not in known for arg in node.all_input_nodes} | set(results)
    for node, tensor in known.items():
        if node in read:
            b.places[node] = b.literal(tensor)
    for node in calls:
        if node not in known:
            add(b, node)
            b.settle()
    return b.finish()
