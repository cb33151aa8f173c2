"""Turn in-place writes of intermediate results into new values, so that a node always means one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import aten, is_op, is_tensor, role, value, written
from warpwright.domains.graph.meta import infer
from warpwright.errors import CaptureError

_SCATTER: Mapping[Any, Any] = {aten.slice.Tensor: aten.slice_scatter.default, aten.select.int: aten.select_scatter.default}
"""A view of a part, and the operator that puts a new part into the whole."""

_FREE = (aten.detach_, aten.lift_fresh_copy, aten.lift_fresh)
"""What export puts round tensor literals; without gradients it means nothing."""


def make_functional(graph: fx.Graph) -> None:
    """Rewrite `y = a.relu_()` as `y = a.relu()` with every later reader of `a` reading `y`.

    Writes of buffers stay; writes of the caller's inputs, or through views other than a slice, are CaptureErrors.
    """
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if is_op(node, *_FREE):
            node.replace_all_uses_with(node.all_input_nodes[0])
            graph.erase_node(node)
            continue
        if is_op(node, aten._assert_tensor_metadata):  # the guard of the lowered program checks the inputs
            graph.erase_node(node)
            continue
        schema = getattr(node.target, "_schema", None)
        targets = written(node) if schema is not None and schema.is_mutable else ()
        if targets and not (role(targets[0]) == "state" and not node.users):
            _rewrite(graph, node, targets)
        else:
            node.meta["val"] = infer(node)


def _rewrite(graph: fx.Graph, node: fx.Node, targets: tuple[fx.Node, ...]) -> None:
    target = targets[0]
    if len(targets) > 1:
        raise CaptureError(f"expected an in-place call to write one tensor, saw {node.target}")
    owner = _owner(target)
    if role(owner) == "input":
        raise CaptureError(f"the model writes its input {owner.name} in place ({node.target})")
    if role(owner):
        raise CaptureError(f"the model writes {owner.name} in place and uses the result ({node.target})")
    with graph.inserting_before(node):
        new = graph.call_function(_out_of_place(node.target), node.args, dict(node.kwargs))
        new.meta["val"] = infer(new)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
    _update(graph, target, new)


def _update(graph: fx.Graph, old: fx.Node, new: fx.Node) -> None:
    """Let what comes after `new` read `new` for `old`, and for the whole of which `old` is a part the whole with the new part."""
    storage = value(old).untyped_storage()._cdata
    old.replace_all_uses_with(new, delete_user_cb=lambda user: user > new)
    for other in list(graph.nodes):
        if other is old or other in old.all_input_nodes or not other < new or not any(user > new for user in other.users):
            continue
        if is_tensor(other) and value(other).untyped_storage()._cdata == storage:
            raise CaptureError(f"{other.name} is a view of memory that is later written through {old.name}")
    if not _is_view(old):
        return
    scatter = _SCATTER.get(old.target)
    if scatter is None:
        raise CaptureError(f"expected an in-place write through a slice, saw one through {old.target}")
    base = old.args[0]
    assert isinstance(base, fx.Node)
    with graph.inserting_after(new):
        whole = graph.call_function(scatter, (base, new, *old.args[1:]))
        whole.meta["val"] = infer(whole)
    _update(graph, base, whole)


def _is_view(node: fx.Node) -> bool:
    """Does the node share storage with its first argument?"""
    base = node.args[0] if node.args else None
    if node.op != "call_function" or not isinstance(base, fx.Node) or not is_tensor(base):
        return False
    return bool(value(node).untyped_storage()._cdata == value(base).untyped_storage()._cdata)


def _owner(node: fx.Node) -> fx.Node:
    while _is_view(node):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _out_of_place(op: Any) -> Any:
    """Return `aten.relu.default` for `aten.relu_.default`."""
    name = op._schema.name.removeprefix("aten::").removesuffix("_")
    if name == "zero":
        return aten.zeros_like.default
    packet = getattr(aten, name, None)
    if packet is None or op._overloadname not in packet.overloads():
        raise CaptureError(f"expected an operator with a form that is not in place, saw {op}")
    return getattr(packet, op._overloadname)

