"""Shapes, dtypes and strides of a graph's values, found by running each call on meta tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx


def infer(node: fx.Node) -> Any:
    """Run one call on the meta tensors of its arguments and return what it gives."""
    target: Callable[..., Any] = node.target  # type: ignore[assignment]
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    with torch.no_grad(), torch.device("meta"):
        result = target(*on_device(args, torch.device("meta")), **on_device(kwargs, torch.device("meta")))
    return _as_libraries_lay_it(result, args) if target in _CONVOLUTIONS else result


_CONVOLUTIONS = (
    torch.ops.aten.conv2d.default, torch.ops.aten.conv3d.default, torch.ops.aten.conv_transpose2d.input, torch.ops.aten.conv_transpose3d.input,
)  # fmt: skip
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def _as_libraries_lay_it(result: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
    """Return a convolution's result with the channels last if they are so in an operand: as cuDNN and oneDNN have it, but not the meta device."""
    form = _FORMATS.get(result.dim())
    if form is None or not any(argument.is_contiguous(memory_format=form) and not argument.is_contiguous() for argument in args[:2]):
        return result
    return torch.empty_like(result, memory_format=form)


def propagate(graph: fx.Graph) -> None:
    """Set `meta["val"]` of every call whose arguments have changed since it was last set.

    A call whose result is as before, and shares no storage with its arguments, keeps its meta tensor: what reads it need not run again.
    """
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        text_, inputs = f"{node.args}{node.kwargs}", tuple(arg.meta["val"] for arg in node.all_input_nodes)
        known = node.meta.get("seen")
        if known is not None and known[0] == text_ and len(known[1]) == len(inputs) and all(a is b for a, b in zip(known[1], inputs, strict=True)):
            continue
        old, new = node.meta.get("val"), infer(node)
        fresh = isinstance(new, torch.Tensor) and not any(
            isinstance(arg, torch.Tensor) and arg.untyped_storage()._cdata == new.untyped_storage()._cdata for arg in inputs
        )
        if not (known is not None and fresh and known[2] and _same_type(old, new)):
            node.meta["val"] = new
        node.meta["seen"] = (text_, inputs, fresh)


def _same_type(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride())


def on_device(arguments: Any, device: torch.device) -> Any:
    """Return a call's positional or keyword arguments with any device replaced by `device`; the graph was captured on the meta device."""
    if isinstance(arguments, Mapping):
        return {name: device if isinstance(item, torch.device) else item for name, item in arguments.items()}
    return tuple(device if isinstance(item, torch.device) else item for item in arguments)
