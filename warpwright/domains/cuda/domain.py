"""The cuda domain's doors: a CUDA source, and beside it a Python file with its reference, its inputs and its call.

The task file is the option `task`, else STEM_task.py beside STEM.cu. Its digest is part of the task's identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright.base import PRECISIONS, Candidate, Scalar, Task, digest
from warpwright.domains.cuda import taskfile
from warpwright.errors import TaskError, UsageError
from warpwright.space import Facts, Space

if TYPE_CHECKING:
    from warpwright.domains.cuda.plan import Plan

name = "cuda"

OPTIONS = frozenset({"task", "precision", "scale"})


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a .cu file and its task file."""
    if path.suffix != ".cu" or not options.keys() <= OPTIONS:
        return None
    beside = Path(str(options.get("task") or path.with_name(f"{path.stem}_task.py"))).resolve()
    if not beside.is_file():
        raise TaskError(f"expected a task file for {path.name}, saw no {beside}", _begun(path))
    text = taskfile.read(beside)
    taskfile.check(text, beside)
    precision = str(options.get("precision", "strict"))
    if precision not in PRECISIONS:
        raise UsageError(f"expected a precision of {', '.join(PRECISIONS)}, saw {precision!r}")
    own = (
        ("reference", "warpwright.domains.cuda.program:original"),
        ("baselines", "eager"),  # the kernel as given; torch.compile sees only a call that it cannot look into
        ("task", digest(text)),
        ("task_path", str(beside)),
    )
    form = (("scale", float(options["scale"])),) if "scale" in options else ()
    cuda, whole = taskfile.read_cuda(path), taskfile.whole(path)
    headers = (("headers", digest(whole)),) if whole != cuda else ()
    return Task(path.stem, str(path), name, precision, source_digest=digest(cuda), options=(*own, *headers, *form))  # type: ignore[arg-type]


def _begun(path: Path) -> str:
    """Return what to do where there is no task file: how one for this source may begin."""
    from warpwright.domains.cuda import skeleton, unit

    text = taskfile.whole(path)
    entry, note = "", "write one, or name it with --task"
    if not unit.entries(text):
        entry = skeleton.entry(text)
        note += f"; first give {path.name} a host function that launches the kernel, such as\n\n{entry}" if entry else ""
    begun = skeleton.task(f"{text}\n{entry}")
    return f"{note}\nA task file for it may begin so (and docs/cuda.md says more):\n\n{begun}" if begun else f"{note} (docs/cuda.md)"


def space(task: Task, target: str) -> Space[Plan]:
    """Return the rewrites of the task's CUDA text."""
    from warpwright.domains.cuda import choices  # and libclang with it

    if target not in ("cpu", "cuda"):
        raise UsageError(f"expected --target cpu or cuda for a CUDA source, saw {target!r}")
    return choices.space(task, target)


def facts(task: Task, program: Candidate, machine: str) -> Facts:
    """Return what the compiler says of a program's kernels."""
    from warpwright.domains.cuda import facts as told

    return told.facts(task, program, machine)
