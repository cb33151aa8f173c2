"""The evaluator that works with processes on this machine: build, verify, measure, and one Record for whatever happened.

    trusted, kept for the task       a judge, and one worker that holds every baseline
    untrusted, one a candidate       a worker that is killed after use

The baselines are verified like candidates: one that is not right (TF32 where full precision was asked for) is timed for the table, with the
reason, but is not what candidates are measured against. When a trusted process fails, all are started again, once, for the candidate at hand.
"""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from warpwright import __version__, native, targets
from warpwright.base import Build, Candidate, Measurement, Record, Scalar, Source, Status, Task, Timing, Verdict
from warpwright.errors import WarpwrightError, WorkerError
from warpwright.loop import BASELINE, FAILED, failed, now, target_of
from warpwright.tasks import taskfile
from warpwright.timing import measure, roofline
from warpwright.timing.device_lock import DeviceLock
from warpwright.verifier import timed, verify
from warpwright.verifier.ledger import hidden_work
from warpwright.verifier.rejections import Rejected, rejection, verdict_of
from warpwright.workers.device_yield import yielding
from warpwright.workers.sandbox import Limits, Worker

ORIGINAL = "eager"
"""The baseline that is the original itself: it is always among those that a candidate is timed beside."""

BASELINE_SECONDS = 5.0
"""For the run that times the baselines beside one another, before the first candidate."""


class TrustedFailed(WarpwrightError):
    """A trusted process failed: no fault of the candidate at hand."""


OURS = (TrustedFailed, verify.JudgeFailed)

AGAINST_MALICE = frozenset({"background", "patched", "inspection", "forbidden", "source", "late_output"})
"""Checks of how a process behaves. A baseline is ours, and no cheat: there they are false alarms of a busy machine."""

TRIES = 3

AUTOTUNING = ("max-autotune", "autotune(", "cudnn.benchmark")
"""In a program's text: its build tries kernels out on the device."""


@dataclass
class Baseline:
    """One baseline program, and what became of it."""

    candidate: Candidate
    build: Build | None = None
    verdict: Verdict | None = None
    program: TrustedProgram | None = None
    """Once it is built."""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """May it be what candidates are measured against?"""
        return self.program is not None and self.verdict is not None and self.verdict.ok

    @property
    def note(self) -> str:
        """Why it is not."""
        if self.verdict is None or self.right:
            return ""
        return f"{'not eligible' if self.program is not None else 'not built'}: {self.verdict.reason}"


@dataclass
class Trusted:
    """The trusted processes of the task, and what was learned from them."""

    judge: verify.Judge
    baselines: dict[str, Baseline]
    worker: Worker | None = None
    unscored: str = ""
    overhead: float = 0.0
    floor: float = 0.0
    roof: Mapping[str, Scalar] = field(default_factory=dict)
    """For the record: the bytes and flops of the task, the peaks of the device, or why they are not known."""
    timings: Mapping[str, Timing] = field(default_factory=dict)
    """Of the baselines, timed beside one another."""

    @property
    def alive(self) -> bool:
        """Do they all run?"""
        return self.judge.worker.alive and (self.worker is None or self.worker.alive)

    def programs(self) -> dict[str, measure.Timeable]:
        """Return the baselines that were built."""
        return {name: baseline.program for name, baseline in self.baselines.items() if baseline.program is not None}

    def timed(self) -> list[TrustedProgram]:
        """Return the programs that candidates are timed beside."""
        return [baseline.program for baseline in self.baselines.values() if baseline.program is not None and baseline.right]

    @property
    def eligible(self) -> list[str]:
        """The names of those that are right."""
        return [name for name, baseline in self.baselines.items() if baseline.right]

    @property
    def best(self) -> str:
        """The name of the fastest one that is right."""
        return min((name for name in self.eligible if name in self.timings), key=lambda name: self.timings[name].median)

    def release_memory(self) -> None:
        """Have them let go of what the last call left: on a GPU, the next candidate may need the memory."""
        if self.judge.device != "cpu":
            self.judge.forget()
            if self.worker is not None:
                _trust(self.worker.release_memory)

    def close(self) -> None:
        """End them."""
        self.judge.close()
        if self.worker is not None:
            self.worker.close()


class TrustedProgram(timed.TimedProgram):
    """A baseline under the timer: its failures are ours."""

    def prepare(self, inputs: verify.Shipment, place: float) -> None:
        _trust(lambda: super(TrustedProgram, self).prepare(inputs, place))

    def go(self) -> float:
        return _trust(super().go)


