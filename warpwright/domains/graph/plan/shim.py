"""Operators of torch through its C shim, by their schema: how the shim's function is called, and declared.

The shim's functions keep their form from release to release (those of 2.13 and 2.15 were compared): what a schema's type becomes in C stands
in torchgen/aoti. Every function is looked up in the running torch when a plan is built and when it is loaded; without it the plain calls run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.ir import argument, is_tensor, value

PREFIX = "aoti_torch_cpu_"
BASE = {
    "create_tensor": "aoti_torch_create_tensor_from_blob", "delete_tensor": "aoti_torch_delete_tensor_object", "get_data": "aoti_torch_get_data_ptr",
    "get_strides": "aoti_torch_get_strides", "grad_is_on": "aoti_torch_grad_mode_is_enabled", "set_grad": "aoti_torch_grad_mode_set_enabled",
}  # fmt: skip
"""What runtime.cpp calls, in the order of its table."""
FIXED = {
    "f_mm_out": ("mm_out", "AtenTensorHandle, AtenTensorHandle, AtenTensorHandle"),
    "f_addmm_out": ("addmm_out", "AtenTensorHandle, AtenTensorHandle, AtenTensorHandle, AtenTensorHandle, double, double"),
    "f_bmm_out": ("bmm_out", "AtenTensorHandle, AtenTensorHandle, AtenTensorHandle"),
}
"""Products: name in a plan -> the shim's, and its parameters."""
_PLAIN = {"Tensor": "AtenTensorHandle", "int": "int64_t", "SymInt": "int64_t", "float": "double", "bool": "int32_t", "number": "double"}


@functools.cache
def library() -> ctypes.CDLL:
    """Return torch's library for the CPU, which is loaded already."""
    folder = Path(torch.__file__).with_name("lib")
    name = next((name for name in ("libtorch_cpu.so", "libtorch_cpu.dylib") if (folder / name).exists()), None)
    if name is None:
        raise Unsupported("torch without a library libtorch_cpu")
    return ctypes.CDLL(str(folder / name))


def has(name: str) -> bool:
    """Has the running torch this function?"""
    return hasattr(library(), name)


@dataclass
class Call:
    """One call of the shim: its function, and C++ texts."""

    symbol: str
    parameters: list[str] = field(default_factory=list)
    """Their types."""
    arguments: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    """Lines that set up lists and optional arguments."""


def call(node: fx.Node, handle: Callable[[fx.Node], str], prefix: str) -> Call:
    """Return the call of a node's operator, without its results; `prefix` begins the names of its variables. Unsupported where there is none."""
    schema = node.target._schema  # type: ignore[union-attr]
    name = schema.name.split("::")[1] + (f"_{schema.overload_name}" if schema.overload_name else "")
    call = Call(PREFIX + name)
    if not has(call.symbol) or schema.is_mutable:
        raise Unsupported(f"{node.target}, which torch's C shim has not")
    for number, formal in enumerate(schema.arguments):
        item = argument(node, formal.name)
        if "number" in str(formal.type) and isinstance(item, int) and _computes_integers(node):
            raise Unsupported(f"{node.target} of integers and a number, which the shim takes as a float")
        if formal.name in ("dtype", "layout", "device"):  # int32_t in C, an int to the schema
            call.parameters.append("int32_t*")
            call.arguments.append("nullptr")
            if item is not None:
                raise Unsupported(f"{node.target} with a {formal.name}")
        else:
            _add(call, formal.type, item, f"{prefix}_{number}", handle)
    return call


def _computes_integers(node: fx.Node) -> bool:
    """Whether a call's result is of another type, or no result at all, were an integer among its numbers a float."""
    vals = node.meta["val"]
    of = [*(value(arg) for arg in node.all_input_nodes if is_tensor(arg)), *([vals] if is_tensor(node) else vals)]
    return not any(one.is_floating_point() for one in of if isinstance(one, torch.Tensor))


def _add(call: Call, kind: Any, item: Any, name: str, handle: Callable[[fx.Node], str]) -> None:
    if isinstance(kind, torch.OptionalType):
        inner = kind.getElementType()
        if isinstance(inner, torch.ListType):
            raise Unsupported("an operator with an optional list")
        type_ = _plain(inner)
        call.parameters.append(f"{type_}*")
        if item is None:
            call.arguments.append("nullptr")
        else:
            call.before.append(f"{type_} {name} = {_value(inner, item, handle)};")
            call.arguments.append(f"&{name}")
        return
    if isinstance(kind, torch.ListType):
        inner = kind.getElementType()
        type_ = _plain(inner)
        items = list(item) if isinstance(item, list | tuple) else [item]
        shown = ", ".join(_value(inner, one, handle) for one in items)
        call.before.append(f"const {type_} {name}[] = {{{shown or '0'}}};")
        call.parameters += [f"const {type_}*", "int64_t"]
        call.arguments += [name, str(len(items))]
        return
    call.parameters.append(_plain(kind))
    call.arguments.append(_value(kind, item, handle))


def _plain(kind: Any) -> str:
    if str(kind) not in _PLAIN:
        raise Unsupported(f"an operator with an argument of type {kind}")
    return _PLAIN[str(kind)]


def _value(kind: Any, item: Any, handle: Callable[[fx.Node], str]) -> str:
    if is_tensor(item):
        return handle(item)
    if isinstance(item, bool):
        return "1" if item else "0"
    if isinstance(item, int) and str(kind) in ("int", "SymInt"):
        return f"{item}LL" if item > -(2**63) else "INT64_MIN"
    if isinstance(item, int | float) and str(kind) in ("float", "number"):
        return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(str(float(item)), repr(float(item)))
    raise Unsupported(f"an operator with the argument {item!r}")
