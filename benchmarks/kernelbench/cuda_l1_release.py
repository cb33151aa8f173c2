"""CUDA-L1's release as files: of each task its reference and its program, which a temporary folder holds and nothing keeps.

Where a program renamed the original's parameters, its constructor is wrapped so that the state still goes in by the original's names (same name, else
same shape in order; one that the program lacks altogether is kept but not read), and cudnn.benchmark is restored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.errors import TaskError
from warpwright.tasks import taskfile

RENAME = """

_ORIGINAL_STATE = {state!r}
_own_constructor = ModelNew.__init__


def _rename(model):
    owners = {{(f"{{path}}." if path else "") + name: (module, name) for path, module in model.named_modules()
              for name, value in module._parameters.items() if value is not None}}
    wanted = dict(_ORIGINAL_STATE)
    spare = {{name: where for name, where in owners.items() if name not in wanted}}
    for name, shape in wanted.items():
        found = next((own for own, (module, last) in spare.items() if tuple(module._parameters[last].shape) == shape), None)
        if name in owners:
            continue
        *path, last = name.split(".")
        place = model
        for part in path:
            if part not in place._modules:
                place.add_module(part, torch.nn.Module())
            place = place._modules[part]
        if found is None:
            print(f"lacks {{name}}", flush=True)
            if hasattr(place, last):
                place.__dict__[last] = getattr(place, last)  # read before the parameter below, which nothing reads then
            place._parameters[last] = torch.nn.Parameter(torch.zeros(shape))
            continue
        module, own = spare.pop(found)
        value = module._parameters.pop(own)
        module.__dict__[own] = value  # where the program's own code reads it
        place._parameters[last] = value


def _constructor(self, *arguments, **options):
    benchmark = torch.backends.cudnn.benchmark
    _own_constructor(self, *arguments, **options)
    torch.backends.cudnn.benchmark = benchmark
    _rename(self)


ModelNew.__init__ = _constructor
"""


@dataclass(frozen=True)
class Program:
    """One released program and its task, as files of the temporary folder."""

    level: int
    number: int
    published: float | None
    """Its own score over eager."""
    task: Path
    candidate: Path | None
    """With the constructor wrapped; None: the release has no program for this task."""
    unchanged: Path | None = None
    """As it was released."""

    @property
    def name(self) -> str:
        return f"L{self.level}-{self.number}"


Pair = tuple[int, int]


def rows(release: Path, gpu: str) -> dict[Pair, dict[str, Any]]:
    """Return the rows by level and task of one file of the release, or of the folder's for `gpu`."""
    text = (release if release.is_file() else release / "optimized_cuda_code" / f"{gpu}.json").read_text()
    read = [json.loads(line) for line in text.splitlines()]
    without = {"custom_code": None}  # some say so by the word
    return {(int(row["level_id"]), int(row["task_id"])): row | without if row["custom_code"] == "None" else row for row in read}


def written(row: dict[str, Any], folder: Path) -> Program:
    """Return a row's task and program as files of `folder`."""
    level, number = int(row["level_id"]), int(row["task_id"])
    task = folder / f"level{level}" / f"{number}_reference.py"
    task.parent.mkdir(exist_ok=True)
    task.write_text(row["ref_code"])
    code, score = row["custom_code"], row.get("score_default")
    if not code:
        return Program(level, number, score, task, None)
    state = _state(task)
    unchanged, candidate = (folder / f"{kind}_{level}_{number}.py" for kind in ("unchanged", "candidate"))
    unchanged.write_text(code)
    candidate.write_text(code + RENAME.format(state=state) if state else code)
    return Program(level, number, score, task, candidate, unchanged)


def _state(task: Path) -> list[tuple[str, tuple[int, ...]]]:
    """Return name and shape of the original's parameters."""
    try:
        model = taskfile.load(taskfile.describe(task)).make_meta_model()
    except TaskError:
        return []
    return [(name, tuple(value.shape)) for name, value in model.named_parameters()]