def _trust(step: Callable[[], Any]) -> Any:
    """Do `step`; whatever a worker does wrong in it is our failure."""
    try:
        return step()
    except WorkerError as error:
        raise TrustedFailed(f"a trusted process failed: {error}", error.hint) from error


class LocalEvaluator:
    """Evaluates candidates of one task on one device. It starts no process before the first evaluation; close it, or use it with `with`."""

    def __init__(
        self,
        task: Task,
        device: str = "cpu",
        baselines: Sequence[str] | None = None,
        archive_folder: Path | None = None,
        limits: Limits | None = None,
        seconds_per_candidate: float = 10.0,
        lock: DeviceLock | None = None,
        seed: int = 0,
        worthwhile: float = 0.0,
    ) -> None:
        """`baselines`: names out of `targets.baselines`, all of them if not given. `archive_folder`: where measured peaks are kept.

        `worthwhile`: a speed-up that is surely below it is not measured any further, because it does not interest a search.
        """
        self.task, self.device = task, device
        self.versions: Mapping[str, str] = versions(device)
        self._place = "cuda:0" if device == "cuda" else device
        self._names = (ORIGINAL, *(name for name in baselines if name != ORIGINAL)) if baselines else None
        self._folder = archive_folder or native.cache_folder()
        self._limits = limits or Limits()
        self._seconds = seconds_per_candidate
        self._lock = lock or DeviceLock(self._place)
        self._random = random.Random(seed)
        self._worthwhile = worthwhile
        self._trusted: Trusted | None = None
        self._sources: Mapping[str, Source] | None = None

    # --- the Evaluator protocol -------------------------------------------------------------------------------------------------------

    def baselines(self) -> list[Candidate]:
        """Return the baseline programs."""
        if self._sources is None:
            self._sources = targets.baselines(taskfile.source_text(self.task), self._place, self._names)
        return [Candidate(source, target_of(self.device), proposer=BASELINE + name) for name, source in self._sources.items()]

    def evaluate_baselines(self) -> Iterator[Record]:
        """Yield the record of each baseline. All are `unscored` when the task gives no score, or when its own processes cannot be started."""
        try:
            trusted = self._twice(self._ready)
        except OURS as error:
            yield from (self._our_failure(candidate, error) for candidate in self.baselines())
            return
        for name, baseline in trusted.baselines.items():
            if trusted.unscored:
                yield self._record(baseline.candidate, "unscored", detail=trusted.unscored)
            else:
                yield self._baseline_record(trusted, name, baseline)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield the record of each candidate as soon as it is known."""
        for candidate in candidates:
            began = time.monotonic()
            record = self._evaluate(candidate)
            yield replace(record, seconds=time.monotonic() - began)

    def close(self) -> None:
        """End every process."""
        if self._trusted is not None:
            self._trusted.close()
            self._trusted = None

    def __enter__(self) -> LocalEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the trusted processes --------------------------------------------------------------------------------------------------------

    def _twice(self, step: Callable[[], Any]) -> Any:
        """Do `step`; when a trusted process fails, start all of them anew and do it once more."""
        try:
            return step()
        except OURS:
            self.close()
            return step()

    def _ready(self) -> Trusted:
        """Return the trusted processes: those that are there, if they still live."""
        if self._trusted is not None and not self._trusted.alive:
            self.close()
        if self._trusted is None:
            self._trusted = _trust(self._start)
        return self._trusted

    @contextmanager
    def _beside_others(self) -> Iterator[None]:
        """Hold the device beside others, to build and verify; give way to whoever wants to time."""
        with self._lock.shared() as held, yielding(held):
            yield

    def _building(self, source: Source) -> AbstractContextManager[None]:
        """Hold what a build takes: the host's cores, where they are the device; a GPU only if kernels are tried out on it.

        (Trying out was noise of 0.3 ms in another task's timing on an H200. A compilation uses the GPU for a few calls only, but stopping it
        whenever another task is timed took more of a run than the timing.)
        """
        tries = self.device == "cpu" or any(word in source.text for word in AUTOTUNING)
        return self._beside_others() if tries else nullcontext()

    def _start(self) -> Trusted:
        with ThreadPoolExecutor(1) as aside:  # the work is counted in another process meanwhile, which takes as long as the judge's start
            counting = aside.submit(self._count)
            with self._beside_others():
                judge = verify.Judge(self.task, self._place, self._limits)
            trusted = Trusted(judge, {c.proposer.removeprefix(BASELINE): Baseline(c) for c in self.baselines()})
            try:
                with self._beside_others():
                    certificate = judge.certify()
                trusted.unscored = "" if certificate.scored else certificate.reason
                if not trusted.unscored:
                    self._build_baselines(trusted)
                if not trusted.unscored:
                    self._time_baselines(trusted, counting.result())
            except BaseException:
                trusted.close()
                raise
        return trusted

    def _count(self) -> roofline.Work:
        with self._lock.host():
            return roofline.work(self.task)

    def _build_baselines(self, trusted: Trusted) -> None:
        """Build and verify every baseline in one worker. One that ends the worker is left out, and the others are built anew."""
        fatal: set[str] = set()
        while trusted.worker is None or not trusted.worker.alive:
            worker = trusted.worker = Worker("baseline", self._place, self._limits)
            for name, baseline in trusted.baselines.items():
                if name not in fatal:
                    self._build_baseline(trusted.judge, worker, name, baseline)
                if not worker.alive:
                    fatal.add(name)
                    baseline.program = None
                    break
        original = trusted.baselines.get(ORIGINAL)
        if original is not None and not original.right:
            trusted.unscored = f"the original does not pass as a candidate: {original.verdict.reason if original.verdict else ''}"

    def _build_baseline(self, judge: verify.Judge, worker: Worker, name: str, baseline: Baseline) -> None:
        began = time.monotonic()
        with self._building(baseline.candidate.source):
            baseline.build, rejected = verify.build(judge, worker, name, baseline.candidate.source)
        baseline.program = None if rejected else TrustedProgram(judge, worker, name)
        with self._beside_others():
            baseline.verdict = rejected or self._verify_baseline(judge, worker, name)
            _trust(worker.release_memory)
        baseline.seconds = time.monotonic() - began

    def _verify_baseline(self, judge: verify.Judge, worker: Worker, name: str) -> Verdict:
        """Verify a baseline; again, some times, after an alarm that can only be a false one. The original is right in any case of that kind."""
        for _ in range(TRIES):
            verdict = verify.verify(judge, worker, name, self.task)
            if verdict.check not in AGAINST_MALICE or not worker.alive:
                return verdict
        if name == ORIGINAL:
            try:
                timed.load_timed_state(judge, worker, name)
            except Rejected as rejected:
                return rejected.verdict
            return Verdict(True, "ok", f"the check {verdict.check!r} is left aside for the original itself: {verdict.reason}", verdict.case)
        return verdict

    def _time_baselines(self, trusted: Trusted, work: roofline.Work) -> None:
        """Time the baselines beside one another, the first that is right in the candidate's place; and a call of nothing."""
        assert trusted.worker is not None
        programs = trusted.programs()
        with self._lock.exclusive():
            trusted.floor, trusted.roof = self._roof(work)
            trusted.overhead = timed.call_overhead(trusted.worker)
            seconds = min(BASELINE_SECONDS, self._seconds)
            trusted.timings = self._compare(trusted, programs[trusted.eligible[0]], seconds, check_share=0.0).baselines
        trusted.release_memory()

    def _roof(self, work: roofline.Work) -> tuple[float, Mapping[str, Scalar]]:
        """Return the time below which nothing is believed, and the facts that it rests on."""
        try:
            peaks = roofline.peaks(self._place, self._folder)
        except roofline.RooflineError as error:
            return 0.0, {"floor_note": f"the peaks of {self._place} could not be measured: {error}"}
        return roofline.floor_seconds(work, peaks), roofline.facts(work, peaks)

    def _compare(
        self, trusted: Trusted, program: measure.Timeable, seconds: float, hidden: Callable[[], verify.Shipment] | None = None,
        check_share: float = 0.1,
    ) -> Measurement:  # fmt: skip
        """Time a program beside the baselines. `check_share` is 0 for one of them: they share a worker, whose last output may be another's."""
        return measure.compare(
            program, trusted.programs(), trusted.judge.fresh,
            seconds=seconds, floor_seconds=trusted.floor, overhead_seconds=trusted.overhead, rng=self._random, eligible=trusted.eligible,
            hidden_inputs=hidden, check_share=check_share, worthwhile=self._worthwhile if hidden else 0.0,
        )  # fmt: skip

    # --- candidates -------------------------------------------------------------------------------------------------------------------

    def _evaluate(self, candidate: Candidate) -> Record:
        """Return the candidate's record, whatever happens: with `loop.failed` the place where exceptions become statuses."""
        try:
            return self._twice(lambda: self._attempt(self._ready(), candidate))  # type: ignore[no-any-return]
        except OURS as error:
            return self._our_failure(candidate, error)
        except WarpwrightError as error:
            return replace(failed(self.task, candidate, self.device, error), versions=self.versions)

    def _attempt(self, trusted: Trusted, candidate: Candidate) -> Record:
        if trusted.unscored:
            return self._record(candidate, "unscored", detail=trusted.unscored)
        with Worker("candidate", self._place, self._limits) as worker:
            with self._building(candidate.source):
                build, rejected = verify.build(trusted.judge, worker, "candidate", candidate.source)
            with self._beside_others():
                verdict = rejected or verify.verify(trusted.judge, worker, "candidate", self.task)
            measurement = None
            if verdict.ok:
                verdict, measurement = self._time(trusted, worker, verdict)
                trusted.release_memory()
        return self._record(candidate, verdict.status, verdict, measurement, build)

    def _time(self, trusted: Trusted, worker: Worker, verdict: Verdict) -> tuple[Verdict, Measurement | None]:
        """Time a verified candidate beside the contenders; return the verdict, which a timed call may have changed."""
        program = timed.TimedProgram(trusted.judge, worker, "candidate")
        try:
            with self._lock.exclusive():
                measurement = self._compare(trusted, program, self._seconds, trusted.judge.hidden)
        except Rejected as rejected:
            return rejected.verdict, None
        except measure.BelowFloor as error:
            return Verdict(False, "cheated", str(error), check="below_floor"), None
        except measure.WrongDuringTiming as error:
            return error.verdict, None
        except WorkerError as error:
            return verdict_of(error), None
        saved = measurement.baselines[measurement.best_baseline].median - measurement.candidate.median
        hidden = hidden_work(program.ledger, [other.ledger for other in trusted.timed()], saved)
        if hidden:
            return rejection("background", hidden), None
        return verdict, annotated(trusted, measurement)

    # --- records ----------------------------------------------------------------------------------------------------------------------

    def _record(
        self, candidate: Candidate, status: Status, verdict: Verdict | None = None, measurement: Measurement | None = None,
        build: Build | None = None, detail: str = "",
    ) -> Record:  # fmt: skip
        said = detail or (verdict.reason if verdict is not None else "")
        return Record(self.task, candidate, self.device, status, verdict, measurement, build, said, 0.0, self.versions, now())

    def _our_failure(self, candidate: Candidate, error: Exception) -> Record:
        """Return a record that says nothing of the candidate, and that no later run takes for an answer: its versions are no run's."""
        return replace(self._record(candidate, "unscored", detail=str(error)), versions={**self.versions, FAILED: type(error).__name__})

    def _baseline_record(self, trusted: Trusted, name: str, baseline: Baseline) -> Record:
        verdict = baseline.verdict
        assert verdict is not None
        measurement = standing(trusted, name) if name in trusted.timings else None
        made = self._record(baseline.candidate, verdict.status, verdict, measurement, baseline.build, baseline.note)
        return replace(made, seconds=baseline.seconds)


