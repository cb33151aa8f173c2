"""The evaluator of machine code: schedules are checked by the model of hazards, compared bit by bit with the original, timed in pairs with it."""

from __future__ import annotations

import hashlib
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from warpwright.base import BASELINE, Candidate, Comparison, Measurement, Record, Task, Timing, Verdict, failed, now
from warpwright.domains.sass import domain, script
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.model.checker import complaints
from warpwright.errors import NotApplicable, UsageError, WarpwrightError
from warpwright.space import Measuring
from warpwright.targets.cubin import judging, racing
from warpwright.targets.cubin.judging import Interval, Judgement, interval, ratios
from warpwright.targets.cubin.process import Child, Job
from warpwright.templates.driver import machine_code

NEAR_BEST = 0.9995
"""A candidate that is surely slower than this share of the best so far is timed no longer."""

SEEDS = 1
"""Inputs that every candidate is compared on."""

FRESH = 2
"""Inputs besides, new for each candidate, of one that may be the best."""

KEPT = 32
"""Candidates that are compared on the same inputs, which need not be made anew for each."""
BASELINE_NAME = "original"


class CubinEvaluator:
    """Evaluates schedules of one task on one GPU."""

    def __init__(self, task: Task, device: str, measuring: Measuring, driver: str = "libcuda.so.1", helpers: Path | None = None) -> None:
        harness = str(task.option("harness_path"))
        if not harness:
            raise UsageError("expected a harness that launches the kernel, saw none", "pass --harness FILE (docs/sass.md)")
        self.task, self.device, self.measuring = task, device, measuring
        self.kernel = domain.kernel_of(task)
        self.checker = domain.checker_of(self.kernel)
        self.shipped = self.kernel.compiled or self.kernel
        self.folder = tempfile.TemporaryDirectory(prefix="warpwright-cubin-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        folder = Path(self.folder.name)
        if helpers is None:
            helpers = folder / "helpers.cubin"
            helpers.write_bytes(machine_code(Path(domain.__file__).with_name("device.cu").read_text(), f"{self.kernel.cubin.arch}"))
        self.job = Job(self._write(self.shipped.cubin.data), Path(harness), helpers, driver, _index(device), kernel=self.kernel.name)
        self.child = Child(self.job, folder)
        self.seed = 1000 + measuring.seed
        self.asked = 0
        self.versions: Mapping[str, str] = {"sass": "1", "domain": "sass"}
        self.best = 1.0
        """The greatest speed-up so far."""
        self.noise = 0.0
        """Log-ratio that the original had against itself at most."""
        self.spent: dict[str, float] = {"candidates": 0.0}
        """Seconds that the child took to load, compare, time and unload candidates, and how many they were."""

    def __enter__(self) -> CubinEvaluator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.child.end()
        self.folder.cleanup()

    def baselines(self) -> Sequence[Candidate]:
        """Return the original."""
        return [replace(domain.lower(self.shipped.original, ()), proposer=BASELINE + BASELINE_NAME)]

    def evaluate_baselines(self) -> Iterator[Record]:
        """Time the original against itself, loaded again; raise TaskError when it cannot be run."""
        began = time.monotonic()
        [candidate] = self.baselines()
        about = self.child.start()
        images = [self._timed(self._write(self.shipped.cubin.data), (sum(self.rounds),), 0.0) for _ in range(3)]
        logs = [abs(math.log(statistics.median(ratios(answer)))) for answer in images]
        self.noise = max(logs)
        conditions = {"us": about["us"], "launches_between_events": about["inner"], "noise": self.noise, "gpu": about["device"]}
        measurement = self._measurement(images[0], conditions)
        seconds = time.monotonic() - began
        verdict = Verdict(True, "ok", "the original")
        yield Record(self.task, candidate, self.device, "ok", verdict, measurement, seconds=seconds, versions=self.versions, when=now())

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield one record for each candidate."""
        for candidate in candidates:
            began = time.monotonic()
            try:
                record = self._evaluated(candidate)
            except WarpwrightError as error:
                record = failed(self.task, candidate, self.device, error)
            yield replace(record, seconds=time.monotonic() - began, versions=self.versions, when=now())

    @property
    def rounds(self) -> tuple[int, ...]:
        """Pairs of each stage of the race (racing.py): one, one, two, four and ten where four measurements take 400 us."""
        about = self.child.start()
        return racing.rounds(about["us"] * about["inner"])

    def schedule(self, candidate: Candidate, anew: bool = False) -> Schedule:
        """Return a candidate's schedule; raise NotApplicable when the rules refuse it. `anew`: though every edit of it was accepted here."""
        known = self.checker.proven.get(candidate.key) if candidate.actions and not anew else None
        if known is not None:
            return known
        schedule = script.read(candidate.source.text, self.kernel)
        checker = self.checker if schedule.kernel is self.kernel else domain.checker_of(schedule.kernel)
        problems = complaints(schedule, checker)
        if problems:
            raise NotApplicable(f"the model of hazards refuses the schedule: {problems[0]}", "see docs/sass.md")
        return schedule

    def _evaluated(self, candidate: Candidate) -> Record:
        image, rounds = self._write(self.schedule(candidate).cubin.data), self.rounds
        self.child.keep_spare()
        answer = self._timed(image, rounds, max(1.0, NEAR_BEST * self.best))
        for what, seconds in {"candidates": 1.0, **answer.get("seconds", {})}.items():
            self.spent[what] = self.spent.get(what, 0.0) + seconds
        if answer["left"]:
            reason = f"expected nothing behind the arrays, saw {answer['left']} words written there by launches that were timed"
            return Record(self.task, candidate, self.device, "wrong", Verdict(False, "wrong", reason, check="bitwise"), detail=reason)
        if any(answer["differ"]):
            other = sum(map(bool, answer["differ"]))
            reason = f"expected the original's bits, saw {sum(answer['differ'])} other words on {other} of {len(answer['differ'])} inputs"
            return Record(self.task, candidate, self.device, "wrong", Verdict(False, "wrong", reason, check="bitwise"), detail=reason)
        verdict = Verdict(True, "ok", f"bit by bit as the original on {len(answer['differ'])} inputs")
        measurement = self._measurement(answer, {"noise": self.noise})
        if measurement.verdict == "FASTER" and len(answer["original_us"]) == sum(self.rounds):
            self.best = max(self.best, measurement.speedup)
        return Record(self.task, candidate, self.device, "ok", verdict, measurement)

    def _timed(self, image: Path, rounds: Sequence[int], worth: float) -> Mapping[str, Any]:
        self.asked += 1
        kept = self.seed + self.asked // KEPT
        fresh = [1_000_000 * (place + 1) + self.seed + self.asked for place in range(FRESH)]
        request = {"do": "evaluate", "image": str(image), "seeds": [kept] * SEEDS, "rounds": rounds, "worth": worth, "fresh": fresh}
        return self.child.ask(request)

    def _write(self, image: bytes) -> Path:
        path = Path(self.folder.name) / f"{hashlib.sha256(image).hexdigest()[:8]}.cubin"
        path.write_bytes(image)
        return path

    def _measurement(self, answer: Mapping[str, Any], conditions: Mapping[str, Any]) -> Measurement:
        pairs = ratios(answer)
        speedup, low, high = racing.widened(interval(pairs, 0.95), len(pairs), self.child.start()["spread"])
        candidate, original = _timing(answer["candidate_us"]), _timing(answer["original_us"])
        return Measurement(
            "device time of a launch", "s", "lower", candidate, {BASELINE_NAME: original}, BASELINE_NAME, speedup, (low, high),
            comparison(low, high, math.exp(self.noise)), {"regime": "device", "pairs": len(answer["original_us"]), **conditions},
        )  # fmt: skip

    def judge(self, candidate: Candidate, stress: float = judging.STRESS_SECONDS) -> Judgement:
        """Judge a schedule (judging.py); what its edits proved is proven anew first."""
        return self.judge_cubin(self.schedule(candidate, anew=True).cubin.data, stress)

    def judge_cubin(self, image: bytes, stress: float = judging.STRESS_SECONDS) -> Judgement:
        """Judge another cubin of the kernel, whatever made it."""
        return judging.judge(self.child, self._write(image), self._write(self.shipped.cubin.data), stress=stress)

    def against(self, image: bytes, cold: bool = False) -> tuple[Interval, int]:
        """Return the speed-up of another cubin of the kernel (other flags of the compiler, say) with its 99 % interval, and its other words.

        `cold`: of single launches that find nothing of their own in the caches.
        """
        path = self._write(image)
        checked = self.child.ask({"do": "evaluate", "image": str(path), "seeds": [1, 2], "rounds": [], "worth": 0.0})
        regime, timed = ("cold" if cold else "warm"), judging.in_epochs(self.child, path, warm=not cold, cold=cold)
        return interval(ratios(timed[regime]), judging.LEVEL), sum(checked["differ"]) + timed["left"]

    def glance(self, image: bytes, worth: float) -> tuple[float, int]:
        """Return the speed-up of another cubin of the kernel, timed for as long as it may be above `worth`, and its other words.

        Those that it wrote behind the arrays while it was timed are among them. The speed-up is 0 where there are any.
        """
        answer = self._timed(self._write(image), self.rounds, worth)
        other = sum(answer["differ"]) + answer["left"]
        return (0.0 if other else statistics.median(ratios(answer))), other

    def launches(self, image: bytes, seconds: float, function: str = "small", each: int = 5000, most: int = 50_000_000) -> tuple[int, int]:
        """Compare every launch of `seconds`, some `most` at most, with the original, `each` for one set of inputs.

        They have the size of the harness's `function`. Returns the launches and the words that differed.
        """
        with tempfile.TemporaryDirectory(dir=self.folder.name) as folder:
            child = Child(replace(self.job, function=function), Path(folder))
            seeds = list(range(9_000_000, 9_000_000 + math.ceil(most / each)))
            request = {"do": "stress", "image": str(self._write(image)), "seeds": seeds, "launches": each, "seconds": seconds}
            answer = child.ask(request, seconds + 60.0, alone=False)
            child.end()
        return answer["launches"], sum(answer["differ"])


def _index(device: str) -> int:
    number = device.partition(":")[2] or "0"
    if not number.isdigit():
        raise UsageError(f"expected a device such as cubin or cubin:0, saw {device!r}", "cubin:sim is the simulator")
    return int(number)


def _timing(us: Sequence[float]) -> Timing:
    median, low, high = interval(us, 0.95)
    return Timing(tuple(value * 1e-6 for value in us), median * 1e-6, low * 1e-6, high * 1e-6)


def comparison(low: float, high: float, noise: float) -> Comparison:
    """Return the verdict of an interval of speed-ups; one that reaches into the noise of the original against itself is not FASTER."""
    if low > noise:
        return "FASTER"
    if high < 1 / noise:
        return "SLOWER"
    return "SAME" if low > 0.98 and high < 1.02 else "UNSURE"
