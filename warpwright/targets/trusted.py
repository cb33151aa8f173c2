"""The trusted processes of a task on this machine: a judge, and one worker that holds every baseline.

The baselines are verified like candidates: one that is not right (TF32 where full precision was asked for) is timed for the table, with the
reason, but is not what candidates are measured against.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warpwright.base import BASELINE, Build, Candidate, Measurement, Scalar, Source, Task, Timing, Verdict
from warpwright.deadline import Deadline
from warpwright.errors import WarpwrightError, WorkerError
from warpwright.space import Tell, silent
from warpwright.timing import measure, rates, regimes, roofline
from warpwright.timing.device_lock import DeviceLock
from warpwright.verifier import streamed, timed, verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers.device_yield import yielding
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker

ORIGINAL = "eager"
"""The baseline that is the original itself: it is always among those that a candidate is timed beside."""

BASELINE_SECONDS = 2.0
"""For the run that times the baselines beside one another, before the first candidate: it gives their records, and the length of a turn. What a
candidate is compared with is timed again, beside it."""


class TrustedFailed(WarpwrightError):
    """A trusted process failed: no fault of the candidate at hand."""


HARNESS_ERRORS = (TrustedFailed, verify.JudgeFailed)
"""What says nothing of the candidate at hand."""

AGAINST_MALICE = frozenset({"background", "patched", "inspection", "forbidden", "source", "late_output"})
"""Checks of how a process behaves. A baseline is ours, and no cheat: there they are false alarms of a busy machine."""

TRIES = 3

AUTOTUNING = ("max-autotune", "autotune(", "cudnn.benchmark")
"""In a program's text: its build tries kernels out on the device."""

COMPILED = "torch.compile"
"""In a program's text: its build takes from seconds to minutes, where another's takes milliseconds."""

COMPILE_SHARE, AUTOTUNE_SHARE = 0.4, 0.3
"""Of the time that is left, the most that building and verifying a compiled baseline may take, and one that tries kernels out."""

AUTOTUNE_TAKES = 1.5
"""Times as long as the plain compilation takes, at least: 0.9 to 4 on a CPU, 2 to 10 on an H200."""

LEAST_SECONDS, COLD_SECONDS = 4.0, 8.0
"""No compilation is begun with less; the latter where this machine has not compiled the program before. A softmax took 3.6 and 8.3 s of CPU time."""

COUNTING_SHARE, PEAKS_SHARE, BASELINES_SHARE = 0.2, 0.3, 0.15
"""Of the time that is left, the most that is waited for the task's work to be counted, spent on a device's peaks when they are not known, and on
timing the baselines beside one another."""


