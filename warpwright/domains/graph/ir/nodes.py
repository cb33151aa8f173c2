"""What a node of the graph is: its tensor, its readers, its operator and arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from warpwright.errors import NotApplicable

aten = torch.ops.aten

_SHORT = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32"}


def value(node: fx.Node) -> torch.Tensor:
    """Return the node's meta tensor; NotApplicable when the node stands for something else."""
    val = node.meta.get("val")
    if not isinstance(val, torch.Tensor):
        raise NotApplicable(f"expected {node.name} to be one tensor, saw {type(val).__name__}")
    return val


def shape(node: fx.Node) -> tuple[int, ...]:
    """Return the sizes of the node's tensor."""
    return tuple(value(node).shape)


def dtype(node: fx.Node) -> torch.dtype:
    """Return the element type of the node's tensor."""
    return value(node).dtype


def is_tensor(node: Any) -> bool:
    """Is this argument a node that stands for one tensor?"""
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def users(node: fx.Node) -> tuple[fx.Node, ...]:
    """Return the nodes that read this one, in graph order."""
    return tuple(sorted(node.users))


def only_user(node: fx.Node) -> fx.Node | None:
    """Return the one node that reads this one, or None when there are none or several."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def is_op(node: Any, *ops: Any) -> bool:
    """Is this a call of one of `ops`, each an overload (aten.sum.dim_IntList) or a packet for all its overloads (aten.sum)?"""
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return False
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    for op in ops:  # noqa: SIM110 - asked a million times of a program of 1,000 calls: a generator would take twice as long
        if target is op or packet is op:
            return True
    return False


def argument(node: fx.Node, name: str) -> Any:
    """Return a call's argument by its name in the operator's schema, with the schema's default when it is not given."""
    target: Any = node.target
    for position, formal in enumerate(target._schema.arguments):
        if formal.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            return node.args[position] if not formal.kwarg_only and position < len(node.args) else formal.default_value
    raise KeyError(f"{target} has no argument {name!r}")


def role(node: fx.Node) -> str:
    """Return what a placeholder holds (input, state or constant), or "" for any other node."""
    return str(node.meta.get("role", ""))


def ancestors(node: fx.Node, after: fx.Node | None = None) -> set[fx.Node]:
    """Return the node and all that it is computed from (only what stands after the node `after`, when that is given)."""
    seen: set[fx.Node] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if current not in seen and (after is None or after < current):
            seen.add(current)
            todo += current.all_input_nodes
    return seen


def type_text(node: fx.Node) -> str:
    """Return a node's type as `f32[128, 10]`."""
    val = node.meta.get("val")
    if not isinstance(val, torch.Tensor):
        return type(val).__name__
    return f"{_SHORT.get(val.dtype, str(val.dtype).removeprefix('torch.'))}{list(val.shape)}"
