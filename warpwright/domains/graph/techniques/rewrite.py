"""What most techniques are: a match at one node, and the calls that take its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import Edit, GraphIR, edit, find, is_op
from warpwright.errors import NotApplicable
from warpwright.space import Traits

MANY = 4
"""A network of twenty layers would take a hundred steps and seconds for what one step says as well."""


@dataclass(frozen=True)
class Rewrite:
    """A technique that starts at a call of one of `ops`.

    `match` looks and returns what it found, or None (raising NotApplicable is the same); `emit` is given that, on a copy of
    the graph, and replaces the node. `doc` says before -> after, the identity and where it comes from.
    """

    name: str
    traits: Traits
    ops: tuple[Any, ...]
    match: Callable[[fx.Node], Any]
    emit: Callable[[Edit, fx.Node, Any], None]
    doc: str
    assume: str = ""
    together: bool = False
    """One action for all matches at once: for clean-ups that nobody would want at one place and not at another."""

    def _matched(self, node: fx.Node) -> Any:
        try:
            return self.match(node) if is_op(node, *self.ops) else None
        except NotApplicable:
            return None

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield an action for every node that matches, or one for all of them together; where there are MANY of an exact rewrite, that one first."""
        names = [node.name for node in find(ir, *self.ops) if self._matched(node) is not None]
        if names and self.together:
            return [Action(self.name)]
        every = [Action(self.name)] if len(names) >= MANY and self.traits.legality in "EDP" else []
        return [*every, *(Action(self.name, name) for name in names)]

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return a new IR with the match at `action.at` rewritten; without a place, all matches."""
        e = edit(ir)
        done = 0
        for name in [action.at] if action.at else [node.name for node in find(ir, *self.ops)]:
            node = e.node(name) if action.at else next((one for one in e.graph.nodes if one.name == name), None)
            match = self._matched(node) if node is not None and node.users else None
            if node is not None and match is not None:
                self.emit(e, node, match)
                done += 1
        if not done:
            raise NotApplicable(f"{self.name} does not match at {action.at or 'any node'}", "take the action from sites(ir)")
        return e.finish(self.assume)
