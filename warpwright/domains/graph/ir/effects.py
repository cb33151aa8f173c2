"""What calls do besides returning values (writes, random numbers), and so what may be removed, moved, or computed once per state."""

from __future__ import annotations

import functools
import heapq
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir.nodes import argument, aten, is_op, role

_RUNNING_STATISTICS = {aten.batch_norm.default: (5, 3, 4), aten.instance_norm.default: (5, 3, 4)}
"""Operators whose schema hides that they write running statistics: index of the switch, then of the written arguments."""


def written(node: fx.Node) -> tuple[fx.Node, ...]:
    """Return the nodes whose tensors this call writes in place."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return ()
    targets = []
    for position, name, by_name in _written_arguments(node.target):
        targets.append(node.kwargs.get(name) if by_name or position >= len(node.args) else node.args[position])
    if node.target in _RUNNING_STATISTICS:
        switch, *statistics = _RUNNING_STATISTICS[node.target]
        targets += [node.args[i] for i in statistics] if node.args[switch] else []
    flat = [one for target in targets for one in (target if isinstance(target, list | tuple) else [target])]  # torch._foreach_mul_ writes a list
    return tuple(n for n in flat if isinstance(n, fx.Node))


@functools.cache
def _written_arguments(target: torch._ops.OpOverload) -> tuple[tuple[int, str, bool], ...]:
    """Return place and name of each argument that an operator writes, and whether it is given by name only."""
    formals = enumerate(target._schema.arguments)
    return tuple((at, formal.name, formal.kwarg_only) for at, formal in formals if formal.alias_info is not None and formal.alias_info.is_write)


def is_random(node: fx.Node) -> bool:
    """Does this call draw random numbers? Such a call is never removed or moved, so that the generator's state stays the original's."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    if is_op(node, aten.dropout, aten.dropout_, aten.feature_dropout, aten.alpha_dropout):
        return bool(node.args[2]) and bool(node.args[1])
    if is_op(node, aten.scaled_dot_product_attention):
        return bool(argument(node, "dropout_p"))
    if is_op(node, aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu):
        return bool(argument(node, "dropout")) and bool(argument(node, "train"))
    if node.target._opname.endswith("_backward"):  # of torch's attention: it reads the numbers that the forward drew
        return False
    if any(formal.name == "dropout_p" for formal in node.target._schema.arguments):
        return bool(argument(node, "dropout_p"))
    return torch.Tag.nondeterministic_seeded in node.target.tags


def has_effect(node: fx.Node) -> bool:
    """Has this node to stay even when nobody reads it?"""
    return node.op in ("placeholder", "output") or bool(written(node)) or is_random(node) or "assert" in str(node.target)


def mutated(graph: fx.Graph) -> set[fx.Node]:
    """Return the placeholders that some call of the graph writes."""
    return {target for node in graph.nodes for target in written(node)}


def is_parameter_only(node: Any) -> bool:
    """Does this value depend on unwritten state, literals and Python numbers only, so that it can be computed once per state?"""
    if not isinstance(node, fx.Node):
        return True
    seen: set[fx.Node] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.op == "placeholder" and (role(current) == "input" or any(current in written(user) for user in current.users)):
            return False
        if current.op != "placeholder" and has_effect(current):
            return False
        todo += current.all_input_nodes
    return True


def parameter_only(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes of which `is_parameter_only` holds, in one pass: for whoever asks for all of them."""
    changing = mutated(graph)
    fixed: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder":
            if role(node) != "input" and node not in changing:
                fixed.add(node)
        elif all(arg in fixed for arg in node.all_input_nodes) and not has_effect(node):
            fixed.add(node)
    return fixed


def foldable(graph: fx.Graph) -> set[fx.Node]:
    """Return the calls that depend on unwritten state, and on nothing that changes from call to call; with the literals they need."""
    changing = mutated(graph)
    fixed: dict[fx.Node, bool] = {}
    for node in graph.nodes:
        if node.op == "placeholder" and role(node) != "input" and node not in changing:
            fixed[node] = role(node) == "state"
        elif node.op == "call_function" and not has_effect(node) and all(arg in fixed for arg in node.all_input_nodes):
            fixed[node] = any(fixed[arg] for arg in node.all_input_nodes)
    wanted = [node for node, on_state in fixed.items() if on_state and node.op == "call_function"]
    constants: set[fx.Node] = set()
    while wanted:
        node = wanted.pop()
        if node.op == "call_function" and node not in constants:
            constants.add(node)
            wanted += node.all_input_nodes
    return constants


def remove_dead(graph: fx.Graph) -> int:
    """Erase the calls that nobody reads and that have no effect; return how many."""
    count = 0
    for node in reversed(list(graph.nodes)):
        if not node.users and not has_effect(node):
            graph.erase_node(node)
            count += 1
    return count


def sort(graph: fx.Graph) -> None:
    """Put the nodes in an order in which each comes after what it reads, as near as can be to the present one.

    Calls that touch the same written state keep their order.
    """
    changing = mutated(graph)
    nodes = list(graph.nodes)
    position = {node: i for i, node in enumerate(nodes)}
    waits: dict[fx.Node, set[fx.Node]] = {node: set(node.all_input_nodes) for node in nodes}
    last: dict[fx.Node, fx.Node] = {}
    for node in nodes:
        for state in changing.intersection(node.all_input_nodes):
            waits[node] |= {last[state]} if state in last else set()
            last[state] = node
    readers: dict[fx.Node, list[fx.Node]] = {}
    for node, before in waits.items():
        for other in before:
            readers.setdefault(other, []).append(node)
    ready = [position[node] for node in nodes if not waits[node]]
    heapq.heapify(ready)
    while ready:
        node = nodes[heapq.heappop(ready)]
        graph._root.prepend(node)  # to the end
        for reader in readers.get(node, ()):
            waits[reader].discard(node)
            if not waits[reader]:
                heapq.heappush(ready, position[reader])
