"""Tasks that are answered by the evaluator itself: what a policy writes is built, verified and timed.

Either through the loop and its archive, by an evaluator that is opened for each asking, or by a resident service (`server/service.py`), which keeps
each task's trusted processes and answers several tasks at once. A speed-up above STRIKING, or above twice the best so far, is measured again in fresh
processes, and the lower one counts. (A service starts the program's process anew, not those that are trusted.)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from warpwright import loop
from warpwright.archive import Archive
from warpwright.base import Budget, Record, Task
from warpwright.errors import ServerError
from warpwright.learn.policy import rows
from warpwright.learn.policy.collect import rows_of
from warpwright.learn.policy.recorded import task_of
from warpwright.policy.search import Asking
from warpwright.run import Evaluators, Settings, kind_of_machine, open_evaluator, open_space
from warpwright.search.moves import Proposer, Recipe, distinct
from warpwright.server.verbs import Verbs
from warpwright.space import Space

STRIKING = 3.0


class LiveTask:
    """One task under some settings. `speedups` holds what its archive knows, over the original, and grows."""

    def __init__(
        self, path: Path, settings: Settings, archive: Archive, evaluators: Evaluators | None = None, service: Verbs | None = None
    ) -> None:  # fmt: skip
        """`service`: who evaluates, in place of an evaluator that is opened for each asking; its records go into the archive by themselves."""
        self.task: Task = settings.describe(path)
        self.settings, self.archive, self.evaluators, self.service = settings, archive, evaluators or open_evaluator, service
        self.space = open_space(self.task, settings.device)
        known = task_of(rows_of(self.task, settings.device, archive, kind_of_machine(settings.device)))
        self.name, self.roof = self.task.name, known.roof if known else None
        self.speedups: dict[Recipe, float] = dict(known.speedups) if known else {(): 1.0}
        self.program = self.asking().program

    def asking(self) -> Asking:
        """Return the task as the policy is asked about it: every legal recipe may be proposed."""
        return Asking(self.space)

    def answers(self, recipes: Sequence[Recipe]) -> list[float]:
        """Return the speed-up of each recipe over the original, 0 for what did not pass; what is known is not measured again."""
        fresh = distinct(recipe for recipe in recipes if recipe and recipe not in self.speedups)
        if fresh:
            measured = self._measured(fresh)
            best = max(self.speedups.values())
            striking = [recipe for recipe in fresh if measured.get(recipe, 0.0) > min(STRIKING, 2 * best)]
            again = self._measured(striking, remember=False)
            measured.update({recipe: min(measured[recipe], again[recipe]) for recipe in striking if recipe in again})
            unsure = set(striking) - set(again)  # the repeat was cut off: measured when it is asked for the next time
            self.speedups.update({recipe: speedup for recipe, speedup in measured.items() if recipe not in unsure})
        return [self.speedups.get(recipe, 0.0) for recipe in recipes]

    def _measured(self, recipes: Sequence[Recipe], remember: bool = True) -> dict[Recipe, float]:
        """Return what was measured; a recipe that the loop did not come to is missing."""
        if not recipes:
            return {}
        if self.service is not None:
            return self._served(self.service, recipes, again=not remember)

        answers: dict[Recipe, Record] = {}

        def listed(space: Space[Any], rng: Random, batch: int) -> Proposer:
            for recipe in recipes:  # a program that another recipe made before is answered with the record of that one
                [answers[recipe]] = yield [recipe]

        with self.evaluators(self.settings, self.task) as evaluator:
            kept = self.archive if remember else None
            loop.optimize(self.task, self.space, evaluator, listed, Budget(None), kept)
        return {recipe: _speedup(record) for recipe, record in answers.items()}

    def _served(self, service: Verbs, recipes: Sequence[Recipe], again: bool) -> dict[Recipe, float]:
        """Return what a service answers; a recipe whose job it did not come to is missing."""
        answers: dict[Recipe, float] = {}
        for recipe in recipes:
            how = {"device": self.settings.device, "baselines": list(self.settings.baselines), "seconds": self.settings.timing_seconds}
            try:
                answer = service.evaluate(self.task.path, [str(action) for action in recipe], **how, again=again)
            except ServerError:
                continue
            answers[recipe] = answer["speedup"]["eager"] if answer["status"] == "ok" else 0.0
        return answers


def _speedup(record: Record) -> float:
    of_record = rows.of_records([record], ())
    return of_record[0].speedup if of_record else 0.0
