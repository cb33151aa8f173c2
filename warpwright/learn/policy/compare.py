"""How good a policy is on tasks that it was not trained on: the best of k, beside other searches at equal evaluations.

Everything is answered from recorded tasks. A recipe that was only passed through on the way to recorded ones costs no evaluation, whoever asks, nor
does one that makes a program which was evaluated already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from warpwright.learn.policy.recorded import RecordedTask
from warpwright.learn.policy.stages import WRITTEN_AT_ONCE
from warpwright.policy.choosing import Choice
from warpwright.policy.model import Policy, rng_of
from warpwright.policy.search import WIDTH, Asking
from warpwright.policy.spreading import Spread
from warpwright.search import SEARCHES
from warpwright.search.costs import NOTHING
from warpwright.search.moves import Recipe
from warpwright.space import Traits

_T = (0.0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
"""0.975 quantile of Student's t by degrees of freedom; 1.96 beyond them is too small by 6 % at most."""

Line = list[float]
"""The best speed-up after 0, 1, 2 ... evaluations."""


@dataclass(frozen=True)
class How:
    """How a policy is asked; `HOW` is how `--search policy` asks it."""

    spread: bool = True
    """Are proposals spread over the space? The policy's own answers alone otherwise."""
    promised: bool = True
    """Does what the cost model promises of a word count, where proposals are spread?"""
    width: int = WIDTH
    """Answers that are written for an evaluation where a task has estimates; with 0 the model is not asked."""
    asked: int | None = None
    """For how many evaluations the model is asked; for all where it is None."""
    pooled: bool = True
    """Is it chosen from variants of the best and walks as well, where a task has estimates? From the answers alone otherwise."""
    prior: bool = True
    """Does what the policy's training programs taught of the cost model count?"""


HOW = How()


@dataclass
class Run:
    """One search of one task by a policy."""

    task: RecordedTask
    asking: Asking
    choice: Choice
    how: How
    known: dict[Recipe, float] = field(default_factory=lambda: {(): 1.0})
    line: Line = field(default_factory=lambda: [1.0])

    @property
    def width(self) -> int:
        """How many answers are written for the next evaluation."""
        if not self.task.estimates:
            return 1
        return self.how.width if self.how.asked is None or len(self.line) <= self.how.asked else 0

    @property
    def spread(self) -> Spread | None:
        """How they are spread."""
        return self.asking.spread(self.known, self.how.promised) if self.how.spread else None

    def take(self, written: Sequence[Recipe], rng: Random) -> None:
        """Evaluate one of the recipes written, or what is chosen in their place; the line goes on as it was where all is known."""
        if self.how.pooled and self.task.estimates:
            recipe = self.choice.choose(self.choice.pool(written, self.known, rng), self.known)
        else:
            recipe = self.asking.cheapest(written, self.known if self.how.promised else None)
        if recipe is not None:
            self.known[recipe] = self.task.speedups.get(recipe, 1.0)
        self.line.append(max(self.line[-1], self.known.get(recipe, 0.0) if recipe is not None else 0.0))


