"""The graph domain's doors. Torch is imported when a space is asked for, not before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright import deadline
from warpwright.base import Scalar, Task
from warpwright.space import Space
from warpwright.tasks import taskfile

if TYPE_CHECKING:
    from warpwright.domains.graph.ir import GraphIR

name = "graph"

SUFFIXES = (".py", ".pt", ".pth")

LOADED = ("torch", "torch._dynamo", "torch.export._trace", "warpwright.domains.graph.techniques", "warpwright.domains.graph.capture")
"""What reading a program takes: 1.7 s of CPU time to import, once a process."""


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a file in KernelBench form, with a function under @warpwright.task, or with a saved module."""
    if path.suffix not in SUFFIXES or not options.keys() <= taskfile.OPTIONS:
        return None
    return taskfile.describe(path, **options)  # type: ignore[arg-type]


def space(task: Task, target: str = "cpu") -> Space[GraphIR]:
    """Return the search space of a task on `target` (cpu or cuda). What cannot be captured has schedule techniques only."""
    deadline.load(*LOADED)
    from warpwright.domains.graph import cost_model
    from warpwright.domains.graph.capture import capture
    from warpwright.domains.graph.lower import Original, lower
    from warpwright.domains.graph.techniques import techniques
    from warpwright.domains.graph.training import capture_step
    from warpwright.domains.graph.words import words

    reference = taskfile.load(task)
    form = taskfile.Form.of(task)
    original = Original(task.name, reference.source_text, tuple(reference.init_inputs), form.mode, target)
    start = capture_step(reference) if form.backward else capture(reference)
    return Space(
        start, techniques(target, form.backward), lambda ir, actions: lower(ir, actions, original),
        estimate=lambda ir: cost_model.seconds(ir, target), limited=start.unreadable, words=words,
    )  # fmt: skip
