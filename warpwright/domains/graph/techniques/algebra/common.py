"""Common subexpressions: what is computed twice from the same values is computed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import GraphIR, edit, has_effect, is_tensor, mutated
from warpwright.domains.graph.techniques.algebra.identity import can_stand_for
from warpwright.errors import NotApplicable
from warpwright.space import Traits


def _key(node: fx.Node) -> Any:
    return node.target, repr(node.args), repr(sorted(node.kwargs.items(), key=lambda pair: pair[0]))


def _repeats(ir: GraphIR) -> Iterable[tuple[fx.Node, fx.Node]]:
    """Yield (earlier, later) calls of the same operator on the same nodes; none that writes, draws random numbers or reads what is written.

    And none that a training step computes again on purpose.
    """
    changing = mutated(ir.graph)
    first: dict[Any, fx.Node] = {}
    for node in ir.graph.nodes:
        if node.op != "call_function" or has_effect(node) or node.meta.get("again") or changing & set(node.all_input_nodes):
            continue
        earlier = first.setdefault(_key(node), node)
        if earlier is not node and is_tensor(node) and can_stand_for(earlier, node):
            yield earlier, node


def merged(ir: GraphIR) -> GraphIR:
    """Return the IR with every repeated call replaced by the earlier one."""
    e = edit(ir)
    while repeats := list(_repeats(e.ir)):
        for earlier, later in repeats:
            e.replace(later, earlier)
            e.graph.erase_node(later)
    return e.finish()


class _CommonSubexpression:
    """a = f(x); b = f(x) -> b = a. Last among the rewrites: some of them want a linear map of their own to simplify."""

    name = "common_subexpression"
    traits = Traits("E")

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield an action for every call that repeats an earlier one."""
        return [Action(self.name, later.name) for _, later in _repeats(ir)]

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return a new IR in which readers of the repeated call read the earlier one."""
        e = edit(ir)
        for earlier, later in _repeats(e.ir):
            if later.name == action.at:
                e.replace(later, earlier)
                return e.finish()
        raise NotApplicable(f"{action.at} repeats no earlier call", "take the action from sites(ir)")


COMMON_SUBEXPRESSION = _CommonSubexpression()

TECHNIQUES = (COMMON_SUBEXPRESSION,)