def policy_lines(
    policy: Policy, tasks: Sequence[RecordedTask], runs: int, count: int, seed: int, how: How = HOW, traits: Mapping[str, Traits] | None = None
) -> dict[str, list[Line]]:
    """Return `runs` lines for each task; all runs write side by side."""
    prior = policy.prior if how.prior else NOTHING
    askings = {task.name: task.asking(traits, prior) for task in tasks}
    asked = [Run(task, askings[task.name], Choice(askings[task.name].moves, prior, task.answered), how) for task in tasks for _ in range(runs)]
    step = max(1, WRITTEN_AT_ONCE // max(1, how.width))
    for turn in range(count):
        for start in range(0, len(asked), step):
            part = asked[start : start + step]
            rng = rng_of(seed, "compare", turn, start)
            wide = [run for run in part for _ in range(run.width)]
            prompts = [run.asking.prompt(run.known, rng, run.task.roof, policy.notes.exemplars) for run in wide]
            spreads = {id(run): run.spread for run in part}
            known, writings = [run.known for run in wide], [run.asking.writing for run in wide]
            number = rng.getrandbits(32)
            written = policy.write(prompts, writings, known, number, [spreads[id(run)] for run in wide]) if wide else []
            answers: dict[int, list[Recipe]] = {id(run): [] for run in part}
            for run, one in zip(wide, written, strict=True):
                answers[id(run)].append(one.recipe)
            for run in part:
                run.take(answers[id(run)], rng)
    return {task.name: [run.line for run in asked[number * runs : (number + 1) * runs]] for number, task in enumerate(tasks)}


def search_lines(
    name: str, tasks: Sequence[RecordedTask], runs: int, count: int, seed: int, traits: Mapping[str, Traits] | None = None
) -> dict[str, list[Line]]:
    """Return the lines of a search of the house, each run over the space in an order of its own. A program made twice is evaluated once."""
    return {task.name: [_followed(name, task, count, rng_of(seed, name, task.name, run), traits) for run in range(runs)] for task in tasks}


def _followed(name: str, task: RecordedTask, count: int, rng: Random, traits: Mapping[str, Traits] | None) -> Line:
    proposer = SEARCHES[name](task.space(rng, traits), rng, 1)
    line, idle, made = [1.0], 0, {task.made(())}
    try:
        asked = next(proposer)
        while len(line) <= count and idle < 1000:
            for recipe in asked:
                text = task.made(recipe)
                if task.answered(recipe) and (not text or text not in made):
                    made.add(text)
                    line.append(max(line[-1], task.speedups[recipe]))
                    idle = 0
                else:
                    idle += 1
            asked = proposer.send([task.record(recipe) for recipe in asked])
    except StopIteration:
        pass
    finally:
        proposer.close()
    return [*line, *[line[-1]] * count][: count + 1]


def shares(lines: Mapping[str, Sequence[Line]], tasks: Iterable[RecordedTask], evaluations: Sequence[int]) -> dict[str, dict[str, float]]:
    """Return task -> evaluations -> the mean over runs of log(best so far over the best there is)."""
    return {
        task.name: {str(k): sum(math.log(line[k] / task.best) for line in lines[task.name]) / len(lines[task.name]) for k in evaluations}
        for task in tasks
    }


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of some values and its 95 % interval (Student's t); an endless one for a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, -math.inf, math.inf
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    half = (_T[len(values) - 1] if len(values) <= len(_T) else 1.96) * deviation
    return mean, mean - half, mean + half


def table(seeds: Mapping[int, Mapping[str, Mapping[str, Mapping[str, float]]]], evaluations: Sequence[int], over: str) -> list[dict[str, Any]]:
    """Return a row for each proposer: its share of the best there is, and by what factor it is above `over`, over the seeds.

    `seeds`: seed -> proposer -> task -> evaluations -> log share.
    """
    proposers = list(next(iter(seeds.values())))
    rows = []
    for name in proposers:
        row: dict[str, Any] = {"proposer": name}
        for k in evaluations:
            means = [mean_of(by[name], str(k)) for by in seeds.values()]
            gains = [mean_of(by[name], str(k)) - mean_of(by[over], str(k)) for by in seeds.values()]
            mean, low, high = interval(gains)
            row[f"best of {k}"] = round(math.exp(sum(means) / len(means)), 3)
            if name != over:
                row[f"over {over}, best of {k}"] = [round(math.exp(one), 3) if math.isfinite(one) else None for one in (mean, low, high)]
        rows.append(row)
    return rows


def mean_of(tasks: Mapping[str, Mapping[str, float]], k: str) -> float:
    """Return the mean log share over tasks after `k` evaluations."""
    return sum(one[k] for one in tasks.values()) / len(tasks)
