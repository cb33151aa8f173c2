"""Collecting action data: searches run over tasks, each record is in an archive at once, and what the archive holds of them becomes rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from warpwright.archive import Archive
from warpwright.base import Action, Task
from warpwright.errors import WarpwrightError
from warpwright.learn.policy import rows
from warpwright.policy.words import program_words
from warpwright.run import Conduct, Evaluators, Settings, kind_of_machine, open_space, run_task
from warpwright.search.moves import Moves

Tell = Callable[[str], None]


def collect(
    paths: Sequence[str | Path], settings: Settings, searches: Sequence[str], archive: Archive, tell: Tell, evaluators: Evaluators | None = None
) -> Iterator[rows.Row]:
    """Run each search over each task and yield the rows of all records of it. What the archive knows is not measured again.

    `settings.budget` is of one search of one task. A task that cannot be read or run is told and left out.
    """
    machine = kind_of_machine(settings.device)
    for path in paths:
        file, _, entry = str(path).partition("::")
        try:
            task = settings.describe(file, entry or None)
            for search in searches:
                run_task(task, replace(settings, search=search), archive, Conduct(evaluators=evaluators))
            own = rows_of(task, settings.device, archive, machine)
        except WarpwrightError as error:
            tell(f"{path}: left out: {error}")
            continue
        passed = sum(row.status == "ok" for row in own)
        tell(f"{task.name}: {len(own)} programs, {passed} passed, the best {max((row.speedup for row in own), default=0.0):.2f}x of the original")
        yield from own


def rows_of(task: Task, device: str, archive: Archive, machine: str) -> list[rows.Row]:
    """Return the rows of what an archive holds of a task."""
    space = open_space(task, device)
    records = archive.records(task, device=device)
    actions = dict.fromkeys([*space.actions(space.start), *(action for record in records for action in record.candidate.actions)])
    moves = Moves(space)
    found = rows.of_records(records, program_words(space, actions), machine)
    return [replace(row, estimate=moves.estimate(tuple(map(Action.parse, row.recipe)))) for row in found]
