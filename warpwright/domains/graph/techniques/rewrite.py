"""What most techniques are: a match at one node, and the calls that take its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import Edit, GraphIR, edit, find, is_op
from warpwright.errors import NotApplicable


@dataclass(frozen=True)
class Rewrite:
    """A technique that starts at a call of one of `ops`.

    `match` looks and returns what it found, or None (raising NotApplicable is the same); `emit` is given that, on a copy of
    the graph, and replaces the node. `doc` says before -> after, the identity and where it comes from.
    """

    name: str
    legality: str
    ops: tuple[Any, ...]
    match: Callable[[fx.Node], Any]
    emit: Callable[[Edit, fx.Node, Any], None]
    doc: str
    assume: str = ""

    def _found(self, node: fx.Node) -> Any:
        try:
            return self.match(node)
        except NotApplicable:
            return None

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield an action for every node that matches."""
        return [Action(self.name, node.name) for node in find(ir, *self.ops) if self._found(node) is not None]

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return a new IR with the match at `action.at` rewritten."""
        e = edit(ir)
        node = e.node(action.at)
        found = self._found(node) if is_op(node, *self.ops) else None
        if found is None:
            raise NotApplicable(f"{self.name} does not match at {action.at}", "take the action from sites(ir)")
        self.emit(e, node, found)
        return e.finish(self.assume)
