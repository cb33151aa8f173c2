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


def layout(parameters: Sequence[torch.Tensor]) -> tuple[list[Any], ...]:
    """Return where parameters lie and how they are read, a list for each question: a recording holds for these alone.

    Shapes and types are asked for too: memory that a conversion gave back may be another parameter's now.
    """
    places, strides = [*map(torch.Tensor.data_ptr, parameters)], [*map(torch.Tensor.stride, parameters)]
    return places, strides, [x.requires_grad for x in parameters], [x.shape for x in parameters], [x.dtype for x in parameters]


def settings(*kinds: str) -> tuple[Any, ...]:
    """Return what is set for all of torch that launches depend on: determinism, the precision of these kinds of operator, and indices thrown away."""
    precision = [torch._C._get_fp32_precision_getter("cuda", kind) for kind in kinds]  # the older questions raise where this one was set
    return torch.are_deterministic_algorithms_enabled(), precision, indices.forgotten()
