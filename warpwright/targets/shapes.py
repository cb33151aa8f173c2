"""The evaluator of a task with declared shapes: each program is verified and timed in every shape, and its one record says what came of each.

    wrong in one shape                   the record is that shape's failure
    SLOWER in one shape                  the record is SLOWER
    FASTER or SAME in each               FASTER, where the geometric mean of the intervals' lower ends lies above 1.02, as in one shape
    anything else                        SAME where it is in each, else UNSURE
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from warpwright.base import LEFT_OUT, Candidate, Comparison, Measurement, Record, Regime, Task
from warpwright.deadline import Deadline
from warpwright.space import Evaluator, Measuring, Rebuilding
from warpwright.tasks import shapes
from warpwright.timing.measure import BAND

Opening = Callable[[Task, str, Measuring], AbstractContextManager[Evaluator]]
"""Gives the evaluator of a plain task."""


@dataclass(eq=False)
class _Turn:
    waiting: int = 1
    """Shapes whose baselines are still to be made, with the one at hand."""


@dataclass(frozen=True)
class _Share(Deadline):
    """A deadline of which as many parts are left to others as `turn` says."""

    turn: _Turn = field(default_factory=_Turn)

    @property
    def left(self) -> float:
        """Seconds that whoever's turn it is may plan with."""
        return super().left / max(1, self.turn.waiting)


class ShapesEvaluator:
    """Evaluates candidates of a task in each of its declared shapes, by an evaluator each."""

    def __init__(self, task: Task, device: str, measuring: Measuring, opening: Opening) -> None:
        self.task, self.device = task, device
        self.versions: Mapping[str, str] = {}
        self.turn = _Turn()
        self.tasks = {shapes.label(one): one for one in shapes.tasks(task)}
        self._opening, self._measuring, self._stack = opening, measuring, ExitStack()
        self._evaluators: dict[str, Evaluator] = {}

    def __enter__(self) -> ShapesEvaluator:
        seconds = self._measuring.seconds / len(self.tasks)
        measuring = replace(self._measuring, seconds=seconds, deadline=self._shared(self._measuring.deadline))
        for name, one in self.tasks.items():
            with shapes.named(one):
                self._evaluators[name] = self._stack.enter_context(self._opening(one, self.device, measuring))
            self.versions = self._evaluators[name].versions
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _shared(self, deadline: Deadline | None) -> Deadline | None:
        return None if deadline is None else _Share(deadline.seconds, deadline.began, deadline.kept, deadline.firm, self.turn)

    # --- the Evaluator protocol -------------------------------------------------------------------------------------------------------

    def baselines(self) -> Sequence[Candidate]:
        """Return the baselines as the first shape's evaluator has them: the texts differ in the sizes of their example inputs alone."""
        return next(iter(self._evaluators.values())).baselines()

    def rebuilt(self, baseline: Candidate) -> Candidate:
        """Return the baseline as the first shape's evaluator builds it where the strides of its results were refused."""
        first = next(iter(self._evaluators.values()))
        return first.rebuilt(baseline) if isinstance(first, Rebuilding) else baseline

    def evaluate_baselines(self) -> Iterator[Record]:
        """Yield the joined record of each baseline."""
        by_shape: dict[str, list[Record]] = {}
        for number, (name, evaluator) in enumerate(self._evaluators.items()):
            self.turn.waiting = len(self._evaluators) - number
            with shapes.named(self.tasks[name]):
                by_shape[name] = list(evaluator.evaluate_baselines())
        self.turn.waiting = 1
        for records in zip(*by_shape.values(), strict=True):
            yield self._joined(records[0].candidate, dict(zip(by_shape, records, strict=True)))

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield the joined record of each candidate; the first shape in which it fails is the last that it is tried in."""
        for candidate in candidates:
            records: dict[str, Record] = {}
            for name, evaluator in self._evaluators.items():
                with shapes.named(self.tasks[name]):
                    [records[name]] = evaluator.evaluate([candidate])
                if records[name].status != "ok":
                    break
            yield self._joined(candidate, records)

    # --- one record of several --------------------------------------------------------------------------------------------------------

    def _joined(self, candidate: Candidate, records: Mapping[str, Record]) -> Record:
        seconds = sum(record.seconds for record in records.values())
        name, one = next(((name, record) for name, record in records.items() if record.status != "ok"), next(iter(records.items())))
        if one.status != "ok":
            detail = f"in the shape {name}: {one.detail}"
            verdict = one.verdict and replace(one.verdict, reason=f"in the shape {name}: {one.verdict.reason}")
            return replace(one, task=self.task, candidate=candidate, detail=detail, verdict=verdict, seconds=seconds)
        measured = {name: record.measurement for name, record in records.items() if record.measurement is not None}
        nearest = max(records.values(), key=_excess)
        versions = next((record.versions for record in records.values() if LEFT_OUT in record.versions), one.versions)
        whole = joined(measured) if len(measured) == len(records) else None
        return replace(nearest, task=self.task, candidate=candidate, measurement=whole, seconds=seconds, versions=versions)


def _excess(record: Record) -> float:
    """Return how near a verdict came to its tolerance: the error over the original's own."""
    verdict = record.verdict
    if verdict is None or verdict.error is None or verdict.error_reference is None:
        return 0.0
    return verdict.error.max / verdict.error_reference.max if verdict.error_reference.max else 0.0


def joined(measured: Mapping[str, Measurement]) -> Measurement:
    """Return what the measurements in all shapes say together."""
    least = min(measured, key=lambda name: measured[name].speedup)
    worst, verdict = measured[least], _verdict(measured)
    each = {name: _of_shape(one) for name, one in measured.items()}
    conditions: dict[str, Any] = {**worst.conditions, "shape": least}
    if verdict == "SLOWER":
        return replace(worst, verdict=verdict, conditions=conditions, shapes=each)
    low, high = (_mean([one.interval[end] for one in measured.values()]) for end in (0, 1))
    speedup = _mean([one.speedup for one in measured.values()])
    return replace(worst, speedup=speedup, interval=(low, high), verdict=verdict, conditions=conditions, shapes=each)


def _verdict(measured: Mapping[str, Measurement]) -> Comparison:
    verdicts = {one.verdict for one in measured.values()}
    if "SLOWER" in verdicts:
        return "SLOWER"
    if "FASTER" in verdicts and verdicts <= {"FASTER", "SAME"}:
        return "FASTER" if _mean([one.interval[0] for one in measured.values()]) > BAND else "UNSURE"
    return "SAME" if verdicts == {"SAME"} else "UNSURE"


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean; 0 where a value is."""
    return math.exp(sum(map(math.log, values)) / len(values)) if all(value > 0 for value in values) else 0.0


def _of_shape(one: Measurement) -> Regime:
    baselines = {name: timing.median for name, timing in one.baselines.items() if timing.samples}
    refused = "; ".join(f"{name} does not count: {timing.note}" for name, timing in one.baselines.items() if timing.samples and timing.note)
    return Regime(one.candidate.median, baselines, one.best_baseline, one.speedup, one.interval, one.verdict, refused)
