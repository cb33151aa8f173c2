"""A function's launches as a CUDA graph, of a layer (replay.py) or of a whole step (steps.py), and what such a recording takes for granted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import tensors
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
    """Which parameters there are, where they lie and how they are read: a recording holds for these alone.

    Shapes and types are asked for too: memory that a conversion gave back may be another parameter's now. Another parameter in the memory of the
    one before would not get its gradient, which a recording leaves with those that it knows.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.told = _questions(parameters)
        self.seen: tensors.Seen | None = None
        """The same, to be asked in one call."""

    def holds(self, parameters: Sequence[torch.Tensor]) -> bool:
        """Are these parameters as those were?"""
        if self.seen is not None and self.seen.holds(parameters):
            return True
        if _questions(parameters) != self.told:
            return False
        library = tensors.library(parameters[0]) if parameters else None
        self.seen = None if library is None else tensors.Seen(library, parameters)
        return True


def layout(parameters: Sequence[torch.Tensor], before: Layout | None = None) -> Layout:
    """Return the layout of parameters: the very one from `before` where that holds."""
    return before if before is not None and before.holds(parameters) else Layout(parameters)


def _questions(parameters: Sequence[torch.Tensor]) -> tuple[list[Any], ...]:
    own, places, strides = [*map(id, parameters)], [*map(torch.Tensor.data_ptr, parameters)], [*map(torch.Tensor.stride, parameters)]
    return own, places, strides, [x.requires_grad for x in parameters], [x.shape for x in parameters], [x.dtype for x in parameters]


def settings(*kinds: str) -> tuple[Any, ...]:
    """Return what is set for all of torch that launches depend on: determinism, the precision of these kinds of operator, and indices thrown away."""
    precision = [torch._C._get_fp32_precision_getter("cuda", kind) for kind in kinds]  # the older questions raise where this one was set
    return torch.are_deterministic_algorithms_enabled(), precision, indices.forgotten()
