"""The targets by name: what builds, runs and times a kind of program. And the baseline programs of a task on a device.

A target's name is the first part of a device: cuda for cuda:0.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from warpwright.base import Task, target_of
from warpwright.errors import UsageError
from warpwright.space import Evaluator, Measuring, Target
from warpwright.targets.baselines import BASELINES, baselines, expect_known, names_for
from warpwright.targets.shapes import ShapesEvaluator
from warpwright.targets.versions import versions
from warpwright.tasks.modules import saved_module
from warpwright.tasks.shapes import OPTION as SHAPES


@dataclass(frozen=True)
class Local:
    """Python programs in sandboxed processes on this machine, on its CPU or one of its GPUs."""

    def evaluator(self, task: Task, device: str, measuring: Measuring) -> AbstractContextManager[Evaluator]:
        """Return a LocalEvaluator; the server that forks its processes is started at once, to load while the task is read."""
        expect_known(measuring.baselines, device, bool(task.option("backward")))  # before there is any process to wait for
        from warpwright.workers.fork_server import start_fork_server

        start_fork_server(saved_module.modules_of(task.path))  # first: it loads torch, as the next line does, which takes 1.5 s on one core
        from warpwright.targets.local import LocalEvaluator

        return LocalEvaluator(task, device, measuring)


@dataclass(frozen=True)
class MachineCode:
    """Schedules of machine code on a GPU (`cubin:0`), or in the simulator of the sass domain (`cubin:sim`)."""

    def evaluator(self, task: Task, device: str, measuring: Measuring) -> AbstractContextManager[Evaluator]:
        """Return the evaluator that the device asks for."""
        if device.partition(":")[2] == "sim":
            from warpwright.targets.cubin.simulated import SimulatedEvaluator

            return SimulatedEvaluator(task, device, measuring)
        from warpwright.targets.cubin.evaluator import CubinEvaluator

        return CubinEvaluator(task, device, measuring)


@dataclass(frozen=True)
class Trainings:
    """Networks trained on protected images, on the CPU (`training:cpu`) or a GPU (`training:cuda:0`)."""

    def evaluator(self, task: Task, device: str, measuring: Measuring) -> AbstractContextManager[Evaluator]:
        """Return a TrainingsEvaluator."""
        from warpwright.targets.trainings import TrainingsEvaluator

        return TrainingsEvaluator(task, device, measuring)


TARGETS: dict[str, Target] = {"cpu": Local(), "cuda": Local(), "cubin": MachineCode(), "training": Trainings()}


def evaluator(task: Task, device: str, measuring: Measuring) -> AbstractContextManager[Evaluator]:
    """Return the evaluator of a task on a device; raise UsageError for a target that is not there."""
    name = target_of(device)
    if name not in TARGETS:
        raise UsageError(f"expected a target, saw {device!r}", f"choose one of {', '.join(TARGETS)}")
    if task.option(SHAPES):
        return ShapesEvaluator(task, device, measuring, TARGETS[name].evaluator)
    return TARGETS[name].evaluator(task, device, measuring)


__all__ = ["BASELINES", "TARGETS", "baselines", "evaluator", "names_for", "versions"]
