"""An evaluator without a GPU: the simulator's cycles stand in for times. For tests of searches and agents; no claim rests on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from warpwright.base import BASELINE, Candidate, Comparison, Measurement, Record, Task, Timing, Verdict, failed, now
from warpwright.domains.sass import domain, script
from warpwright.domains.sass.model.checker import complaints
from warpwright.domains.sass.model.simulator import cycles
from warpwright.errors import NotApplicable, WarpwrightError
from warpwright.space import Measuring

WARPS = 4
BASELINE_NAME = "original"


class SimulatedEvaluator:
    """Evaluates schedules by the simulator; times are cycles at 1 GHz, and exact."""

    def __init__(self, task: Task, device: str, measuring: Measuring) -> None:
        self.task, self.device = task, device
        self.kernel = domain.kernel_of(task)
        self.checker = domain.checker_of(self.kernel)
        self.versions: Mapping[str, str] = {"sass": "1", "simulator": "1"}
        self.shipped = self.kernel.compiled or self.kernel
        self.original = cycles(self.shipped.original, WARPS)

    def __enter__(self) -> SimulatedEvaluator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def baselines(self) -> Sequence[Candidate]:
        """Return the original."""
        return [replace(domain.lower(self.shipped.original, ()), proposer=BASELINE + BASELINE_NAME)]

    def evaluate_baselines(self) -> Iterator[Record]:
        """Yield the original's record."""
        yield self._record(self.baselines()[0])

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield one record for each candidate."""
        for candidate in candidates:
            try:
                yield self._record(candidate)
            except WarpwrightError as error:
                yield replace(failed(self.task, candidate, self.device, error), versions=self.versions)

    def _record(self, candidate: Candidate) -> Record:
        schedule = script.read(candidate.source.text, self.shipped if candidate.proposer.startswith(BASELINE) else self.kernel)
        problems = complaints(schedule, domain.checker_of(schedule.kernel))
        if problems:
            raise NotApplicable(f"the model of hazards refuses the schedule: {problems[0]}", "see docs/sass.md")
        taken = cycles(schedule, WARPS)
        speedup = self.original / taken
        verdict: Comparison = "FASTER" if taken < self.original else "SLOWER" if taken > self.original else "SAME"
        measurement = Measurement(
            "simulated cycles", "s", "lower", _exact(taken), {BASELINE_NAME: _exact(self.original)}, BASELINE_NAME, speedup, (speedup, speedup),
            verdict, {"regime": "simulator", "warps": WARPS},
        )  # fmt: skip
        passed = Verdict(True, "ok", "legal by the model of hazards; nothing ran")
        return Record(self.task, candidate, self.device, "ok", passed, measurement, versions=self.versions, when=now())


def _exact(taken: int) -> Timing:
    return Timing((taken * 1e-9,), taken * 1e-9, taken * 1e-9, taken * 1e-9)
