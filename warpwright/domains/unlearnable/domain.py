"""The unlearnable domain's entry points: a work file (.cwc) gives the shapes and the operator of one CWC job.

It is JSON, and every field has a default:

    {"images": 256, "channels": 3, "side": 32, "k": 3, "classes": 10, "pad": "reflect", "scale": "sum"}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpwright.base import Task
from warpwright.domains.unlearnable import tuning
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator
from warpwright.errors import TaskError
from warpwright.space import Space
from warpwright.tasks.workfile import WorkFile

name = "unlearnable"

SUFFIX = ".cwc"

_SIZES = ("images", "channels", "side", "k", "classes")


def space(task: Task, target: str) -> Space[tuning.Plan]:
    """Return the job's search space."""
    return tuning.space(work(task), target)


def reference(task: Task) -> str:
    """Return the job in KernelBench form."""
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
describe, work = FILES.describe, FILES.work
