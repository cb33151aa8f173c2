"""The mpi domain's entry points: a datatype file (.mpi) says what one call of MPI_Pack or MPI_Unpack moves.

It is JSON; all but the datatype has a default:

    {"datatype": ["subarray", [64, 64, 64], [62, 62, 3], [1, 1, 1], "C", "double"], "count": 1, "operation": "pack"}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpwright.base import Task
from warpwright.domains.mpi import datatypes
from warpwright.domains.mpi.ir import Object, parse
from warpwright.domains.mpi.layout import Layout
from warpwright.domains.mpi.lower import lower, task_text
from warpwright.domains.mpi.techniques import TECHNIQUES, Plan, Work
from warpwright.errors import TaskError
from warpwright.space import Space
from warpwright.tasks.workfile import WorkFile

name = "mpi"

SUFFIX = ".mpi"
OPERATIONS = ("pack", "unpack")


def space(task: Task, target: str) -> Space[Plan]:
    """Return the search space of a datatype."""
    techniques = [technique for technique in TECHNIQUES if target in technique.targets]
    return Space(Plan(work(task)), techniques, lambda plan, actions: lower(plan, actions, target))


def reference(task: Task) -> str:
    """Return the operation in KernelBench form: a gather, or a scatter, by the place of each byte."""
    return task_text(work(task))


def _work(fields: dict[str, Any], path: Path) -> Work:
    count, operation = fields.get("count", 1), fields.get("operation", "pack")
    if "datatype" not in fields or not fields.keys() <= {"datatype", "count", "operation"} or operation not in OPERATIONS:
        raise TaskError(f"{path}: expected datatype, count and operation ({' or '.join(OPERATIONS)}), saw {', '.join(fields)}", "see docs/mpi.md")
    if type(count) is not int or count < 1:
        raise TaskError(f"{path}: expected a count of at least 1, saw {count!r}", "leave it out for one object")
    layout = datatypes.read(fields["datatype"]).objects(count)
    if not layout.bytes:
        raise TaskError(f"{path}: expected a datatype of at least one byte, saw an empty one", "use counts above zero")
    low, high = layout.span
    object_ = parse(layout.shifted(-low).canonical())  # its first byte at the buffer's start
    if operation == "unpack" and _overlaps(layout):
        raise TaskError(f"{path}: expected a datatype whose bytes do not overlap, saw one that would be unpacked over itself", "only pack it")
    return Work(Object(object_.offset, object_.node), high - low, operation)


def _overlaps(layout: Layout) -> bool:
    offsets, lengths = layout.runs()
    order = offsets.argsort(kind="stable")
    return bool((offsets[order][1:] < (offsets + lengths)[order][:-1]).any())


FILES = WorkFile(name, SUFFIX, __name__, "a datatype file", '{"datatype": ["vector", 4, 1, 8, "double"]}', _work)
describe, work = FILES.describe, FILES.work
