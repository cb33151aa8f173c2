"""The meaning of an IR: its graph, interpreted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from warpwright.domains.graph.capture.meta import on_device
from warpwright.domains.graph.capture.results import nest
from warpwright.domains.graph.ir.graph import GraphIR


def run(
    ir: GraphIR, inputs: Sequence[Any], state: Mapping[str, torch.Tensor], dtype: torch.dtype | None = None, flat: bool = False
) -> Any:
    """Interpret the graph: the slow, clear definition of what it computes.

    `inputs` are the call's positional arguments, `state` maps attribute paths to tensors and is written where the model would
    write its buffers. With `dtype` (torch.float64, say) every floating-point tensor, literal and conversion takes that type; `state` is then
    copied. `flat` returns the results as a tuple, without the original's nesting.
    """
    leaves = pytree.tree_leaves(tuple(inputs), is_leaf=lambda x: x is None)
    device = next((x.device for x in leaves if isinstance(x, torch.Tensor)), torch.device("cpu"))
    feeds: dict[str, Any] = dict(zip(ir.inputs, leaves, strict=True))
    feeds.update({name: state[path] for name, path in ir.state.items()})
    feeds.update({name: tensor.to(device) for name, tensor in ir.constants.items()})
    env: dict[fx.Node, Any] = {}
    with torch.no_grad():
        for node in ir.graph.nodes:
            if node.op == "placeholder":
                env[node] = _cast(feeds[node.name], dtype)
            elif node.op == "call_function":
                args, kwargs = fx.map_arg((node.args, node.kwargs), env.__getitem__)
                env[node] = node.target(*on_device(_types(args, dtype), device), **on_device(_types(kwargs, dtype), device))
    results = tuple(env[node] if isinstance(node, fx.Node) else node for node in ir.results)
    if ir.views:
        viewed = {number: results[view.of].as_strided(view.shape, view.strides, view.offset) for number, view in ir.views.items()}
        results = tuple(viewed.get(number, result) for number, result in enumerate(results))
    return results if flat else nest(ir.structure, results)


def _cast(tensor: Any, dtype: torch.dtype | None) -> Any:
    return tensor.to(dtype, copy=True) if dtype is not None and isinstance(tensor, torch.Tensor) and tensor.is_floating_point() else tensor


def _types(args: Any, dtype: torch.dtype | None) -> Any:
    """Replace floating-point dtypes among arguments by `dtype`."""
    if dtype is None:
        return args
    return pytree.tree_map(lambda x: dtype if isinstance(x, torch.dtype) and x.is_floating_point else x, args)
