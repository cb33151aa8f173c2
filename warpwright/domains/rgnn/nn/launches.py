"""A function's launches as a CUDA graph, of a layer (replay.py) or of a whole step (steps.py), and what such a recording takes for granted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.timing.capturing import _recording as recording

AFTER = 4
"""Calls before a recording is made."""


class Captured:
    """A function's launches as a CUDA graph; `out` is what it returned, in memory that each replay writes again."""

    def __init__(self, function: Callable[[], Sequence[torch.Tensor]], pool: Any = None, stream: Any = None) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with recording(self.graph, pool=pool, stream=stream):
            self.out = list(function())

    def replay(self) -> None:
        """Launch it all."""
        self.graph.replay()


def capture(function: Callable[[], Sequence[torch.Tensor]], pool: Any = None, stream: Any = None) -> Captured:
    """Return a function's launches as something to replay; `pool`: whose memory they share, `stream`: where they are recorded."""
    return Captured(function, pool, stream)


class Layout:
    """Where parameters lie and how they are read: a recording holds for these alone.

    Shapes and types are asked for too: memory that a conversion gave back may be another parameter's now. HGT's layer on fb15k's graph has 481
    parameters; to ask each of them five questions from Python takes 170 us of a host, and torch's guard, in C++, with the addresses 65.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.told, self.places = _questions(parameters), _places(parameters)
        self.guard = _guard(parameters)

    def holds(self, parameters: Sequence[torch.Tensor]) -> bool:
        """Are these parameters as those were?"""
        if _places(parameters) != self.places:
            return False
        if self.guard is not None:
            with torch.enable_grad():  # without which some releases of torch see no parameter that requires gradients
                if self.guard.check(*parameters):
                    return True
        return _questions(parameters) == self.told  # a guard refuses other modes too, such as inference


def layout(parameters: Sequence[torch.Tensor], before: Layout | None = None) -> Layout:
    """Return the layout of parameters: the very one from `before` where that holds."""
    return before if before is not None and before.holds(parameters) else Layout(parameters)


def _places(parameters: Sequence[torch.Tensor]) -> list[int]:
    return [*map(torch.Tensor.data_ptr, parameters)]


def _questions(parameters: Sequence[torch.Tensor]) -> tuple[list[Any], ...]:
    strides = [*map(torch.Tensor.stride, parameters)]
    return strides, [x.requires_grad for x in parameters], [x.shape for x in parameters], [x.dtype for x in parameters]


def _guard(parameters: Sequence[torch.Tensor]) -> Any:
    """Return what torch compares tensors with, their types, shapes, strides and dispatch in one call; None where this torch has no such thing."""
    try:
        with torch.enable_grad():
            shapes, strides = ([[*map(int, ask(x))] for x in parameters] for ask in (torch.Tensor.size, torch.Tensor.stride))
            made = torch._C._dynamo.guards.TensorGuards(*parameters, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides)  # type: ignore[arg-type]
            return made if made.check(*parameters) else None
    except (AttributeError, TypeError, RuntimeError, SystemError):
        return None


def settings(*kinds: str) -> tuple[Any, ...]:
    """Return what is set for all of torch that launches depend on: determinism, the precision of these kinds of operator, and indices thrown away."""
    precision = [torch._C._get_fp32_precision_getter("cuda", kind) for kind in kinds]  # the older questions raise where this one was set
    return torch.are_deterministic_algorithms_enabled(), precision, indices.forgotten()
