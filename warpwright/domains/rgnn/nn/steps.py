"""Whole training steps of a model on a small graph as one CUDA graph: forward, loss and backward, with no work of the host between its launches.

A layer's own recordings (replay.py) leave a loss and autograd's nodes to the host, and HGT's layer on aifb's graph has 141 parameters of which each
is one. Here nothing is left but one launch, a copy of what is given and one of what is returned.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.nn.joined import Joined
from warpwright.domains.rgnn.nn.launches import AFTER, Captured, Layout, capture, layout, settings
from warpwright.domains.rgnn.nn.lent import TURNS, Lent, free_of
from warpwright.domains.rgnn.nn.members import Members

Step = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
Result = TypeVar("Result")


def aside(stream: Any, function: Callable[[], Result]) -> Result:
    """Return what a function gives on another stream, before what comes next on this one: autograd adds gradients up on the stream of the forward."""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = function()
    torch.cuda.current_stream().wait_stream(stream)
    return result


class Recorded:
    """One recorded step: what it is given lies where it reads it, and so do the parameters' gradients where it writes them."""

    def __init__(self, parameters: Sequence[torch.Tensor], step: Step, given: Sequence[torch.Tensor], stream: Any, lend: bool = False) -> None:
        """Record the step; `lend`: its results too, where it makes no gradients and nothing else has their memory."""
        self.given = [x.detach().clone().requires_grad_(x.requires_grad) for x in given]
        self.alone = True
        torch.clear_autocast_cache()  # weights that were cast before would be read as they were then, at every replay
        before = [x.grad for x in parameters]
        with indices.watched() as graphs:
            self.launches, self.joined = self._captured(step, stream)
            made = any(x.grad is not gradient for x, gradient in zip(parameters, before, strict=True))
            self.lent = self._lent(step, stream) if lend and not made else []
        torch.clear_autocast_cache()  # and those cast by the recording have no values before its first replay
        self.graphs = indices.Versions(graphs)
        if any(tensor is x for tensor in self.graphs.there() for x in self.given):
            raise RuntimeError("edges are among the tensors that it is given, and their index is not made anew by a recording")
        self.gradients = [(x, x.grad) for x in parameters if x.grad is not None]

    def _captured(self, step: Step, stream: Any, pool: Any = None) -> tuple[Any, Joined]:
        joined: list[Joined] = []

        def run() -> Sequence[torch.Tensor]:
            results = step(*self.given)
            self.alone = isinstance(results, torch.Tensor)
            joined[:] = [Joined([results.detach()] if isinstance(results, torch.Tensor) else [x.detach() for x in results])]
            return joined[0].memory

        return capture(run, pool=pool, stream=stream), joined[0]

    def _lent(self, step: Step, stream: Any) -> list[Lent]:
        """Return recordings whose results are lent; none where something else has a result, such as a parameter or what the step keeps."""
        pool = self.launches.graph.pool() if isinstance(self.launches, Captured) else None
        lent = [Lent(*self._captured(step, stream, pool)) for _ in range(TURNS)]
        return lent if all(one.free() for one in lent) else []

    def run(self, given: Sequence[torch.Tensor]) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Run the step for these inputs."""
        if given:
            torch._foreach_copy_([x.detach() for x in self.given], [x.detach() for x in given])
        if (lent := free_of(self.lent)) is not None:
            results = lent.run()
            return results[0] if self.alone else results
        self.launches.replay()
        for parameter, gradient in self.gradients:
            if parameter.grad is not gradient:
                parameter.grad = gradient
        results = self.joined.copies(self.launches.out)
        return results[0] if self.alone else results


class CapturedStep:
    """What `captured` returns."""

    def __init__(self, model: torch.nn.Module, step: Step, lend: bool = False) -> None:
        self.model, self.step, self.lend, self.turn = weakref.ref(model), step, lend, threading.RLock()
        self.members = Members()
        self.key: Any = None
        self.layout: Layout | None = None
        self.calls = 0
        self.recorded: Recorded | None = None
        self.refused = False
        """Has the step done something that cannot be recorded?"""
        self.stream: Any = None

    def __call__(self, *given: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Run the step: as it is for the first calls, recorded from then on."""
        with self.turn:
            model = self.model()
            if model is None or self.refused:
                return self.step(*given)
            parameters = self.members.parameters(model)
            if cannot(parameters, given):
                return self.step(*given)
            self.layout = layout(parameters, self.layout)
            key = self.layout, *key_of(parameters[0].device.type, self.members.modes(), given)
            if key != self.key or (self.recorded is not None and not self.recorded.graphs.same()):
                self.key, self.calls, self.recorded = key, 0, None
            if self.calls == 0 and not on_gpu((*parameters, *given)):
                return self.step(*given)
            self.calls += 1
            self.stream = self.stream or new_stream(parameters[0].device)
            if self.calls <= AFTER:
                return aside(self.stream, lambda: self.step(*given))
            if self.recorded is None:
                try:
                    self.recorded = Recorded(parameters, self.step, given, self.stream, self.lend and not torch.is_grad_enabled())
                except RuntimeError as problem:
                    warnings.warn(f"a step is not recorded, and runs as it is: {problem}", stacklevel=2)
                    self.refused = True
                    return self.step(*given)
            return self.recorded.run(given)


def captured(model: torch.nn.Module, step: Step, lend: bool = False) -> CapturedStep:
    """Return `step`, a training step of `model` on a GPU, recorded as one CUDA graph at its fifth call and replayed from then on.

    `step(*tensors)` returns a tensor or a tuple of them (the loss). It begins with `model.zero_grad()`, so that each call makes gradients anew, and
    ends after `backward()`: call the optimiser after it, or within it where it is `capturable`. What changes from call to call must be among
    `tensors`; what else the step reads is read where it lies. Python's own work (prints, counters, learning rates that are numbers) is done for the
    last time when it is recorded. Other shapes, parameters, modes and edges are recorded anew. On a CPU, and where it cannot be recorded (it waits
    for the device: `loss.item()`; one warning), the step runs as it is. Results are copies.

    `lend`: without gradients results are not copied where that can be. The step is recorded three times, with memory for three times its results; a
    call runs a recording whose results nobody holds any more, views included, and gives them where they lie, or a copy where all are held. So what
    is held stays as it is. A result that another stream reads has to be held until that is done: `record_stream` is not seen.
    """
    return CapturedStep(model, step, lend)


def new_stream(device: torch.device) -> Any:
    """Return the stream on which a step is run and recorded."""
    return torch.cuda.Stream(device)


def cannot(parameters: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> bool:
    """Can there be no recording? One reads copies of what is given: the gradient of a given tensor would stay with its copy."""
    return not parameters or any(x.requires_grad for x in given) or busy(parameters[0])


def key_of(kind: str, modes: Sequence[Any], given: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """Return what a recording depends on besides the parameters' layout."""
    shapes = [(x.shape, x.dtype, x.device) for x in given]
    autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    return shapes, modes, torch.is_grad_enabled(), settings("matmul", "conv"), autocast


def busy(parameter: torch.Tensor) -> bool:
    """Is something recorded by somebody else, or another GPU this thread's?"""
    if not parameter.is_cuda:
        return False
    return torch.cuda.is_current_stream_capturing() or torch._C._cuda_getDevice() != parameter.device.index


def on_gpu(tensors: Sequence[torch.Tensor]) -> bool:
    """Do all lie on this thread's GPU?"""
    return all(x.is_cuda for x in tensors) and {x.device.index for x in tensors} == {torch.cuda.current_device()}


__all__ = ["CapturedStep", "captured"]
