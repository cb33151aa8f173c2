"""A turn of calls as one CUDA graph: launched at once, so that kernels of a few microseconds follow one another without the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from warpwright.timing.capturing import _recording as recording
from warpwright.workers.tensors.exchange import tensors_in

WARM_UP = 2
"""Calls before the capture: libraries make their handles and workspaces in the first."""


class Callee(Protocol):
    """A program of the runner."""

    @property
    def call(self) -> Callable[..., Any]:
        """Its forward."""
        ...


@dataclass(frozen=True)
class Graph:
    """Captured calls, and where their outputs will lie."""

    graph: Any
    outputs: list[Any]

    @classmethod
    def of(cls, program: Callee, line: list[list[Any]]) -> Graph:
        """Capture one call for each inputs of `line`. Raises whatever the program or torch does when it cannot be captured."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for inputs in line[:WARM_UP]:
                program.call(*inputs)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with recording(graph, errors="global"):  # what another thread of the program does may not go on
            outputs = [program.call(*inputs) for inputs in line]
        return cls(graph, outputs)

    def poison(self) -> None:
        """Overwrite the outputs, so that none of the last launch can pass for one of the next."""
        for leaf in tensors_in(self.outputs):
            if leaf.is_cuda:
                leaf.view(torch.uint8).fill_(0xFF) if leaf.is_contiguous() else leaf.zero_()

    def launch(self) -> list[Any]:
        """Make all the calls; return their outputs, which are written when the device is idle."""
        self.graph.replay()
        return self.outputs
