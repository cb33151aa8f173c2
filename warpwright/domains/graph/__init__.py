"""The graph domain: a PyTorch model as a graph of aten operators, rewritten and written back as one Python file."""

from __future__ import annotations

from warpwright.base import Task
from warpwright.domains.graph.capture import capture
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import techniques
from warpwright.space import Space
from warpwright.tasks import taskfile


def space(task: Task, target: str = "cpu") -> Space[GraphIR]:
    """Return the search space of a task on `target` (cpu or cuda). What cannot be captured has schedule techniques only."""
    reference = taskfile.load(task)
    original = Original(task.name, reference.source_text, tuple(reference.init_inputs), task.mode, target)
    return Space(capture(reference), techniques(target), lambda ir, actions: lower(ir, actions, original))


__all__ = ["GraphIR", "space"]
