"""The transpile domain's doors: a task beside a program with CUDA kernels that computes the same, tuned for the CPU.

The program is the option `start`, a file. Its digest is part of the task, so that the archive sees an edited program as another task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from warpwright.base import Scalar, Task, digest
from warpwright.domains.transpile import tuning
from warpwright.domains.transpile.inline_cuda import adapt, has_cuda
from warpwright.errors import TaskError, UsageError
from warpwright.space import Space
from warpwright.tasks import taskfile

name = "transpile"

SUFFIXES = (".py", ".pt", ".pth")
"""A cubin's search begins at a file too (domains/sass)."""


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a file that `taskfile` reads, with the option `start`."""
    others = {option: value for option, value in options.items() if option != "start"}
    if "start" not in options or path.suffix not in SUFFIXES or not others.keys() <= taskfile.OPTIONS:
        return None
    start = Path(str(options["start"])).resolve()
    task = taskfile.describe(path, **others)  # type: ignore[arg-type]
    return replace(task, domain=name, options=(*task.options, ("start", digest(_read(start))), ("start_path", str(start))))


def space(task: Task, target: str) -> Space[tuning.Plan]:
    """Return how the program's kernels may be translated; raise UsageError for a target with a GPU, or a program without kernels."""
    if target != "cpu":
        raise UsageError("expected --target cpu beside --start, which tunes how CUDA kernels run on a CPU, saw a GPU as the target")
    path = Path(str(task.option("start_path")))
    program = _read(path)
    if digest(program) != task.option("start"):
        raise TaskError(f"{path} has changed since this task was described", "start again, or restore the file")
    if not has_cuda(program):
        raise UsageError(f"expected a program that builds CUDA kernels with torch.utils.cpp_extension in {path}, saw none")
    return tuning.space(taskfile.source_text(task), adapt(program), path.name)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"expected a Python file with a class ModelNew, saw {path}: {error}", "give the path of the program's file") from error
    if "class ModelNew" not in text and "ModelNew =" not in text:
        raise UsageError(f"expected a class ModelNew in {path}, saw none", "give a program in KernelBench form")
    return text
