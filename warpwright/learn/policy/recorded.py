"""Recorded tasks: a closed space of the recipes that were measured, which answers as the evaluator did. A policy trains so on any machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from warpwright.base import Action, Candidate, Comparison, Measurement, Record, Source, Status, Task, Timing, Verdict
from warpwright.errors import NotApplicable
from warpwright.learn.policy.rows import Row
from warpwright.policy.search import Asking
from warpwright.search.costs import NOTHING, Prior
from warpwright.search.moves import Recipe
from warpwright.space import Space, Traits

PLAIN = Traits("S")


@dataclass(frozen=True)
class Listed:
    """A technique that is legal where a recorded recipe goes on with it. Its IR is the recipe so far."""

    name: str
    after: Mapping[Recipe, Sequence[Action]]
    traits: Traits = PLAIN

    def sites(self, ir: Recipe) -> Iterator[Action]:
        """Yield what recorded recipes go on with."""
        return (action for action in self.after.get(ir, ()) if action.technique == self.name)

    def apply(self, ir: Recipe, action: Action) -> Recipe:
        """Return the longer recipe."""
        if action not in self.after.get(ir, ()):
            raise NotApplicable(f"expected a recorded recipe, saw {[*map(str, ir), str(action)]}", "take actions from sites(ir)")
        return (*ir, action)


def following(recipes: Iterable[Recipe]) -> dict[Recipe, tuple[Action, ...]]:
    """Return what the recipes go on with, after each of their beginnings, in order of first mention."""
    after: dict[Recipe, dict[Action, None]] = {}
    for recipe in recipes:
        for length in range(len(recipe)):
            after.setdefault(recipe[:length], {})[recipe[length]] = None
    return {recipe: tuple(actions) for recipe, actions in after.items()}


def measured(speedup: float) -> Measurement:
    """Return the measurement of a program that is so many times as fast as the original, as an evaluator records it."""
    ours, original = (Timing((seconds,), seconds, seconds, seconds) for seconds in (1.0 / speedup, 1.0))
    verdict: Comparison = "FASTER" if speedup > 1 else "SAME"
    return Measurement("time", "s", "lower", ours, {"eager": original}, "eager", speedup, (speedup, speedup), verdict)


@dataclass(frozen=True)
class RecordedTask:
    """One task's recipes and what was measured of each."""

    name: str
    program: tuple[str, ...]
    roof: float | None
    speedups: Mapping[Recipe, float]
    """Over the original; 0 for what did not pass. The original's own recipe is () and is always there."""
    failures: Mapping[Recipe, str] = field(default_factory=dict)
    """Recipe -> status, for what did not pass."""
    estimates: Mapping[Recipe, float] = field(default_factory=dict)
    """Recipe -> seconds by the cost model, where it was recorded: searches may ask it."""
    key: str = ""
    """Of the task, whatever the device; "" where there is but one."""
    device: str = ""
    """Where it was measured."""

    @property
    def best(self) -> float:
        """The greatest speed-up there is to be found."""
        return max(self.speedups.values())

    def answered(self, recipe: Recipe) -> bool:
        """Was this very recipe measured?"""
        return recipe in self.speedups and bool(recipe)

    def made(self, recipe: Recipe) -> str:
        """Return what recipes of one program share, their speed-up to the last digit; "" for what was not measured or did not pass."""
        speedup = self.speedups.get(recipe, 0.0)
        return str(speedup) if speedup > 0 else ""

    def answers(self, recipes: Sequence[Recipe]) -> list[float]:
        """Return the speed-up of each recipe as it was measured; 0 for one that was not."""
        return [self.speedups.get(recipe, 0.0) for recipe in recipes]

    def space(self, rng: Random | None = None, traits: Mapping[str, Traits] | None = None) -> Space[Recipe]:
        """Return the closed space; with `rng`, its actions in an order that says nothing, with `traits` its techniques in the order of those."""
        recipes = sorted(self.speedups, key=lambda recipe: [*map(str, recipe)])
        after = following(rng.sample(recipes, len(recipes)) if rng else recipes)
        names = dict.fromkeys(action.technique for actions in after.values() for action in actions)
        if traits:  # a domain's techniques stand in the order in which a search tries them
            names = dict.fromkeys([*(name for name in traits if name in names), *names])
        techniques = [Listed(name, after, (traits or {}).get(name, PLAIN)) for name in names]
        estimate = (lambda ir: self.estimates.get(ir, 0.0)) if self.estimates else None
        return Space((), techniques, _lower, estimate=estimate, words=lambda ir: self.program, alike=lambda one: self.made(one.actions))

    def asking(self, traits: Mapping[str, Traits] | None = None, prior: Prior = NOTHING) -> Asking:
        """Return the task as the policy is asked about it: only what was measured may be proposed."""
        return Asking(self.space(None, traits), self.answered, {action.at for recipe in self.speedups for action in recipe}, prior)

    def record(self, recipe: Recipe) -> Record:
        """Answer a proposal as the evaluator did. What was only passed through on the way to measured recipes is as the original."""
        return record_of(self.name, recipe, self.speedups.get(recipe, 1.0), self.failures.get(recipe, "wrong"))


def record_of(name: str, recipe: Recipe, speedup: float, status: str = "wrong") -> Record:
    """Return what an evaluator answers for a recipe of the task `name`; with a speed-up of 0 it did not pass, which `status` says how."""
    task = Task(name, f"/recorded/{name}")
    candidate = _lower(recipe, recipe)
    if speedup <= 0:
        failed: Status = status  # type: ignore[assignment]
        return Record(task, candidate, "recorded", failed, Verdict(False, failed, "as recorded"))
    return Record(task, candidate, "recorded", "ok", Verdict(True, "ok"), measured(speedup))


def _lower(ir: Recipe, actions: Recipe) -> Candidate:
    text = "# " + ", ".join(map(str, ir)) + "\n"
    return Candidate(Source("python", (("recorded.py", text),)), "recorded", tuple(actions))


def tasks_of(rows: Iterable[Row], least: int = 3) -> list[RecordedTask]:
    """Return the recorded tasks with at least `least` recipes, by task and device, in order of first mention.

    One that was measured on several devices is several tasks, which are called by them too.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.task_key, row.device), []).append(row)
    recorded = [task for task in map(task_of, groups.values()) if task is not None and len(task.speedups) >= least]
    times = Counter(task.key for task in recorded)
    return [replace(task, name=f"{task.name} on {task.device}") if times[task.key] > 1 else task for task in recorded]


def task_of(rows: Sequence[Row]) -> RecordedTask | None:
    """Return the recorded task of one task's rows; None where there is no row."""
    if not rows:
        return None
    speedups: dict[Recipe, float] = {(): 1.0}
    failures: dict[Recipe, str] = {}
    estimates: dict[Recipe, float] = {}
    for row in rows:
        recipe = tuple(map(Action.parse, row.recipe))
        if row.estimate:
            estimates[recipe] = row.estimate
        if recipe:
            speedups[recipe] = row.speedup
            if row.status != "ok":
                failures[recipe] = row.status
    first = rows[0]
    return RecordedTask(first.task, first.program, first.roof, speedups, failures, estimates, first.task_key, first.device)


def words_of(tasks: Iterable[RecordedTask]) -> set[str]:
    """Return every word of the tasks' programs and recipes: the vocabulary. No speed is in it."""
    words: set[str] = set()
    for task in tasks:
        asking = task.asking()
        words.update(asking.program)
        for recipe in task.speedups:
            words.update(asking.places.recipe(recipe))
    return words
