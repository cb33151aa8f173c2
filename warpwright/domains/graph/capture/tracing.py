"""How a model's forward is traced on the meta device: what its code makes is made there too, and regions of it join the one graph."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch._higher_order_ops.wrap import wrap_with_autocast, wrap_with_set_grad_enabled
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from warpwright.domains.graph.capture import recurrent
from warpwright.errors import CaptureError

_LITERALS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor})
"""What makes a tensor of values in the program's text; the meta device would lose them."""

_INDEXING = frozenset({torch.Tensor.__getitem__, torch.Tensor.__setitem__})

_FACTORIES = frozenset(_device_constructors()) - _LITERALS


class Traced(TorchFunctionMode):
    """Let a forward run on the meta device as it does on a real one.

    `torch.arange(4)` without a device is made where the inputs are, `torch.tensor([1.0, 2.0])` keeps its values as a constant of the graph, and
    recurrent networks stay whole.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function in _LITERALS:
            return _literal(function, args, kwargs)
        if function is torch.Tensor.new_tensor and not isinstance(args[1], torch.Tensor):
            return _literal(torch.tensor, args[1:], {"dtype": args[0].dtype, "device": args[0].device, **kwargs})
        if function in _INDEXING:
            args = (args[0], _index(args[1]), *args[2:])
        if function in _FACTORIES and _on_cpu(kwargs.get("device")):
            kwargs["device"] = "meta"
        if function is torch.Tensor.cpu:
            return args[0]
        whole = recurrent.as_one(function, args, kwargs)
        return function(*args, **kwargs) if whole is None else whole


def _on_cpu(device: Any) -> bool:
    return device is None or torch.device(device).type == "cpu"


def _literal(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return a tensor made of values: a single number stays on the CPU, where it meets tensors of any device; others follow the inputs."""
    if args and isinstance(args[0], torch.Tensor):
        return function(*args, **kwargs)
    device = kwargs.pop("device", None)
    if device is not None and not _on_cpu(device) and torch.device(device).type != "meta":
        kwargs["device"] = device
        return function(*args, **kwargs)
    literal = function(*args, **kwargs, device="cpu")
    return literal if literal.dim() == 0 else literal.to("meta")


def _index(index: Any) -> Any:
    """Return an index whose lists are tensors of positions: torch would make them where the indexed tensor is, on the meta device."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if type(index).__module__ == "numpy" and getattr(index, "ndim", 0) == 1:
        index = index.tolist()
    if not isinstance(index, list) or not index or not all(isinstance(item, bool | int) for item in index):
        return index
    return torch.tensor([i for i, item in enumerate(index) if item] if isinstance(index[0], bool) else index)


@contextlib.contextmanager
def arrays_as_literals() -> Iterator[None]:
    """Let `torch.from_numpy` make tensors as `torch.tensor` does, which a mode sees."""
    original = torch.from_numpy
    torch.from_numpy = lambda ndarray: torch.tensor(ndarray)
    try:
        yield
    finally:
        torch.from_numpy = original


@contextlib.contextmanager
def autocast_of_meta() -> Iterator[None]:
    """Let `torch.autocast(x.device.type, enabled=False)`, and questions after it, mean on meta tensors what they mean on the CPU's."""
    kind: Any = torch.amp.autocast_mode.autocast
    init, enabled = kind.__init__, torch.is_autocast_enabled

    def of_cpu(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        init(self, "cpu" if device_type == "meta" else device_type, *args, **kwargs)

    def is_enabled(*device_type: str) -> bool:
        return enabled(*("cpu" if one == "meta" else one for one in device_type))

    kind.__init__, torch.is_autocast_enabled = of_cpu, is_enabled  # type: ignore[assignment]
    try:
        yield
    finally:
        kind.__init__, torch.is_autocast_enabled = init, enabled


@contextlib.contextmanager
def conversions_of_parts() -> Iterator[None]:
    """Let `self.part.to(x.dtype)` in a forward do nothing where the part's tensors are so already: torch would exchange parameters for new ones."""
    to = torch.nn.Module.to

    def unless_it_is_so(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        device, dtype, _, form = torch._C._nn._parse_to(*args, **kwargs)
        tensors = [*self.parameters(), *self.buffers()]
        same = all(dtype is None or not (one.is_floating_point() or one.is_complex()) or one.dtype == dtype for one in tensors)
        here = all(device is None or one.device == device or (one.is_meta and _on_cpu(device)) for one in tensors)
        return self if same and here and form is None else to(self, *args, **kwargs)

    torch.nn.Module.to = unless_it_is_so  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.nn.Module.to = to  # type: ignore[method-assign]


def inlined(module: torch.nn.Module, graph: fx.Graph, placed: Callable[[fx.Node], Any]) -> Any:
    """Copy a traced module's calls to `graph`, those of its regions without gradients and without autocast too; return its results.

    `placed` gives what stands for a placeholder. Raise CaptureError for anything else than aten operators.
    """
    twin: dict[fx.Node, Any] = {}
    traced: fx.Graph = module.graph  # type: ignore[assignment]
    for node in traced.nodes:
        if node.op == "output":
            return fx.map_arg(node.args[0], twin.__getitem__)
        if node.op == "placeholder":
            twin[node] = placed(node)
        elif node.op == "get_attr" and isinstance(getattr(module, str(node.target), None), fx.GraphModule):
            twin[node] = node  # a region, read where it is called
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            twin[node] = _region(module, node, graph, twin)
        elif node.target is operator.getitem and isinstance(twin.get(node.args[0]), tuple | list):  # type: ignore[arg-type]
            twin[node] = twin[node.args[0]][node.args[1]]  # type: ignore[index]
        elif node.op != "call_function":
            raise CaptureError(f"expected aten operators only, saw {node.op} {node.target}")
        else:
            args, kwargs = fx.map_arg((node.args, node.kwargs), twin.__getitem__)
            twin[node] = graph.create_node(node.op, node.target, args, kwargs, name=node.name)
    raise CaptureError("expected a graph with results, saw none")


def _region(module: torch.nn.Module, node: fx.Node, graph: fx.Graph, twin: dict[fx.Node, Any]) -> Any:
    """Copy the calls of a region; return its results."""
    if node.target is wrap_with_set_grad_enabled:
        where, operands = node.args[1], node.args[2:]
    elif node.target is wrap_with_autocast and not node.args[2]:
        where, operands = node.args[4], node.args[5:]
    else:
        what = "a region under autocast" if node.target is wrap_with_autocast else str(node.target)
        raise CaptureError(f"expected aten operators only, saw {what}")
    assert isinstance(where, fx.Node)
    values = iter(fx.map_arg(operands, twin.__getitem__))
    results = inlined(getattr(module, str(where.target)), graph, lambda _: next(values))
    if node.target is wrap_with_set_grad_enabled and not node.args[0]:
        results = fx.map_arg(results, lambda result: graph.call_function(torch.ops.aten.detach.default, (result,)))
    return results
