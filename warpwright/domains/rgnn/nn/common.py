"""What the drop-in layers share: the graph index of a call, and the way back to PyG for what they do not compute."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.nn.replay import Call, Replays
from warpwright.domains.rgnn.operator import Edges
from warpwright.domains.rgnn.plan import Options
from warpwright.errors import MissingExtra, UsageError

Function = TypeVar("Function", bound=Callable[..., Any])

TENSORS = {torch.Tensor, torch.nn.Parameter}

STEPS = ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")
WATCHERS = ["_explain", *(f"_{step}_forward_{when}" for step in STEPS for when in ("pre_hooks", "hooks"))]
"""Where PyG's MessagePassing keeps whether it is explained, and its hooks."""
REPLACEABLE = (*STEPS[1:], "update", "explain_message", "forward")
"""Methods that a program may replace in one layer; `propagate` PyG itself replaces after an explanation."""


def whole_call(forward: Function) -> Function:
    """Keep autocast out of a layer's forward, whose sums are made in float32, and replay calls that have been recorded.

    Under the transforms of torch.func (grad, vmap, ...), which take no autograd function such as ours, PyG computes; so it does where
    messages are masked or looked at, since here no message is ever made.
    """

    @functools.wraps(forward)
    def run(self: Layer, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None:
            return self.fall_back("a transform of torch.func", *args, **kwargs)
        if self.watched:
            return self.by_pyg(*args, **kwargs)
        if not torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu"):
            if not torch.compiler.is_compiling() and not kwargs and self.replayable and self.options.replay and not self.replays.refused:
                done = self.replayed(forward, args)
                if done is not None:
                    return done
            return forward(self, *args, **kwargs)
        device = next(self.parameters()).device.type
        with torch.autocast(device, enabled=False):
            return forward(self, *args, **kwargs)

    return run  # type: ignore[return-value]


class Layer(torch.nn.Module):
    """A layer with the constructor, the forward and the state of a PyG layer, `pyg_module`.`__name__`."""

    pyg_module = ""
    pyg: type[torch.nn.Module] | None = None
    """PyG's class, of those that `accelerate` made."""
    options = Options()
    replayable = True
    """Do its kernels wait for nothing on the host?"""

    def remember(self, arguments: Mapping[str, Any]) -> None:
        """Keep the constructor's arguments, for a fall-back."""
        self.arguments = {name: value for name, value in arguments.items() if name not in {"self", "__class__", "kwargs"}}
        self.arguments |= arguments.get("kwargs", {})
        self.hidden: list[torch.nn.Module] = []
        self.warned = False
        self.replays = Replays()

    @indices.uncompiled
    def fall_back(self, reason: str, *args: Any, **kwargs: Any) -> Any:
        """Compute a call by PyG's layer with this one's parameters; warn once. Raises MissingExtra without PyG."""
        if not self.warned:
            warnings.warn(f"{type(self).__name__} of warpwright computes by PyG: {reason}", stacklevel=4)
            self.warned = True
        self.replays.refused = True
        return self.by_pyg(*args, **kwargs)

    @property
    def watched(self) -> bool:
        """Does an explainer mask the messages, a hook of PyG's read them, or a method replaced in this layer make them?

        All are kept by the layers that `accelerate` made.
        """
        return any(map(self.__dict__.get, (*WATCHERS, *REPLACEABLE)))

    @indices.uncompiled
    def by_pyg(self, *args: Any, **kwargs: Any) -> Any:
        """Compute a call by PyG's forward with this layer's parameters: the forward of its own PyG class, or a layer's made for it."""
        if self.pyg is not None:
            return self.pyg.forward(self, *args, **kwargs)
        if not self.hidden:
            self.hidden.append(self.original())
        original = self.hidden[0]
        share(self, original)
        original.train(self.training)
        return original(*args, **kwargs)

    def replayed(self, forward: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return the result of a recorded call of tensors (x, edge_index, edge_type) or of dictionaries (x, edges); None where there is none."""
        if len(args) == 3 and all(type(x) in TENSORS for x in args):
            x, *edges = args
            results = self.replays.recorded(self, lambda: self._single(forward, edges), (x,), edges, (self.training, self.options))
            return None if results is None else results[0]
        if len(args) != 2 or not all(type(x) is dict and x and all(type(y) in TENSORS for y in x.values()) for x in args):
            return None
        rows, graph = args
        kinds = tuple(rows)
        told = self.training, self.options, kinds, tuple(graph)
        call = functools.partial(self._by_kind, forward, kinds, graph)
        results = self.replays.recorded(self, call, tuple(rows.values()), tuple(graph.values()), told)
        return None if results is None else dict(zip(self.results(kinds), results, strict=True))

    def _single(self, forward: Callable[..., Any], edges: Sequence[torch.Tensor]) -> Call:
        """Return a call as a function of x alone. A recording keeps what it calls: neither layer nor edges may live by it."""
        own, ends = weakref.ref(self), [weakref.ref(x) for x in edges]
        return lambda features: [forward(own(), features[0], *(x() for x in ends))]

    def _by_kind(self, forward: Callable[..., Any], kinds: Sequence[str], graph: Mapping[Any, torch.Tensor]) -> Call:
        """Return a call as a function of the node types' features alone."""
        own, by_kind, wanted = weakref.ref(self), {kind: weakref.ref(x) for kind, x in graph.items()}, self.results(kinds)

        def call(features: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            edges = {kind: x() for kind, x in by_kind.items()}
            result: dict[str, torch.Tensor] = forward(own(), dict(zip(kinds, features, strict=True)), edges)
            return [result[kind] for kind in wanted]

        return call

    def results(self, kinds: Sequence[str]) -> list[str]:
        """Return for which of the node types given there is a result."""
        return list(kinds)

    def original(self) -> torch.nn.Module:
        """Return PyG's layer of the same arguments."""
        try:
            module = import_module(self.pyg_module)
        except ImportError:
            raise MissingExtra("torch_geometric", "rgnn", f"an option of {type(self).__name__} that warpwright does not compute") from None
        layer: torch.nn.Module = getattr(module, type(self).__name__)(**self.arguments)
        return layer

    def extra_repr(self) -> str:
        """Name the arguments."""
        return ", ".join(f"{name}={value!r}" for name, value in self.arguments.items() if name != "metadata")


def share(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """Let `target` have the very parameters of `source`, at all depths."""
    for name, parameter in source._parameters.items():
        target._parameters[name] = parameter
    for name, child in source._modules.items():
        other = target._modules.get(name)
        if child is not None and other is not None:
            share(child, other)


def typed_edges(edge_index: torch.Tensor, edge_type: torch.Tensor, sources: int, targets: int, relations: int) -> Edges:
    """Return the edges of a call, of which an index is made."""
    return Edges((edge_index, edge_type), (sources, targets, relations))


def typed_index(edge_index: torch.Tensor, edge_type: torch.Tensor, sources: int, targets: int, relations: int) -> Index:
    """Return the index of a typed edge list, kept for the same tensors."""
    return typed_edges(edge_index, edge_type, sources, targets, relations).index()


def glorot(parameter: torch.Tensor | None) -> None:
    """Fill with uniform values of Glorot's bound for the last two dimensions."""
    if parameter is not None:
        bound = (6.0 / (parameter.shape[-2] + parameter.shape[-1])) ** 0.5
        with torch.no_grad():
            parameter.uniform_(-bound, bound)


def check_rows(x: Any, width: int, name: str = "x") -> None:
    """Raise UsageError for features that are no rows [nodes, width] of numbers."""
    if not isinstance(x, torch.Tensor):
        raise UsageError(f"expected {name} of shape (nodes, {width}), saw {type(x).__name__}")
    if x.dim() != 2 or x.shape[1] != width:
        raise UsageError(f"expected {name} of shape (nodes, {width}), saw {tuple(x.shape)}")


def wide(x: torch.Tensor) -> torch.Tensor:
    """Return half-precision values in float32, in which sums are made."""
    return x.float() if x.dtype in {torch.float16, torch.bfloat16} else x


def of_dtype(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return `x` in another type; asking torch for the same one takes time too."""
    return x if x.dtype is dtype else x.to(dtype)
