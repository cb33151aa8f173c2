"""A taskset of verifiers v1: each task's prompt is the task in words, its reward the speed-up of the program in the last answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from warpwright.adapters.judge import Judge, Where, instruction
from warpwright.adapters.trl import marks
from warpwright.errors import MissingExtra
from warpwright.search.llm.answers import program_of

try:
    import verifiers.v1 as vf
except ImportError as error:
    raise MissingExtra("verifiers", "verifiers", "a taskset of verifiers") from error


@cache
def _judge(where: Where) -> Judge:
    return Judge(where)


class KernelData(vf.TaskData):
    """What a trace keeps of a task: where it is judged."""

    where: Where
    marks: tuple[str, ...]
    """What a program has in it for certain."""


class KernelTask(vf.Task[KernelData, vf.State]):
    """One kernel to be made faster."""

    @vf.reward
    async def speedup(self, trace: Any) -> float:
        """Return the speed-up over the best baseline of the program in the last answer, 0 where there is none or it did not pass."""
        text = program_of(trace.last_reply, self.data.marks)
        if not text:
            return 0.0
        judged = await asyncio.to_thread(_judge(self.data.where).score, text)
        trace.info["verdict"], trace.info["feedback"] = judged.verdict, judged.feedback
        return judged.score


class KernelConfig(vf.TasksetConfig):
    """Which tasks."""

    tasks: tuple[Where, ...] = ()


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    """The tasks of a config."""

    def load(self) -> Iterable[KernelTask]:
        """Yield a task each."""
        for where in self.config.tasks:
            described = _judge(where).describe()
            data = KernelData(name=described["task"]["name"], prompt=instruction(described), where=where, marks=marks(described))
            yield KernelTask(data, self.config.task)


PACKAGE = """# A taskset of verifiers: `uv run eval {name} -m MODEL`, once this folder is installed.
from warpwright.adapters.judge import Where
from warpwright.adapters.verifiers import KernelConfig, KernelTask
from warpwright.adapters.verifiers import KernelTaskset as Kernels

import verifiers.v1 as vf

__all__ = ["KernelTaskset"]


class OwnConfig(KernelConfig):
    tasks: tuple[Where, ...] = ({where!r},)


class KernelTaskset(Kernels, vf.Taskset[KernelTask, OwnConfig]):
    pass
"""

PROJECT = """[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
dependencies = ["warpwright[verifiers]"]

[tool.setuptools]
packages = ["{name}"]
"""


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return a package that can be installed."""
    name = f"kernel_{described['task']['name']}"
    return {"pyproject.toml": PROJECT.format(name=name), f"{name}/__init__.py": PACKAGE.format(name=name, where=where)}
