"""The evaluator of choices of class-wise convolution: a program is measured by training networks on what it protects.

Its metric is a cost, not a time: `speedup` is the best preset's cost over the program's. FASTER and SLOWER mean better and worse; they need
two seeds, since one says nothing of what luck does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

import numpy as np
import torch

from warpwright.base import BASELINE, Candidate, Comparison, Measurement, Record, Task, Timing, Verdict, failed, now
from warpwright.domains.unlearnable import domain
from warpwright.domains.unlearnable.front import choices, work
from warpwright.domains.unlearnable.front.scoring import Score, Scorer
from warpwright.domains.unlearnable.protect import PRESETS
from warpwright.errors import UsageError, WarpwrightError
from warpwright.space import Measuring
from warpwright.targets.versions import versions

PRESETS_BESIDE = ("gentle", "paper")

_T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 8: 2.31, 10: 2.23}
"""97.5 % points of Student's t by degrees of freedom; those of the next smaller are taken between."""


class TrainingsEvaluator:
    """Evaluates the choices of one task on `training:cpu` or `training:cuda:N`."""

    def __init__(self, task: Task, device: str, measuring: Measuring) -> None:
        self.task, self.device, self.measuring = task, device, measuring
        if task.domain != domain.name or not task.path.endswith(work.SUFFIX):
            raise UsageError(f"expected a {work.SUFFIX} file for the target {work.TARGET}, saw {task.path}", "use --target cpu or cuda")
        self.work = domain.FRONT.work(task)
        place = device.partition(":")[2] or "cpu"
        if place.startswith("cuda") and not torch.cuda.is_available():
            raise UsageError(f"expected a GPU for {device}, saw none", f"use {work.TARGET}:cpu")
        self.scorer = Scorer(self.work, place)
        self.versions: Mapping[str, str] = {**versions(place), "front": "1"}
        self._beside: dict[str, Score] = {}

    def __enter__(self) -> TrainingsEvaluator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def baselines(self) -> Sequence[Candidate]:
        """Return the presets."""
        names = [name for name in PRESETS_BESIDE if not self.measuring.baselines or name in self.measuring.baselines] or ["gentle"]
        return [replace(work.lower(_preset(name), ()), proposer=BASELINE + name) for name in names]

    def evaluate_baselines(self) -> Iterator[Record]:
        """Yield the presets' records."""
        for candidate in self.baselines():
            yield self._record(candidate)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield one record for each candidate."""
        for candidate in candidates:
            try:
                yield self._record(candidate)
            except (WarpwrightError, torch.OutOfMemoryError) as error:
                yield replace(failed(self.task, candidate, self.device, error), versions=self.versions)

    def _record(self, candidate: Candidate) -> Record:
        for baseline in self.baselines():
            if baseline.key not in self._beside:
                self._beside[baseline.key] = self._score(baseline)
        score = self._beside.get(candidate.key) or self._score(candidate)
        record = Record(self.task, candidate, self.device, "ok", seconds=score.seconds, versions=self.versions, when=now())
        if score.void:
            reason = f"void: {score.void} of {len(score.train)} networks did not learn their training images ({min(score.train):.1f} %)"
            if candidate.proposer.startswith(BASELINE):
                reason += ": train longer, or give more images"
                return replace(record, status="unscored", verdict=Verdict(False, "unscored", reason), detail=reason)
            return replace(record, status="wrong", verdict=Verdict(False, "wrong", reason), detail=reason)
        return replace(record, verdict=Verdict(True, "ok", "every network learned its training images"), measurement=self._measured(score))

    def _score(self, candidate: Candidate) -> Score:
        self.measuring.tell(f"training {self.work.seeds} networks")
        return self.scorer.score(choices.parse(candidate.source.text))

    def _measured(self, score: Score) -> Measurement:
        weight, kind = self.work.weight, self.work.quality
        own = score.costs(weight, kind)
        beside = {candidate.proposer.removeprefix(BASELINE): self._beside[candidate.key].costs(weight, kind) for candidate in self.baselines()}
        best = min(beside, key=lambda name: float(np.mean(np.log(beside[name]))))
        ratio, low, high = compared(beside[best], own)
        verdict: Comparison = "UNSURE" if low <= 1 <= high else "FASTER" if ratio > 1 else "SLOWER"
        figures = {"accuracy": float(np.mean(score.accuracies)), "spread": max(score.accuracies) - min(score.accuracies)}
        figures |= {"psnr": score.psnr, "ssim": score.ssim, "perceptual": score.perceptual, "device_seconds": score.seconds}
        figures |= {"clean_accuracy": self.scorer.clean_accuracy, "train": min(score.train), "seeds": len(own), "weight": weight}
        timings = {name: _timing(costs) for name, costs in beside.items()}
        conditions = {**figures, "quality": kind, "regime": "trainings"}
        return Measurement("protection and quality", "cost", "lower", _timing(own), timings, best, ratio, (low, high), verdict, conditions)


def compared(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of geometric means, first over second, and its 95 % interval; without two of each it is unbounded."""
    a, b = np.log(first), np.log(second)
    ratio = math.exp(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return ratio, 0.0, math.inf
    freedom = len(a) + len(b) - 2
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    wide = math.exp(_T[max(one for one in _T if one <= freedom)] * error)
    return ratio, ratio / wide, ratio * wide


def _timing(costs: Sequence[float]) -> Timing:
    middle = math.exp(float(np.mean(np.log(costs))))
    return Timing(tuple(costs), middle, min(costs), max(costs))


def _preset(name: str) -> choices.Choices:
    preset = PRESETS[name]
    spec, operator = preset.spec, preset.operator
    return choices.Choices(spec.k, spec.pb, spec.tap, operator.pad, operator.scale, candidates=spec.candidates)
