"""How a training's steps reach the device: one by one, or as replays of a CUDA graph of one step.

A step of ResNet-18 is about a thousand kernels (ten times as many with an adversary of 10 steps). Launching them costs the host as much as
a batch of 128 costs an H200, and two trainings in one process would wait for one another's launches. A graph is one launch, so that several
trainings, each on its own stream, fill the gaps of one another: the tail of one's small late layers runs beside the other's wide early ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from warpwright.errors import UsageError
from warpwright.timing.capturing import _recording as recording

if TYPE_CHECKING:
    from warpwright.domains.unlearnable.verification.training.trainer import Training

_WARM_UP = 3
"""Steps before a graph is recorded: cuDNN chooses its algorithms, and the allocator gets its memory."""

Run = Callable[[int], None]
"""Sends that many steps."""


def stepper(training: Training) -> tuple[Run, str]:
    """Return what sends steps, and what it is called. `auto` tells why it is eager where recording fails; `graph` raises."""
    asked = training.recipe.stepping
    on_gpu = training.device.type == "cuda"
    if asked not in ("auto", "eager", "graph", "compiled"):
        raise UsageError(f"there is no stepping {asked!r}", "known: auto, eager, graph, compiled")
    if asked == "graph" and not on_gpu:
        raise UsageError(f"expected a GPU for stepping graph, saw device {training.recipe.device}", "use auto")
    if asked == "compiled":
        training.body = torch.compile(training.net)
    if asked == "eager" or not on_gpu:
        return _eager(training), "eager" if asked != "compiled" else "compiled"
    torch.backends.cudnn.benchmark = True
    before = training.state()
    try:
        return _recorded(training, before), "graph" if asked != "compiled" else "compiled graph"
    except RuntimeError as error:
        if asked == "graph":
            raise
        torch.cuda.synchronize(training.device)
        training.generator = torch.Generator(training.device)  # the first one may still count as being recorded
        training.restore(before)
        return _eager(training), f"eager: recording failed: {str(error).splitlines()[0][:200]}"


def _eager(training: Training) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            training.step()

    return run


def _recorded(training: Training, before: dict[str, Any]) -> Run:
    """Record one step. The steps of the warm-up are taken back: the training begins where it stood `before`."""
    torch.cuda.synchronize(training.device)
    with training.on_device():
        for _ in range(min(_WARM_UP, training.per_epoch)):
            training.step()
            training.place.zero_()
    torch.cuda.synchronize(training.device)
    training.restore(before)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(training.generator)
    with recording(graph, stream=training.stream):
        training.step()
    training.restore(before)
    torch.cuda.synchronize(training.device)

    def run(count: int) -> None:
        for _ in range(count):
            graph.replay()

    return run