def annotated(trusted: Trusted, measurement: Measurement) -> Measurement:
    """Return `measurement` with every baseline: those that are not eligible, or were not built, say why. And the roofline's facts."""
    missing = Timing((), float("nan"), float("nan"), float("nan"))
    timings = {
        name: replace(measurement.baselines.get(name, missing), note=baseline.note) for name, baseline in trusted.baselines.items()
    }
    return replace(measurement, baselines=timings, conditions={**measurement.conditions, **trusted.roof})


def standing(trusted: Trusted, name: str) -> Measurement:
    """Return one baseline's place among the others: the fastest one that is right stands at exactly 1."""
    best = trusted.best
    mine, fastest = trusted.timings[name], trusted.timings[best]
    speedup, low, high = fastest.median / mine.median, fastest.low / mine.high, fastest.high / mine.low
    if name == best:
        speedup = low = high = 1.0
    conditions: dict[str, Scalar] = {"floor_seconds": trusted.floor, "overhead_seconds": trusted.overhead, "run": "the baselines beside one another"}
    verdict = measure.judge(low, high)
    made = Measurement("time of one call", "s", "lower", mine, trusted.timings, best, speedup, (low, high), verdict, conditions)
    return annotated(trusted, made)


def versions(device: str) -> dict[str, str]:
    """Return what a record's numbers depend on besides the program: an archived record answers only where all of it is the same."""
    found = {"warpwright": __version__, "python": platform.python_version(), "torch": metadata.version("torch")}
    return {**found, "machine": targets.machine_name(device)}
