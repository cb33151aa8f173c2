"""An evaluator without processes: what whoever tests the surfaces puts in the workers' place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from warpwright.base import BASELINE, Candidate, Errors, Measurement, Record, Source, Task, Timing, Verdict, now
from warpwright.targets import baselines
from warpwright.tasks import taskfile


class StandIn:
    """Eager takes 1 s, whatever has a recipe takes `seconds` over one more than its steps."""

    device = "cpu"
    versions: Mapping[str, str] = {"torch": "stand-in", "warpwright": "0", "machine": "a test"}

    def __init__(self, task: Task, seconds: float = 0.5, status: Any = "ok") -> None:
        self.task, self.seconds, self.status, self.evaluated = task, seconds, status, 0

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def baselines(self) -> Sequence[Candidate]:
        source = baselines(taskfile.source_text(self.task), "cpu", ["eager"])["eager"]
        return [Candidate(Source("python", source.files, "ModelNew"), "cpu", proposer=f"{BASELINE}eager")]

    def evaluate_baselines(self) -> Iterator[Record]:
        yield self.record(self.baselines()[0], 1.0, "unscored" if self.status == "unscored" else "ok")

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        for candidate in candidates:
            self.evaluated += 1
            yield self.record(candidate, self.seconds / (1 + len(candidate.actions)), self.status)

    def record(self, candidate: Candidate, seconds: float, status: Any) -> Record:
        verdict = Verdict(status == "ok", status, "", "normal", Errors(1e-7, 1e-7, 1e-7), Errors(2e-7, 1e-7, 1e-7))
        record = Record(self.task, candidate, self.device, status, verdict, versions=self.versions, when=now())
        if status != "ok":
            return replace(record, detail="expected 1, saw 2")
        eager, ours = (Timing((value, value), value, value, value) for value in (1.0, seconds))
        gain = 1.0 / seconds
        comparison = "FASTER" if gain > 1 else "SAME"
        return replace(record, measurement=Measurement("time", "s", "lower", ours, {"eager": eager}, "eager", gain, (gain, gain), comparison))
