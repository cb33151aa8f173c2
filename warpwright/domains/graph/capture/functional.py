"""Turn in-place writes into new values, so that a node always means one value.

Tensors that share memory have one root, the first of them; the others are views of it, each by a chain of calls. A write through a view makes a
new root, and whoever reads one of them afterwards reads the same view of the new root.

    z[:, 1].mul_(2.0); f(z)   ->   z' = select_scatter(z, z[:, 1] * 2.0, 1, 1); f(z')
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture.meta import infer
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, role, shape, value, written
from warpwright.errors import CaptureError

_SCATTER: Mapping[Any, Any] = {
    aten.slice.Tensor: aten.slice_scatter.default, aten.select.int: aten.select_scatter.default, aten.diagonal.default: aten.diagonal_scatter.default,
}  # fmt: skip
"""A view of a part, and the operator that puts a new part into the whole."""

_SAME_ORDER = (
    aten.view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.flatten.using_ints, aten.unflatten.int, aten.alias.default, aten.detach.default, aten.view_as.default, aten.contiguous.default,
)  # fmt: skip
"""Views of all elements in the same order: a new view is a new whole of another shape."""

_FREE = (aten.detach_, aten.lift_fresh_copy, aten.lift_fresh)
"""What export puts round tensor literals; without gradients it means nothing."""


def make_functional(graph: fx.Graph) -> None:
    """Rewrite `y = a.relu_()` as `y = a.relu()` with every later reader of `a` reading `y`.

    Writes of buffers that nothing reads afterwards stay; others come at the end. Writes of the caller's inputs are CaptureErrors.
    """
    for node in list(graph.nodes):
        if is_op(node, *_FREE):
            node.replace_all_uses_with(node.all_input_nodes[0])
            graph.erase_node(node)
        elif is_op(node, aten._assert_tensor_metadata):  # the guard of the lowered program checks the inputs
            graph.erase_node(node)
        elif node.op == "call_function":
            node.meta["val"] = infer(node)
            if is_op(node, aten.histc) and not node.meta["val"].is_floating_point():
                _count_as_reals(node)
    writing = [node for node in graph.nodes if _writes(node)]
    if writing:
        memory = _Memory(graph)
        if any(not memory.is_last(node) for node in writing):
            memory.rewrite()


def _count_as_reals(node: fx.Node) -> None:
    """Make `histc` of whole numbers that of float64, which counts the same and which a CPU has as well.

    Models ask for the device (transformers' experts count as `x.float()` on a CPU, as `x.int()` elsewhere); on the meta device they take a GPU's way.
    """
    x, kind = node.args[0], node.meta["val"].dtype
    with node.graph.inserting_before(node):
        real = node.graph.call_function(aten.to.dtype, (x, torch.float64))
    real.meta["val"] = infer(real)
    node.args = (real, *node.args[1:])
    node.meta["val"] = infer(node)
    with node.graph.inserting_after(node):
        counts = node.graph.call_function(aten.to.dtype, (node, kind))
    node.replace_all_uses_with(counts, delete_user_cb=lambda user: user is not counts)
    counts.meta["val"] = infer(counts)


def _writes(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and bool(schema.is_mutable) and bool(written(node))


class _Memory:
    """Which nodes share memory, and what each root holds at the present point of the graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.root: dict[fx.Node, fx.Node] = {}
        self.place = {node: i for i, node in enumerate(graph.nodes)}
        self.last_read: dict[fx.Node, int] = {}
        self.taken = {node: (node.args, node.kwargs) for node in graph.nodes}
        """The arguments as they were: a view is made again from them."""
        first: dict[int, fx.Node] = {}
        for node in graph.nodes:
            for arg in node.all_input_nodes:
                if arg in self.root:
                    self.last_read[self.root[arg]] = self.place[node]
            val = node.meta.get("val")
            parts = val if isinstance(val, tuple | list) else [val] if is_tensor(node) else []
            storages = {part.untyped_storage()._cdata for part in parts if hasattr(part, "untyped_storage")}
            if len(storages) == 1:
                self.root[node] = first.setdefault(storages.pop(), node)
        self.holds: dict[fx.Node, fx.Node] = {}
        self.writes: dict[fx.Node, int] = {}
        """How often each root was written so far."""
        self.fresh: dict[fx.Node, tuple[int, fx.Node]] = {}
        """A view as it is after so many writes."""
        self.same: dict[fx.Node, fx.Node] = {}
        """Calls that wrote, and what they wrote to, which is what they returned."""

    def is_last(self, node: fx.Node) -> bool:
        """Does the call write state as a whole, and nothing reads its result or that state afterwards?"""
        target = written(node)[0]
        return role(target) == "state" and target not in self.holds and self.last_read.get(self.root[target]) == self.place[node]

    def rewrite(self) -> None:
        """Go through the graph; every call reads what its arguments hold at that point."""
        for node in list(self.graph.nodes):
            if node.op == "placeholder":
                continue
            target = written(node)[0] if _writes(node) and not self.is_last(node) else None
            if target is not None:
                self._check(node, target)
            before = node.args, node.kwargs
            node.args, node.kwargs = fx.map_arg(before, functools.partial(self._now, at=node))
            if target is not None:
                self._write(node, target)
            elif node.op == "call_function" and (node.args, node.kwargs) != before:
                node.target = _anyhow(node.target)
                node.meta["val"] = infer(node)
                if node in self.root and self.root[node] is not node:
                    self.fresh[node] = (self.writes.get(self.root[node], 0), node)
        output = self.graph.output_node()
        for root, held in self.holds.items():
            if role(root) == "state":
                with self.graph.inserting_before(output):
                    last = self.graph.call_function(aten.copy_.default, (root, held))
                    last.meta["val"] = infer(last)

    def _check(self, node: fx.Node, target: fx.Node) -> None:
        root = self.root.get(target)
        if root is None or len(written(node)) > 1:
            raise CaptureError(f"expected an in-place call to write one tensor, saw {node.target}")
        if role(root) in ("input", "constant"):
            what = "its input " if role(root) == "input" else ""
            raise CaptureError(f"the model writes {what}{root.name} in place ({node.target})")

    def _now(self, node: fx.Node, at: fx.Node) -> fx.Node:
        """Return what the node's memory holds just before `at`."""
        node = self.same.get(node, node)
        root = self.root.get(node)
        writes = self.writes.get(root, 0) if root is not None else 0
        if root is None or writes == 0:
            return node
        if node is root:
            return self.holds[root]
        known = self.fresh.get(node)
        if known is not None and known[0] == writes:
            return known[1]
        args, kwargs = fx.map_arg(self.taken[node], functools.partial(self._now, at=at))
        with self.graph.inserting_before(at):
            new = self.graph.call_function(_anyhow(node.target), args, kwargs)
            new.meta["val"] = infer(new)
        self.fresh[node] = (writes, new)
        return new

    def _write(self, node: fx.Node, target: fx.Node) -> None:
        """Put a call with a new result in place of one that writes, and a new root in place of the old."""
        root = self.root[target]
        with self.graph.inserting_before(node):
            new = self.graph.call_function(_out_of_place(node.target), node.args, dict(node.kwargs))
            new.meta["val"] = infer(new)
        part, held = target, new
        while part is not root:
            base, back = self._inverse(part)
            with self.graph.inserting_before(node):
                held = self.graph.call_function(*back(self._now(base, node), held))
                held.meta["val"] = infer(held)
            part = self.same.get(base, base)
        self.writes[root] = self.writes.get(root, 0) + 1
        self.holds[root] = held
        self.fresh[target] = (self.writes[root], new)
        self.same[node] = target
        node.replace_all_uses_with(target)
        self.graph.erase_node(node)

    def _inverse(self, view: fx.Node) -> tuple[fx.Node, Callable[[fx.Node, fx.Node], tuple[Any, tuple[Any, ...]]]]:
        """Return what `view` is a view of, and the call that gives that from what it held and from the view's new value."""
        base, *rest = self.taken[view][0]
        if view.target is operator.getitem:
            return self._inverse_of_piece(view)
        if view.target in _SCATTER:
            return base, lambda held, new: (_SCATTER[view.target], (held, new, *rest))
        if view.target in _SAME_ORDER or _is_whole(view, base):
            return base, lambda held, new: (aten.reshape.default, (new, list(shape(base))))
        if is_op(view, aten.transpose.int, aten.t.default, aten.numpy_T.default):
            return base, lambda held, new: (view.target, (new, *rest))
        if is_op(view, aten.permute.default):
            order = [d % len(rest[0]) for d in rest[0]]
            return base, lambda held, new: (aten.permute.default, (new, sorted(range(len(order)), key=order.__getitem__)))
        raise CaptureError(f"expected an in-place write through a slice or a view of the whole, saw one through {view.target}")

    def _inverse_of_piece(self, view: fx.Node) -> tuple[fx.Node, Callable[[fx.Node, fx.Node], tuple[Any, tuple[Any, ...]]]]:
        """As `_inverse`, for one of several views."""
        several, index = self.taken[view][0]
        base, dim = self.taken[several][0][0], argument(several, "dim")
        if is_op(several, aten.unbind.int):
            return base, lambda held, new: (aten.select_scatter.default, (held, new, dim, index))
        if is_op(several, aten.split, aten.split_with_sizes, aten.chunk, aten.tensor_split):
            start = sum(part.shape[dim] for part in several.meta["val"][:index])
            return base, lambda held, new: (aten.slice_scatter.default, (held, new, dim, start, start + shape(new)[dim]))
        raise CaptureError(f"expected an in-place write through a slice or a view of the whole, saw one through {several.target}")


def _is_whole(view: fx.Node, base: fx.Node) -> bool:
    """Is the view its base, element for element: a dropout that is off, a conversion to the type that it has?"""
    a, b = value(view), value(base)
    return bool(a.shape == b.shape and a.stride() == b.stride() and a.storage_offset() == b.storage_offset())


def _anyhow(op: Any) -> Any:
    """Return the operator for a tensor whose strides may be others than the original's."""
    return aten.reshape.default if op is aten.view.default else op


def _out_of_place(op: Any) -> Any:
    """Return `aten.relu.default` for `aten.relu_.default`."""
    name = op._schema.name.removeprefix("aten::").removesuffix("_")
    if name == "zero":
        return aten.zeros_like.default
    packet = getattr(aten, name, None)
    if packet is None or op._overloadname not in packet.overloads():
        raise CaptureError(f"expected an operator with a form that is not in place, saw {op}")
    return getattr(packet, op._overloadname)
