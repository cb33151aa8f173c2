"""The one way to change an IR: `edit`, on a copy, checked at its end."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture.meta import infer, propagate
from warpwright.domains.graph.ir.effects import remove_dead
from warpwright.domains.graph.ir.graph import GraphIR, copy, extended
from warpwright.domains.graph.ir.nodes import ancestors, aten, dtype, is_tensor, shape, value
from warpwright.errors import NotApplicable


def edit(ir: GraphIR) -> Edit:
    """Start a rewrite of `ir` (which stays as it is)."""
    return Edit(ir)


class Edit:
    """One rewrite under way, on a copy of the IR."""

    def __init__(self, ir: GraphIR) -> None:
        self._original = ir
        self.ir = copy(ir)
        self._aliases = _aliases(ir)

    @property
    def graph(self) -> fx.Graph:
        """The copy's graph."""
        return self.ir.graph

    def node(self, name: str) -> fx.Node:
        """Return the copy's node of that name; NotApplicable if there is none."""
        return self.ir.node(name)

    def before(self, node: fx.Node) -> Inserter:
        """Return the place just before `node`: what is inserted there may read all that `node` may read."""
        return Inserter(self.graph, node)

    def replace(self, old: fx.Node, new: fx.Node) -> None:
        """Let every reader of `old` read `new`, except those that `new` itself is computed from.

        NotApplicable when shape or dtype differ.
        """
        a, b = value(old), value(new)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise NotApplicable(f"expected a replacement of {old.name} to be {a.dtype} {list(a.shape)}, saw {b.dtype} {list(b.shape)}")
        inside = ancestors(new, after=old)
        old.replace_all_uses_with(new, delete_user_cb=lambda user: user not in inside)

    def replace_reshaped(self, old: fx.Node, new: fx.Node) -> None:
        """The same by `new` in the shape of `old`: it has the same elements in the same order."""
        self.replace(old, self.before(old).shaped(new, shape(old)))

    def finish(self, assume: str = "") -> GraphIR:
        """Return the edited IR: dead calls removed, meta tensors made afresh, checked.

        NotApplicable when a result would change its shape or dtype, or would share storage with an input, with state or with
        another result although the original's did not (or the other way round).
        """
        remove_dead(self.graph)
        self.graph.lint()
        try:
            propagate(self.graph)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            raise NotApplicable(f"the rewritten graph does not run: {str(error).splitlines()[0]}") from error
        _check_results(self._original, self.ir)
        if _aliases(self.ir) != self._aliases:
            raise NotApplicable("a result would share storage with other tensors than in the original")
        return replace(self.ir, assumptions=extended(self.ir.assumptions, assume))


class Inserter:
    """A place in the graph at which calls are inserted, in the order of the calls of `call`."""

    def __init__(self, graph: fx.Graph, before: fx.Node) -> None:
        self._graph, self._before = graph, before

    def call(self, op: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Insert one call and return its node, with its meta tensor. NotApplicable when the operator rejects the arguments."""
        with self._graph.inserting_before(self._before):
            node = self._graph.create_node("call_function", op, _plain(args), _plain(kwargs), name=_short_name(op))
        try:
            node.meta["val"] = infer(node)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            self._graph.erase_node(node)
            raise NotApplicable(f"{op} rejects its arguments: {str(error).splitlines()[0]}") from error
        return node

    def item(self, node: fx.Node, index: int) -> fx.Node:
        """Insert the selection of one of several results."""
        return self.call(operator.getitem, node, index)

    def shaped(self, x: fx.Node, sizes: Sequence[int]) -> fx.Node:
        """Return x with these sizes: itself, or a reshape of it."""
        return x if shape(x) == tuple(sizes) else self.call(aten.reshape.default, x, list(sizes))


def _short_name(op: Any) -> str:
    """Return `conv2d` for aten.conv2d.default, and for a generated function a name that is not its own."""
    schema = getattr(op, "_schema", None)
    return str(schema.name.split("::")[1]) if schema is not None else f"{op.__name__}_result"


def _plain(value_: Any) -> Any:
    """Return arguments with tuples and torch.Size inside as lists, as torch.export writes them."""
    if isinstance(value_, dict):
        return {name: _plain(item) for name, item in value_.items()}
    if isinstance(value_, tuple):
        return tuple(list(item) if isinstance(item, torch.Size | tuple) else item for item in value_)
    return value_


def _check_results(original: GraphIR, edited: GraphIR) -> None:
    for old, new in zip(original.results, edited.results, strict=True):
        if is_tensor(old) and (shape(old) != shape(new) or dtype(old) != dtype(new)):
            raise NotApplicable(f"expected result {old.name} to stay {dtype(old)} {list(shape(old))}, saw {dtype(new)} {list(shape(new))}")


def _aliases(ir: GraphIR) -> tuple[tuple[str, ...], ...]:
    """Return for each result the placeholders and the other results with which it shares storage."""
    holders = [(node.name, node) for node in ir.graph.nodes if node.op == "placeholder"]
    holders += [(f"result {i}", node) for i, node in enumerate(ir.results)]

    def storage(node: Any) -> int:
        return int(value(node).untyped_storage()._cdata)

    known = [(name, storage(node)) for name, node in holders if is_tensor(node)]
    return tuple(tuple(n for n, s in known if s == storage(node)) if is_tensor(node) else () for node in ir.results)
