"""Regions under torch.vmap, which torch.export keeps as calls that open and close them, written as plain calls on whole batches.

    _vmap_increment_nesting(3); a = _add_batch_dim(x, 0, 1); b = sum(a) * a; c = _remove_batch_dim(b, 1, 3, 0)   ->   c = sum(x, [1])[:, None] * x
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from warpwright.errors import CaptureError

_OPENS, _CLOSES = "_vmap_increment_nesting", "_vmap_decrement_nesting"


def unbatched(graph: fx.Graph) -> None:
    """Replace each region under vmap in an exported graph by what vmap's rules make of it."""
    for nodes in _regions(graph):
        _replace(graph, nodes)
    for node in reversed(graph.nodes):
        if _name(node) == "lazy_load_decompositions":
            graph.erase_node(node)


def _name(node: fx.Node) -> str:
    """Return the name of a call that vmap leaves in a graph, "" of another node."""
    ours = node.op == "call_function" and getattr(node.target, "__module__", "") == "torch._functorch.predispatch"
    return str(getattr(node.target, "__name__", "")) if ours else ""


def _regions(graph: fx.Graph) -> list[list[fx.Node]]:
    found: list[list[fx.Node]] = []
    depth = 0
    for node in graph.nodes:
        if _name(node) == _OPENS:
            depth += 1
            if depth == 1:
                found.append([])
        if depth and node.op != "get_attr":
            found[-1].append(node)
        depth -= _name(node) == _CLOSES
    return found


def _replace(graph: fx.Graph, nodes: list[fx.Node]) -> None:
    inside = set(nodes)
    given = list(dict.fromkeys(arg for node in nodes for arg in node.all_input_nodes if arg not in inside))
    results = [node for node in nodes if any(user not in inside for user in node.users)]
    plain = _traced(nodes, given, results)
    twin: dict[fx.Node, Any] = dict(zip(plain.find_nodes(op="placeholder"), (node for node in given if node.op != "get_attr"), strict=True))
    with graph.inserting_before(nodes[0]):
        for node in plain.nodes:
            if node.op not in ("placeholder", "call_function", "output"):
                raise CaptureError(f"expected plain calls of a region under vmap, saw {node.op} {node.target}")
            if node.op == "call_function":
                twin[node] = graph.node_copy(node, twin.__getitem__)
    for old, new in zip(results, plain.output_node().args[0], strict=True):  # type: ignore[arg-type]
        old.replace_all_uses_with(twin[new])
    for node in [*reversed(nodes), *given]:
        if node in inside or (node.op == "get_attr" and not node.users):
            graph.erase_node(node)


def _traced(nodes: list[fx.Node], given: list[fx.Node], results: list[fx.Node]) -> fx.Graph:
    """Return the graph of a region's calls on whole batches, on the meta device."""
    region = fx.Graph()
    tensors = [node for node in given if node.op != "get_attr"]
    twin = {node: region.placeholder(node.name) for node in tensors}
    held = {node: operator.attrgetter(str(node.target))(node.graph.owning_module) for node in given if node.op == "get_attr"}
    twin |= {node: region.get_attr(str(node.target)) for node in held}  # which function a call is, how its arguments are nested
    for node in nodes:
        twin[node] = region.node_copy(node, twin.__getitem__)
    region.output(tuple(twin[node] for node in results))
    values = [_meta(node.meta.get("val")) for node in tensors]
    level = torch._C._functorch.maybe_current_level()
    try:
        return make_fx(fx.GraphModule({str(node.target): item for node, item in held.items()}, region))(*values).graph
    except Exception as error:  # of torch's tracing, of whatever kind
        while torch._C._functorch.maybe_current_level() != level:
            torch._C._functorch._vmap_decrement_nesting()
        raise CaptureError(f"a region under vmap cannot be read: {type(error).__name__}: {error}") from error


def _meta(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
