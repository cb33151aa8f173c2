"""What calls are read by, and the table of them, which `calls` fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS, Axes, Program, Unsupported, Value
from warpwright.domains.graph.ir import is_tensor, value

Builder = Callable[[Program, fx.Node], Value]

BUILDERS: dict[Any, Builder] = {}
"""aten overload -> how it is written as a program."""


def build(p: Program, node: fx.Node) -> Value:
    """Return a call's program."""
    return BUILDERS[node.target](p, node)


def name_of(node: fx.Node) -> str:
    return node.target.overloadpacket.__name__ if isinstance(node.target, torch._ops.OpOverload) else ""


def float_result(node: fx.Node) -> None:
    if value(node).dtype not in FLOATS:
        raise Unsupported(f"a result of {value(node).dtype}")


def read_float(p: Program, arg: Any, near: Axes) -> Value:
    """Return an argument that has to be float32 or a number."""
    if is_tensor(arg) and value(arg).dtype not in FLOATS and arg.meta.get("number") is None:
        raise Unsupported("arithmetic on tensors that are not float32")
    return p.read(arg, near)
