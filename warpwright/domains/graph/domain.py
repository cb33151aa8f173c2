"""The graph domain's doors. Torch is imported when a space is asked for, not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright import deadline
from warpwright.base import Scalar, Task
from warpwright.space import Space
from warpwright.tasks import shapes, taskfile

if TYPE_CHECKING:
    from warpwright.domains.graph.assembly import Assembly
    from warpwright.domains.graph.ir import GraphIR
    from warpwright.domains.graph.lower import Original

name = "graph"

SUFFIXES = (".py", ".pt", ".pth")

LOADED = ("torch", "torch._dynamo", "torch.export._trace", "warpwright.domains.graph.techniques", "warpwright.domains.graph.capture.model")
"""What reading a program takes: 1.7 s of CPU time to import, once a process."""


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a file in KernelBench form, with a function under @warpwright.task, or with a saved module."""
    if path.suffix not in SUFFIXES or not options.keys() <= taskfile.OPTIONS:
        return None
    return taskfile.describe(path, **options)  # type: ignore[arg-type]


def space(task: Task, target: str = "cpu") -> Space[Any]:
    """Return the search space of a task on `target` (cpu or cuda).

    What cannot be captured whole has the techniques in its parts; where no part can be captured either, schedules of the whole alone.
    """
    deadline.load(*LOADED)
    from warpwright.domains.graph.capture.model import capture
    from warpwright.domains.graph.capture.training import capture_step
    from warpwright.domains.graph.costs import cost_model
    from warpwright.domains.graph.lower import Original, body, lower
    from warpwright.domains.graph.techniques import techniques
    from warpwright.domains.graph.words import stand_ins, words

    reference = taskfile.load(task)
    form = taskfile.Form.of(task)
    original = Original(task.name, reference.source_text, tuple(reference.init_inputs), form.mode, target)
    declared = [taskfile.load(one) for one in shapes.tasks(task)]
    starts = []
    for one in declared or [reference]:
        with shapes.named(one.task):
            starts.append(capture_step(one) if form.backward else capture(one))
    start = next((one for one in starts if one.unreadable), starts[0])
    known = techniques(target, form.backward, task.precision != "strict")
    if declared or (start.unreadable and not form.backward):
        assembled = _assembled(starts, declared or [reference], original, known)
        if assembled is not None:
            return assembled
        start = replace(start, unreadable=f"{start.unreadable}; nor was a part of it that has two operators or more")
    return Space(
        start, known, lambda ir, actions: lower(ir, actions, original),
        estimate=lambda ir: cost_model.seconds(ir, target), limited=start.unreadable, words=words, stand_ins=stand_ins, alike=body,
    )  # fmt: skip


def _assembled(
    starts: Sequence[GraphIR], references: Sequence[taskfile.Reference], original: Original, known: Sequence[Any],
) -> Space[Assembly] | None:  # fmt: skip
    """Return the space of several programs: the model's in each declared shape, or those of its parts; None where no part was captured.

    `known`: the techniques. The parts of a training step have no programs: what is not captured in one shape is changed as a whole there.
    """
    from warpwright.domains.graph import assembly, pieces
    from warpwright.domains.graph.lower import body, program_text
    from warpwright.domains.graph.text import parts

    reason = next((start.unreadable for start in starts if start.unreadable), "")
    whole = not reason or starts[0].training is not None
    distinct = {program_text(one, original): one for one in starts} if whole else {}
    start = assembly.Assembly((assembly.Piece(assembly.WHOLE, tuple(distinct.values())),)) if whole else pieces.assemble(references, original, reason)
    if not start.pieces:
        return None
    unread = sum(bool(one.unreadable) for one in starts)
    return Space(
        start, tuple(map(assembly.InPieces, known)), lambda ir, actions: parts.lower(ir, actions, original),
        estimate=lambda ir: assembly.seconds(ir, original.target), words=assembly.words, stand_ins=assembly.stand_ins, alike=body,
        limited=reason if whole and unread == len(starts) else "", note=_note(start, whole, unread, reason),
    )  # fmt: skip


def _note(start: Assembly, whole: bool, unread: int, reason: str) -> str:
    if not reason:
        return ""
    if whole:
        return f"not captured in {unread} of the shapes, where only the program as a whole is changed: {reason}"
    places = [path for piece in start.pieces for path in piece.paths]
    return f"not captured whole ({reason}): only {len(places)} parts are changed, {_some(places)}"


MOST_NAMED = 6


def _some(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
