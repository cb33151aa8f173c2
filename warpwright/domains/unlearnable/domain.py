"""The unlearnable domain's entry points: a work file (.cwc) gives the shapes and the operator of one CWC job, to be made fast.

A file .front (front/work.py) gives data and a training: its programs are choices of the method's parameters. A .cwc file is JSON too, and every
field has a default:

    {"images": 256, "channels": 3, "side": 32, "k": 3, "classes": 10, "pad": "reflect", "scale": "sum"}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.base import Scalar, Task
from warpwright.domains.unlearnable import tuning
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator
from warpwright.domains.unlearnable.front import work as front
from warpwright.errors import TaskError
from warpwright.space import Space
from warpwright.tasks.workfile import WorkFile

name = "unlearnable"

SUFFIX = ".cwc"

_SIZES = ("images", "channels", "side", "k", "classes")


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a .cwc or a .front file."""
    if path.suffix != front.SUFFIX:
        return FILES.describe(path, options)
    task = FRONT.describe(path, options)
    return front.with_data(task, FRONT.work(task)) if task is not None else None


def space(task: Task, target: str) -> Space[Any]:
    """Return the search space: of the kernel, or of the method's choices."""
    return front.space(task, target) if task.path.endswith(front.SUFFIX) else tuning.space(work(task), target)


def reference(task: Task) -> str:
    """Return the job in KernelBench form."""
    if task.path.endswith(front.SUFFIX):
        front.space(task, "cpu")  # raises: networks are trained for it, and no call is timed
    return tuning.task_text(work(task))


def _work(fields: dict[str, Any], path: Path) -> tuning.Work:
    pad, scale = fields.pop("pad", "reflect"), fields.pop("scale", "sum")
    if pad not in PADS or scale not in SCALES:
        raise TaskError(f"{path}: expected pad out of {PADS} and scale out of {SCALES}, saw {pad!r}, {scale!r}", "leave them out for defaults")
    wrong = [field for field, value in fields.items() if field not in _SIZES or type(value) is not int or value < 1]
    if wrong:
        raise TaskError(f"{path}: expected whole numbers above 0 for {', '.join(_SIZES)}, saw {', '.join(wrong)}", "leave out fields to get defaults")
    return tuning.Work(**fields, operator=Operator(pad, scale))


FILES = WorkFile(name, SUFFIX, __name__, "a work file", '{"images": 256, "side": 32}', _work)
work = FILES.work

FRONT = WorkFile(name, front.SUFFIX, __name__, "a search of the front", '{"train": "train.pack", "test": "test.pack"}', front.read)
