"""The unlearnable domain's entry points: a work file (.cwc) gives the shapes and the operator of one CWC job.

It is JSON, and every field has a default:

    {"images": 256, "channels": 3, "side": 32, "k": 3, "classes": 10, "pad": "reflect", "scale": "sum"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.base import Precision, Scalar, Task, digest
from warpwright.domains.unlearnable import tuning
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator
from warpwright.errors import TaskError
from warpwright.space import Space

name = "unlearnable"

SUFFIX = ".cwc"

_SIZES = ("images", "channels", "side", "k", "classes")


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a work file; the only option is `precision`."""
    if path.suffix != SUFFIX or not options.keys() <= {"precision"}:
        return None
    text = _read(path)
    _work(text, path)
    precision: Precision = options.get("precision", "strict")  # type: ignore[assignment]
    return Task(path.stem, str(path), name, precision, False, digest(text), (("reference", f"{__name__}:reference"),))


def space(task: Task, target: str) -> Space[tuning.Plan]:
    """Return the job's search space."""
    return tuning.space(work(task), target)


def reference(task: Task) -> str:
    """Return the job in KernelBench form."""
    return tuning.task_text(work(task))


def work(task: Task) -> tuning.Work:
    """Return the job that the task's file describes; raise TaskError when it has changed since."""
    path = Path(task.path)
    text = _read(path)
    if digest(text) != task.source_digest:
        raise TaskError(f"{path} has changed since this task was described", "start again, or restore the file")
    return _work(text, path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read as text: {error}", "a work file is JSON") from error


def _work(text: str, path: Path) -> tuning.Work:
    try:
        fields: dict[str, Any] = dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise TaskError(f"{path}: expected a JSON object, saw {text[:40]!r}: {error}", 'write {"images": 256, "side": 32}') from error
    pad, scale = fields.pop("pad", "reflect"), fields.pop("scale", "sum")
    if pad not in PADS or scale not in SCALES:
        raise TaskError(f"{path}: expected pad out of {PADS} and scale out of {SCALES}, saw {pad!r}, {scale!r}", "leave them out for defaults")
    wrong = [field for field, value in fields.items() if field not in _SIZES or type(value) is not int or value < 1]
    if wrong:
        raise TaskError(f"{path}: expected whole numbers above 0 for {', '.join(_SIZES)}, saw {', '.join(wrong)}", "leave out fields to get defaults")
    return tuning.Work(**fields, operator=Operator(pad, scale))
