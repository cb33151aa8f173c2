"""The rgnn domain's doors: a layer file (.rgnn) names a relational layer, its width and a graph.

It is JSON, and every field has a default:

    {"model": "rgcn", "graph": "fb15k", "scale": 0.1, "width": 64, "seed": 0}

`model` is rgcn, rgat or hgt; `graph` a data set of synth.py, or one of its adversarial graphs, of which `scale` is the edges in units of 100,000.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.base import Task
from warpwright.domains.rgnn.work import GRAPHS, MODELS, Work, task_text
from warpwright.errors import TaskError
from warpwright.space import Space
from warpwright.tasks.workfile import WorkFile

if TYPE_CHECKING:
    from warpwright.domains.rgnn.techniques import Choice

name = "rgnn"

SUFFIX = ".rgnn"


def space(task: Task, target: str) -> Space[Choice]:
    """Return the layer's search space."""
    from warpwright.domains.rgnn import techniques

    return techniques.space(work(task), target)


def reference(task: Task) -> str:
    """Return the layer on its graph in KernelBench form."""
    return task_text(work(task))


def _work(data: dict[str, Any], path: Path) -> Work:
    kinds = {field.name: type(field.default) for field in fields(Work)}
    wrong = [key for key, value in data.items() if not isinstance(value, kinds.get(key, ()))]  # type: ignore[arg-type]
    if wrong:
        raise TaskError(f"{path}: expected {', '.join(f'{k} ({t.__name__})' for k, t in kinds.items())}, saw {', '.join(wrong)}", "leave out others")
    work = Work(**data)
    if work.model not in MODELS or work.graph not in GRAPHS or work.width < 1 or not work.scale > 0:
        raise TaskError(
            f"{path}: expected a model out of {', '.join(MODELS)}, a graph out of {', '.join(GRAPHS)}, width and scale above 0, saw {data}",
            "leave out fields to get defaults",
        )
    return work


FILES = WorkFile(name, SUFFIX, __name__, "a layer file", '{"model": "rgcn", "graph": "fb15k"}', _work)
describe, work = FILES.describe, FILES.work
