"""The plan of a program: which tensors it takes, in which order, and its C++ text."""

from __future__ import annotations

import functools

from torch import fx

from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.cpp.regions import whole
from warpwright.domains.graph.ir import GraphIR, is_tensor, placeholders, value
from warpwright.domains.graph.plan.build import build
from warpwright.domains.graph.plan.builder import Plan
from warpwright.domains.graph.text import straight
from warpwright.errors import NotApplicable


def parameters(ir: GraphIR) -> tuple[fx.Node, ...]:
    """Return what the straight-line function takes: the inputs (some may be no tensors), the state that it reads, and what is computed once."""
    folded, rest = straight.split(ir)
    return (*placeholders(ir, "input"), *straight.state(ir, rest), *straight.frontier(folded))


@functools.lru_cache(maxsize=4)
def plan(ir: GraphIR) -> Plan:
    """Return the plan of a prepared IR; raise NotApplicable with the reason where there is none. A search asks often."""
    fused = whole(ir)
    names = [node.name for node in parameters(ir) if is_tensor(node)]
    nodes = {node.name: node for node in fused.graph.nodes}
    if any(name not in nodes for name in names):
        raise NotApplicable("what is computed once per state is no longer read")
    folded = {node.name for node in straight.split(ir)[0]}
    calls = [node for node in fused.graph.nodes if node.op == "call_function" and node.name not in folded]
    results = [node for node in fused.results if is_tensor(node)]
    strides = ir.strides or tuple(() for _ in ir.results)
    wanted = [stride or value(node).stride() for node, stride in zip(fused.results, strides, strict=True) if is_tensor(node)]
    try:
        return build(fused.graph, calls, [nodes[name] for name in names], ir.constants, results, wanted)
    except Unsupported as reason:
        raise NotApplicable(f"expected calls that a plan can hold, saw {reason}") from reason