@dataclass(frozen=True)
class Workbench:
    """Where a task's programs are built and run, and who else uses the device."""

    task: Task
    place: str
    """The device as torch writes it: cpu, cuda:0."""
    limits: Limits
    lock: DeviceLock
    folder: Path
    """Where measured peaks are kept."""
    deadline: Deadline | None = None
    tell: Tell = silent

    @property
    def left(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return self.deadline.left if self.deadline is not None else math.inf

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        """Hold the device beside others, to build and verify; give way to whoever wants to time."""
        with self.lock.shared() as held, yielding(held):
            yield

    def building(self, source: Source) -> AbstractContextManager[None]:
        """Hold what a build takes: the host's cores, where they are the device; a GPU only if kernels are tried out on it.

        (Trying out was noise of 0.3 ms in another task's timing on an H200. A compilation uses the GPU for a few calls only, but stopping it
        whenever another task is timed took more of a run than the timing.)
        """
        tries = self.place == "cpu" or any(word in source.text for word in AUTOTUNING)
        return self.beside_others() if tries else nullcontext()


@dataclass
class Baseline:
    """One baseline program, and what became of it."""

    candidate: Candidate
    build: Build | None = None
    verdict: Verdict | None = None
    program: TrustedProgram | None = None
    """Once it is built."""
    seconds: float = 0.0
    left_out: str = ""
    """Why there was no time for it."""
    _turns: TrustedStream | None = None

    def turns(self, calls: int) -> TrustedStream:
        """Return the program in turns of `calls` calls."""
        assert self.program is not None
        if self._turns is None or self._turns.worker is not self.program.worker or self._turns.calls != calls:
            self._turns = TrustedStream(self.program.judge, self.program.worker, self.program.entry, calls)
        return self._turns

    @property
    def right(self) -> bool:
        """May it be what candidates are measured against?"""
        return self.program is not None and self.verdict is not None and self.verdict.ok

    @property
    def note(self) -> str:
        """Why it is not."""
        if self.left_out:
            return f"left out: {self.left_out}"
        if self.verdict is None or self.right:
            return ""
        return f"{'not eligible' if self.program is not None else 'not built'}: {self.verdict.reason}"


@dataclass
class Trusted:
    """The trusted processes of the task, and what was learned from them."""

    judge: verify.Judge
    baselines: dict[str, Baseline]
    worker: Worker | None = None
    """That of the baselines, once they are built."""
    ready: bool = False
    """Are the baselines built, verified and timed?"""
    unscored: str = ""
    overhead: float = 0.0
    floor: float = 0.0
    roof: Mapping[str, Scalar] = field(default_factory=dict)
    """For the record: the bytes and flops of the task, the peaks of the device, or why they are not known."""
    regime: str = "single"
    """The one that verdicts are given in."""
    both: bool = False
    """Is every program timed in both?"""
    calls: int = 0
    """In a turn of a stream; 0: the task has no stream."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why a regime is not timed."""
    by_regime: dict[str, Mapping[str, Timing]] = field(default_factory=dict)
    """The baselines, timed beside one another, in each regime."""

    @property
    def complete(self) -> bool:
        """Was every baseline built that there was time for, and is the original right?"""
        return not self.unscored and all(baseline.program is not None or baseline.left_out for baseline in self.baselines.values())

    @property
    def alive(self) -> bool:
        """Do they all run?"""
        return self.judge.worker.alive and (self.worker is None or self.worker.alive)

    @property
    def timings(self) -> Mapping[str, Timing]:
        """Of the baselines in the regime that verdicts are given in, or in the only one that was timed."""
        return self.by_regime.get(self.regime) or next(iter(self.by_regime.values()), {})

    def streams(self) -> dict[str, measure.Timeable]:
        """Return the baselines that were built, in turns."""
        return {name: baseline.turns(self.calls) for name, baseline in self.baselines.items() if baseline.program is not None}

    def programs(self) -> dict[str, measure.Timeable]:
        """Return the baselines that were built."""
        return {name: baseline.program for name, baseline in self.baselines.items() if baseline.program is not None}

    def timed(self, regime: str = "single") -> list[TrustedProgram | TrustedStream]:
        """Return the programs that candidates are timed beside."""
        right = [baseline for baseline in self.baselines.values() if baseline.program is not None and baseline.right]
        return [one.turns(self.calls) if regime == "stream" else one.program for one in right if one.program is not None]

    @property
    def eligible(self) -> list[str]:
        """The names of those that are right."""
        return [name for name, baseline in self.baselines.items() if baseline.right]

    @property
    def best(self) -> str:
        """The name of the fastest one that is right."""
        return min((name for name in self.eligible if name in self.timings), key=lambda name: self.timings[name].median)

    def compare(
        self, program: measure.Timeable, streamed: measure.Timeable | None, seconds: float, rng: random.Random,
        hidden: Callable[[], verify.Shipment] | None = None, check_share: float = 0.1, worthwhile: float = 0.0,
    ) -> Measurement:  # fmt: skip
        """Time a program beside the baselines in every regime. `check_share` is 0 for one of them: they share a worker, whose last output may be
        another's. `streamed`: the same program in turns; None: the task has no stream."""
        ways = {"single": (program, self.programs(), self.overhead)}
        if streamed is not None:
            ways["stream"] = (streamed, self.streams(), self.overhead / self.calls)
        chosen = self.regime if self.regime in ways else "single"
        measured: dict[str, Measurement] = {}
        left_out = dict(self.left_out)
        for name in sorted(ways, key=lambda name: name != chosen):
            if measured and not self.both and measured[chosen].verdict != "FASTER":
                left_out[name] = "only a program that is FASTER is timed in it"
                continue
            way, beside, overhead = ways[name]
            try:
                measured[name] = measure.compare(
                    way, beside, self.judge.fresh, seconds=seconds * (1.0 if name == chosen else regimes.OTHER_SHARE),
                    floor_seconds=self.floor, overhead_seconds=overhead, rng=rng, eligible=self.eligible,
                    hidden_inputs=hidden if name == "single" else None, check_share=check_share, worthwhile=worthwhile,
                )  # fmt: skip
            except TrustedFailed as error:
                if not measured or not self.alive:
                    raise
                left_out[name] = f"the baselines cannot be called so: {str(error)[:200]}"
        return regimes.joined(measured, chosen, left_out)

    def annotated(self, measurement: Measurement) -> Measurement:
        """Return `measurement` with every baseline: those that are not eligible, or were not built, say why. And the roofline's facts.

        Those that there was no time for stand in its conditions instead, so that a run with more time does not take the record for an answer.
        """
        missing = Timing((), float("nan"), float("nan"), float("nan"))
        there = {name: baseline for name, baseline in self.baselines.items() if not baseline.left_out}
        timings = {name: replace(measurement.baselines.get(name, missing), note=baseline.note) for name, baseline in there.items()}
        names = ", ".join(sorted(self.baselines.keys() - there.keys()))
        left_out: dict[str, Scalar] = {"left_out": names} if names else {}
        conditions = {**measurement.conditions, **self.roof, **left_out, "calls_in_a_turn": self.calls}
        return replace(measurement, baselines=timings, conditions=conditions)

    def standing(self, name: str) -> Measurement:
        """Return one baseline's place among the others: the fastest one that is right stands at exactly 1."""
        measured = {regime: self._standing(name, timings) for regime, timings in self.by_regime.items() if name in timings}
        return self.annotated(regimes.joined(measured, self.regime, self.left_out))

    def _standing(self, name: str, timings: Mapping[str, Timing]) -> Measurement:
        best = min((other for other in self.eligible if other in timings), key=lambda other: timings[other].median)
        own, fastest = timings[name], timings[best]
        speedup, low, high = fastest.median / own.median, fastest.low / own.high, fastest.high / own.low
        if name == best:
            speedup = low = high = 1.0
        conditions: dict[str, Scalar] = {"floor_seconds": self.floor, "overhead_seconds": self.overhead, "run": "the baselines beside one another"}
        verdict = measure.judge(low, high)
        return Measurement("time of one call", "s", "lower", own, timings, best, speedup, (low, high), verdict, conditions)

    def release_memory(self) -> None:
        """Have them let go of what the last call left: on a GPU, the next candidate may need the memory."""
        if self.judge.device != "cpu":
            self.judge.forget()
            if self.worker is not None:
                trust(self.worker.release_memory)

    def close(self) -> None:
        """End them."""
        self.judge.close()
        if self.worker is not None:
            self.worker.close()


class TrustedProgram(timed.TimedProgram):
    """A baseline under the timer: its failures are ours."""

    def prepare(self, inputs: verify.Shipment, place: float) -> None:
        trust(lambda: super(TrustedProgram, self).prepare(inputs, place))

    def go(self) -> float:
        return trust(super().go)


class TrustedStream(streamed.StreamedProgram):
    """A baseline in turns: its failures are ours."""

    def prepare(self, inputs: verify.Shipment, place: float) -> None:
        trust(lambda: super(TrustedStream, self).prepare(inputs, place))

    def go(self) -> float:
        return trust(super().go)  # type: ignore[no-any-return]


def trust(step: Callable[[], Any]) -> Any:
    """Return what `step` returns; a WorkerError in it becomes TrustedFailed."""
    try:
        return step()
    except WorkerError as error:
        raise TrustedFailed(f"a trusted process failed: {error}", error.hint) from error


# --- start ------------------------------------------------------------------------------------------------------------------------------


def start(bench: Workbench, candidates: Sequence[Candidate], regime: str = "single", both: bool = False) -> Trusted:
    """Start a judge that can verify; `candidates` are the baselines, which are not built yet.

    Raise one of HARNESS_ERRORS when a process does not do as it should. A task that gives no score says so in `unscored`.
    """
    with bench.beside_others():
        judge = verify.Judge(bench.task, bench.place, bench.limits)
    try:
        with bench.beside_others():
            certificate = judge.certify()
    except BaseException:
        judge.close()
        raise
    baselines = {candidate.proposer.removeprefix(BASELINE): Baseline(candidate) for candidate in candidates}
    return Trusted(judge, baselines, regime=regime, both=both, unscored="" if certificate.scored else certificate.reason)


def add_baselines(bench: Workbench, trusted: Trusted, seconds: float, rng: random.Random) -> None:
    """Build and verify the baselines, and time them for at most `seconds`. They take far longer than a wrong program takes to be found out.

    A task whose original does not pass gives no score. Raises as `start` does.
    """
    counting = _Counting(bench)  # the work is counted in another process meanwhile
    _build_baselines(bench, trusted)
    if not trusted.unscored:
        _time_baselines(bench, trusted, counting, seconds, rng)
    trusted.ready = True


class _Counting(threading.Thread):
    """Counts the task's work in another process; a run that ends early does not wait for it."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(name="warpwright counting", daemon=True)
        self.bench = bench
        self.work: rates.Work | None = None
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with self.bench.lock.host():
                self.work = roofline.work(self.bench.task, min(300.0, self.bench.left), self.bench.folder)
        except Exception as error:  # whoever waits raises it
            self.failure = error

    def result(self) -> rates.Work:
        self.join(None if self.bench.deadline is None else COUNTING_SHARE * self.bench.left)
        if self.failure is not None:
            raise self.failure
        return self.work or rates.Work(0, 0, note="not counted: no time was left within the budget")


def _build_baselines(bench: Workbench, trusted: Trusted) -> None:
    """Build and verify every baseline in one worker. One that ends the worker is left out, and the others are built anew.

    Before a deadline they come in the order of promise: what builds at once, then what is compiled, then what tries kernels out.
    """
    fatal: set[str] = set()
    ordered = sorted(trusted.baselines.items(), key=lambda item: _slowness(item[1].candidate.source) if bench.deadline is not None else 0)
    while trusted.worker is None or not trusted.worker.alive:
        worker = trusted.worker = Worker("baseline", bench.place, bench.limits)
        for name, baseline in ordered:
            if name in fatal or baseline.left_out:
                continue
            seconds, why = _time_for(bench, trusted, baseline)
            if why:
                baseline.left_out = why
                continue
            worker.limits = replace(bench.limits.filled(), build_seconds=seconds, call_seconds=min(seconds, bench.limits.call_seconds))
            bench.tell(f"baseline {name}")
            worker.until = time.monotonic() + seconds if bench.deadline is not None else math.inf
            _build_baseline(bench, trusted.judge, worker, name, baseline)
            worker.limits, worker.until = bench.limits.filled(), math.inf
            if not worker.alive:
                fatal.add(name)
                baseline.program = None
                if seconds < bench.limits.build_seconds and baseline.verdict is not None and baseline.verdict.status == "timeout":
                    baseline.left_out = f"it was not ready within {seconds:.0f} s, the share of the budget that was left for it"
                break
    original = trusted.baselines.get(ORIGINAL)
    if original is not None and not original.right:
        trusted.unscored = f"the original does not pass as a candidate: {original.verdict.reason if original.verdict else ''}"


def _slowness(source: Source) -> int:
    """0 for a program that is built at once, 1 for one that is compiled, 2 for one that tries kernels out."""
    return 0 if COMPILED not in source.text else 2 if any(word in source.text for word in AUTOTUNING) else 1


def _time_for(bench: Workbench, trusted: Trusted, baseline: Baseline) -> tuple[float, str]:
    """Return how long a baseline may take to be built and verified; and why there is no time for it, or ""."""
    slowness, left = _slowness(baseline.candidate.source), bench.left
    if bench.deadline is None or not slowness:
        return bench.limits.build_seconds, ""
    share = COMPILE_SHARE if slowness == 1 else AUTOTUNE_SHARE
    seconds = min(share * left, bench.limits.build_seconds)
    plain = [other for other in trusted.baselines.values() if _slowness(other.candidate.source) == 1 and slowness == 2]
    if any(other.left_out for other in plain):
        return seconds, f"there was no time for the plain compilation, and it takes longer ({left:.0f} s were left)"
    least = LEAST_SECONDS if (bench.folder / "builds" / baseline.candidate.key).exists() else COLD_SECONDS
    least = max([least, *(AUTOTUNE_TAKES * other.seconds for other in plain)])
    return seconds, f"it takes {least:.0f} s or more, and {left:.0f} s of the budget were left for all" if seconds < least else ""


def _build_baseline(bench: Workbench, judge: verify.Judge, worker: Worker, name: str, baseline: Baseline) -> None:
    began = time.monotonic()
    with bench.building(baseline.candidate.source):
        baseline.build, rejected = verify.build(judge, worker, name, baseline.candidate.source)
    if not rejected:
        baseline.build = replace(baseline.build, seconds=_longest_build(bench, baseline.candidate, baseline.build.seconds))
    baseline.program = None if rejected else TrustedProgram(judge, worker, name)
    with bench.beside_others():
        baseline.verdict = rejected or _verdict_of(bench, judge, worker, name, baseline)
        trust(worker.release_memory)
    baseline.seconds = time.monotonic() - began


def _longest_build(bench: Workbench, candidate: Candidate, seconds: float) -> float:
    """Return the longest that the program took to build on this machine: compilers keep what they made, but for a candidate they begin anew."""
    path = bench.folder / "builds" / candidate.key
    with suppress(OSError, ValueError):
        seconds = max(seconds, float(path.read_text()))
    with suppress(OSError):  # a folder that cannot be written to keeps nothing
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{seconds:.3f}")
    return seconds


def _verdict_of(bench: Workbench, judge: verify.Judge, worker: Worker, name: str, baseline: Baseline) -> Verdict:
    """Verify a baseline; before a deadline one that passed in a worker that another one ended is not verified twice."""
    if bench.deadline is None or not baseline.verdict or not baseline.verdict.ok:
        return _verify_baseline(bench.task, judge, worker, name)
    try:
        timed.load_timed_state(judge, worker, name)
    except Rejected as rejected:
        return rejected.verdict
    return baseline.verdict


def _verify_baseline(task: Task, judge: verify.Judge, worker: Worker, name: str) -> Verdict:
    """Verify a baseline; again, some times, after an alarm that can only be a false one. The original is right in any case of that kind."""
    for _ in range(TRIES):
        verdict = verify.verify(judge, worker, name, task)
        if verdict.check not in AGAINST_MALICE or not worker.alive:
            return verdict
    if name == ORIGINAL:
        try:
            timed.load_timed_state(judge, worker, name)
        except Rejected as rejected:
            return rejected.verdict
        return Verdict(True, "ok", f"the check {verdict.check!r} is left aside for the original itself: {verdict.reason}", verdict.case)
    return verdict


def _time_baselines(bench: Workbench, trusted: Trusted, counting: _Counting, seconds: float, rng: random.Random) -> None:
    """Time the baselines beside one another in each regime, the first that is right in the candidate's place; and a call of nothing."""
    assert trusted.worker is not None
    first, seconds, work = trusted.eligible[0], min(BASELINE_SECONDS, seconds, BASELINES_SHARE * bench.left), counting.result()
    bench.tell("timing the baselines")
    with bench.lock.exclusive():
        trusted.floor, trusted.roof = _roof(bench, work)
        trusted.overhead = timed.call_overhead(trusted.worker)
        trusted.by_regime["single"] = trusted.compare(trusted.programs()[first], None, seconds, rng, check_share=0.0).baselines
        _time_streams(bench, trusted, first, seconds, rng)
    trusted.release_memory()


def _time_streams(bench: Workbench, trusted: Trusted, first: str, seconds: float, rng: random.Random) -> None:
    """The same in turns of calls, where every program is timed so. Why a task has none, or its baselines cannot make them, is in `left_out`."""
    median = min(timing.median for name, timing in trusted.by_regime["single"].items() if name in trusted.eligible)
    trusted.calls, why = streamed.calls_of(trusted.judge, trusted.judge.fresh(), median, bench.place)
    if trusted.calls and trusted.both:
        programs = trusted.streams()
        try:
            trusted.by_regime["stream"] = measure.compare(
                programs[first], programs, trusted.judge.fresh, seconds=seconds, floor_seconds=trusted.floor,
                overhead_seconds=trusted.overhead / trusted.calls, rng=rng, eligible=trusted.eligible, check_share=0.0,
            ).baselines  # fmt: skip
        except (TrustedFailed, Rejected) as error:
            if not trusted.alive:
                raise
            trusted.calls, why = 0, f"the baselines cannot be called in turns: {str(error)[:200]}"
    if why:
        trusted.left_out["stream"] = why


def _roof(bench: Workbench, work: rates.Work) -> tuple[float, Mapping[str, Scalar]]:
    """Return the time below which nothing is believed, and the facts that it rests on."""
    try:
        peaks = roofline.peaks(bench.place, bench.folder, seconds=PEAKS_SHARE * bench.left)
    except roofline.RooflineError as error:
        return 0.0, {"floor_note": f"the peaks of {bench.place} could not be measured: {error}"}
    return roofline.floor_seconds(work, peaks), roofline.facts(work, peaks)
