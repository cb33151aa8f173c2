"""The rgnn domain's doors: a layer file (.rgnn) names a relational layer, its width and a graph.

It is JSON, and every field has a default:

    {"model": "rgcn", "graph": "fb15k", "scale": 0.1, "width": 64, "seed": 0}

`model` is rgcn, rgat or hgt; `graph` a data set of synth.py, or one of its adversarial graphs, of which `scale` is the edges in units of 100,000.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.base import Precision, Scalar, Task, digest
from warpwright.domains.rgnn.work import GRAPHS, MODELS, Work, task_text
from warpwright.errors import TaskError
from warpwright.space import Space

if TYPE_CHECKING:
    from warpwright.domains.rgnn.techniques import Choice

name = "rgnn"

SUFFIX = ".rgnn"


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a layer file; the only option is `precision`."""
    if path.suffix != SUFFIX or not options.keys() <= {"precision"}:
        return None
    text = _read(path)
    _work(text, path)
    precision: Precision = options.get("precision", "strict")  # type: ignore[assignment]
    return Task(path.stem, str(path), name, precision, False, digest(text), (("reference", f"{__name__}:reference"),))


def space(task: Task, target: str) -> Space[Choice]:
    """Return the layer's search space."""
    from warpwright.domains.rgnn import techniques

    return techniques.space(work(task), target)


def reference(task: Task) -> str:
    """Return the layer on its graph in KernelBench form."""
    return task_text(work(task))


def work(task: Task) -> Work:
    """Return the layer that the task's file describes; raise TaskError when it has changed since."""
    path = Path(task.path)
    text = _read(path)
    if digest(text) != task.source_digest:
        raise TaskError(f"{path} has changed since this task was described", "start again, or restore the file")
    return _work(text, path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read as text: {error}", "a layer file is JSON") from error


def _work(text: str, path: Path) -> Work:
    try:
        given: dict[str, Any] = dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise TaskError(f"{path}: expected a JSON object, saw {text[:40]!r}: {error}", 'write {"model": "rgcn", "graph": "fb15k"}') from error
    kinds = {field.name: type(field.default) for field in fields(Work)}
    wrong = [key for key, value in given.items() if not isinstance(value, kinds.get(key, ()))]  # type: ignore[arg-type]
    if wrong:
        raise TaskError(f"{path}: expected {', '.join(f'{k} ({t.__name__})' for k, t in kinds.items())}, saw {', '.join(wrong)}", "leave out others")
    found = Work(**given)
    if found.model not in MODELS or found.graph not in GRAPHS or found.width < 1 or not found.scale > 0:
        raise TaskError(
            f"{path}: expected a model out of {', '.join(MODELS)}, a graph out of {', '.join(GRAPHS)}, width and scale above 0, saw {given}",
            "leave out fields to get defaults",
        )
    return found
