"""`torch.compile(model, backend="warpwright")`: each piece that dynamo cuts out is optimized by itself; what is not faster runs as it was."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.text import Text
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.utils._python_dispatch import _disable_current_modes

from warpwright.errors import WarpwrightError
from warpwright.front.module import optimize

log = logging.getLogger("warpwright")

BUDGET = "30s"
"""For one piece."""

OUT = Path("warpwright-out/dynamo")

_GRADIENTS = "a piece that was made faster runs as it was: this call wants gradients; call the model under torch.no_grad() or inference_mode()"


def backend(graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None, **_: Any) -> Any:
    """Return a function that computes what `graph_module` does; `options` are those of `warpwright.optimize`.

    What is done, and what came of it, is said on standard error, unless the options have `progress=False`.
    """
    chosen = {"budget": BUDGET, "progress": True, "mode": "as_is", **(options or {})}
    if any(isinstance(example, torch.SymInt) for example in example_inputs):
        log.warning("a piece with sizes that vary runs as it was; torch.compile(..., dynamic=False) makes one for each size")
        return graph_module.forward
    with torch._guards.tracing(None), _disable_current_modes(), _use_lazy_graph_module(False):
        piece, inputs = _plain(graph_module), [_like(example) for example in example_inputs]
        name = hashlib.sha256(f"{piece.code}{[str(getattr(value, 'shape', value)) for value in inputs]}".encode()).hexdigest()[:12]
        try:
            result = optimize(piece, inputs, **{"out": OUT / name, **chosen})
        except WarpwrightError as error:
            log.warning("a piece runs as it was: %s", error)
            return graph_module.forward
    said = f"piece {name}: {result.verdict} {result.speedup:.2f}x {result.reason}".rstrip()
    log.info(said)
    if chosen["progress"]:
        Console(stderr=True, soft_wrap=True).print(Text(said))
    return _guarded(result.module, graph_module) if result.verdict == "FASTER" else graph_module.forward


def _guarded(faster: torch.nn.Module, original: torch.fx.GraphModule) -> Callable[..., Any]:
    """Return a function that takes the faster module where no gradients are wanted."""

    told = False

    def run(*args: Any) -> Any:
        nonlocal told
        if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in args):
            if not told:
                warnings.warn(f"warpwright: {_GRADIENTS}", RuntimeWarning, stacklevel=2)
            told = True
            return original.forward(*args)
        return faster(*(value.detach() if isinstance(value, torch.nn.Parameter) else value for value in args))

    return run


def _plain(graph_module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy without what dynamo notes at its nodes, which cannot be saved."""
    graph = torch.fx.Graph()
    outputs = graph.graph_copy(graph_module.graph, {})
    graph.output(outputs)
    for node in graph.nodes:
        node.meta.clear()
    return torch.fx.GraphModule(graph_module, graph)


def _like(example: Any) -> Any:
    """Return a real value of an example's shape, type and strides; dynamo's own may hold no values."""
    if not isinstance(example, torch.Tensor):
        return example
    if type(example) in (torch.Tensor, torch.nn.Parameter) and example.device.type != "meta":
        return example.detach()
    tensor = torch.empty_strided(example.shape, example.stride(), dtype=example.dtype, device=example.device)
    return tensor.normal_() if example.is_floating_point() else tensor.zero_()
