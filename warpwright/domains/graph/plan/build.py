"""From the graph to a native plan: what depends on no input is written out, then one call after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.kernel import Kernel
from warpwright.domains.graph.ir import aten, is_op, is_random, value
from warpwright.domains.graph.meta import on_device
from warpwright.domains.graph.plan import loops
from warpwright.domains.graph.plan.builder import Builder, Plan
from warpwright.domains.graph.plan.calls import add
from warpwright.domains.graph.plan.memory import Place, row_major

MOST_LITERAL = 4096
"""Elements up to which what depends on no input is written out."""


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


def _literal_text(name: str, tensor: torch.Tensor, type_: str) -> str:
    items = [loops.number(item, type_) for item in tensor.contiguous().flatten().tolist()]
    return f"alignas(64) static const {type_} {name}[] = {{{', '.join(items)}}};"


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
            place = Place(b.memory("literal", len(b.constants)), 0, tuple(tensor.shape), row_major(tensor.shape), tensor.dtype)
            b.constants.append(_literal_text(f"literal_{len(b.constants)}", tensor, place.type))
            b.places[node] = place
    for node in calls:
        if node not in known:
            add(b, node)
            b.settle()
    return b.finish()
