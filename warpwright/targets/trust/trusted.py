"""The trusted processes of a task on this machine: a judge, and one worker that holds every baseline.

The baselines are verified like candidates: one that is not right (TF32 where full precision was asked for) is timed for the table, with the
reason, but is not what candidates are measured against.
"""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warpwright.base import IN_STRIDES, Build, Candidate, Measurement, Scalar, Source, Task, Timing, Verdict
from warpwright.deadline import Deadline
from warpwright.errors import TrustedFailed, WorkerError
from warpwright.space import Tell, silent
from warpwright.targets.earlier import Earlier
from warpwright.targets.trust import doubles
from warpwright.targets.trust.beside import END_SECONDS, Beside
from warpwright.timing import measure, rates, regimes, roofline
from warpwright.timing.device_lock import DeviceLock
from warpwright.timing.overhead import Overhead
from warpwright.verifier import streamed, timed, verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers.device_yield import yielding
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker

ORIGINAL = "eager"
"""The baseline that is the original itself: it is always among those that a candidate is timed beside."""


HARNESS_ERRORS = (TrustedFailed, verify.JudgeFailed)
"""What says nothing of the candidate at hand."""

SPARE_CORES = 4
"""With as many cores, one that compiles is not missed by those who verify and time on a GPU."""

AUTOTUNING = ("max-autotune", "autotune(", "cudnn.benchmark")
"""In a program's text: its build tries kernels out on the device."""


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
    resident: bool = False
    """Will more candidates come? Then processes are held ready for them."""
    failures: Counter[str] = field(default_factory=Counter)
    """How often a case of each distribution has cost a judge its device."""

    @property
    def has_free_cores(self) -> bool:
        """Is the device another one than the host's cores, and are there some to spare?"""
        return self.place != "cpu" and (os.cpu_count() or 1) >= SPARE_CORES

    @property
    def hurries(self) -> bool:
        """Is as much done at once as the machine can, because there is a deadline and it can?"""
        return self.firm and self.has_free_cores

    @property
    def begins_ahead(self) -> bool:
        """Does what takes long begin before a program has passed, because there is a plan and the host's cores are free?"""
        return self.deadline is not None and not self.deadline.firm and self.has_free_cores

    @property
    def counts_in_judge(self) -> bool:
        """Is the task's work counted by the judge, which has loaded it? Another process takes 3 s of the processor's time, where that is short."""
        return self.hurries or (self.deadline is not None and not self.firm and not self.has_free_cores)

    @property
    def firm(self) -> bool:
        """Does everything end when the time is over? Else what a verdict needs is done all the same."""
        return self.deadline is not None and self.deadline.firm

    @property
    def left(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return self.deadline.left if self.deadline is not None else math.inf

    def share(self, of_left: float, of_spent: float = math.inf) -> float:
        """Return the seconds for what a verdict needs: a part of the time that is left, or, if the deadline is not firm, of what was spent if that is
        more. Who has waited a minute for the original in float64 waits for its compilation, too."""
        left = of_left * self.left
        return left if self.deadline is None or self.firm else max(left, of_spent * (time.monotonic() - self.deadline.began))

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        """Hold the device beside others, to build and verify; give way to whoever wants to time."""
        with self.lock.shared() as held, yielding(held):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the device alone, to time; the processes that were timed leave the cores for that again."""
        with self.lock.exclusive():
            try:
                yield
            finally:
                timed.sent_back(self.place)

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
    refused: Verdict | None = None
    """Of its first build, where that was refused for its results' strides: `candidate` is then the one with the original's (`targets/strides.py`)."""
    not_in_strides: str = ""
    """Why that one could not be built: `candidate` is the first one then."""
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
        why = f"{'not eligible' if self.program is not None else 'not built'}: {self.verdict.reason}"
        if self.not_in_strides:
            return f"{why}; it could not be built with the original's strides: {self.not_in_strides}"
        return f"{why}; this is of its second build, with the original's strides: {self.refused.reason}" if self.refused is not None else why

    @property
    def in_strides(self) -> bool:
        """Is it a second build, whose results are copied to the original's strides?"""
        return self.refused is not None and not self.not_in_strides

    @property
    def remark(self) -> str:
        """What there is to say of one that is right."""
        if not self.right or self.refused is None:
            return ""
        return f"its results are copied to the original's strides, within its time; without that it was refused: {self.refused.reason}"


@dataclass
class Trusted:
    """The trusted processes of the task, and what was learned from them."""

    judge: verify.Judge
    baselines: dict[str, Baseline]
    worker: Worker | None = None
    """That of the baselines, once they are built."""
    aside: list[Worker] = field(default_factory=list)
    """Those of baselines that are compiled beside the rest, one each, and `second_worker`."""
    second: dict[str, TrustedProgram | None] = field(default_factory=dict)
    """Baselines in a second process (`second_process.py`); None for one that could not be built there."""
    failed: Counter[str] = field(default_factory=Counter)
    """How often in a row a baseline could not be built there."""
    second_worker: Worker | None = None
    """That process."""
    compiling: list[Beside[Any]] = field(default_factory=list)
    """What compiles there."""
    begun: Mapping[str, Any] | None = None
    """By name, if that was begun before a program had passed."""
    probe: roofline.Probe | None = None
    """The process that can measure the device's peaks, where they are not known."""
    ready: bool = False
    """Are the baselines built, verified and timed?"""
    unscored: str = ""
    overhead: Overhead = field(default_factory=lambda: Overhead.constant(0.0))
    floor: float = 0.0
    work: rates.Work = field(default_factory=lambda: rates.Work(0, 0))
    """What every correct program of the task moves."""
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
    earlier: Earlier = field(default_factory=Earlier)
    by_regime: dict[str, Mapping[str, Timing]] = field(default_factory=dict)
    """The baselines, timed beside one another, in each regime."""

    @property
    def complete(self) -> bool:
        """Was every baseline built that there was time for, and is the original right?"""
        return not self.unscored and all(baseline.program is not None or baseline.left_out for baseline in self.baselines.values())

    @property
    def alive(self) -> bool:
        """Do they all run?"""
        return self.judge.worker.alive and all(worker.alive for worker in self.workers)

    @property
    def workers(self) -> list[Worker]:
        """Those of the baselines; of one that did not survive its build there is none."""
        held = [baseline.program.worker for baseline in self.baselines.values() if baseline.program is not None]
        return [*([self.worker] if self.worker is not None else []), *(worker for worker in self.aside if worker in held)]

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
    def doubles(self) -> dict[str, TrustedProgram]:
        """The baselines that are right and have a second process which lives, as they are there."""
        return {name: one for name, one in self.second.items() if one is not None and one.worker.alive and self.baselines[name].right}

    @property
    def second_workers(self) -> list[Worker]:
        """The second process, and those of other baselines that were compiled beside the first ones."""
        return list({id(one): one for one in (self.second_worker, *(one.worker for one in self.second.values() if one)) if one is not None}.values())

    def end_second(self) -> None:
        """End the second process; what was built in it counts as never asked for."""
        built = {name: one for name, one in self.second.items() if one is not None}
        for worker in self.second_workers:
            worker.close()
        self.second = {name: None for name in self.second if name not in built}

    @property
    def eligible(self) -> list[str]:
        """The names of those that are right."""
        return [name for name, baseline in self.baselines.items() if baseline.right]

    def quickest(self, regime: str) -> str:
        """Return the name of the one that was fastest in a regime when there was no candidate beside it, or "" before they were timed."""
        timings = self.by_regime.get(regime, {})
        return min((name for name in self.eligible if name in timings), key=lambda name: timings[name].median, default="")

    def compare(
        self, program: measure.Timeable, streamed: measure.Timeable | None, seconds: float, rng: random.Random,
        hidden: Callable[[], verify.Shipment] | None = None, check_share: float = 0.1, worthwhile: float = 0.0,
        interval: float = 0.0, within: float = math.inf, without: str = "",
    ) -> Measurement:  # fmt: skip
        """Time a program beside the baselines in every regime. `check_share` is 0 for one of them: they share a worker, whose last output may be
        another's. `streamed`: the same program in turns; None: the task has no stream. `interval`: of the regime that the verdict is given in.
        `within`: the seconds for all of it. `without`: a baseline that is left out, for it is the program.

        A baseline that has a second process is timed in both (`doubles.py`)."""
        second = self.doubles
        ways: dict[str, tuple[measure.Timeable, Mapping[str, measure.Timeable], Overhead]] = {
            "single": (program, doubles.with_doubles(_but(self.programs(), without), second), self.overhead)
        }
        if streamed is not None:
            turns = {name: TrustedStream(self.judge, one.worker, one.entry, self.calls) for name, one in second.items()}
            ways["stream"] = (streamed, doubles.with_doubles(_but(self.streams(), without), turns), self.overhead / self.calls)
        enough = {name + doubles.MARK: doubles.ENOUGH for name in second}
        chosen = self.regime if self.regime in ways else "single"
        measured: dict[str, Measurement] = {}
        left_out, end = dict(self.left_out), time.monotonic() + within
        for name in sorted(ways, key=lambda name: name != chosen):
            if measured and not self.both and measured[chosen].verdict != "FASTER":
                left_out[name] = "only a program that is FASTER is timed in it"
                continue
            way, beside, overhead = ways[name]
            follows = regimes.OTHER_SHARE / (1 + regimes.OTHER_SHARE) if name == chosen and self.both and len(ways) > 1 else 0.0
            try:
                measured[name] = doubles.folded(measure.compare(
                    way, beside, self.judge.fresh, seconds=seconds * (1.0 if name == chosen else regimes.OTHER_SHARE),
                    floor_seconds=self.floor, overhead_seconds=overhead, rng=rng, eligible=[*self.eligible, *enough],
                    hidden_inputs=hidden if name == "single" else None, check_share=check_share, worthwhile=worthwhile,
                    interval=interval if name == chosen else 0.0, enough=enough, sound=timed.sound(self.judge.device),
                    until=end - follows * within if math.isfinite(within) else math.inf, kept=self.quickest(name),
                ))  # fmt: skip
            except TrustedFailed as error:
                if second and self.alive:  # the second process may be what failed, or what took the memory: it is done without
                    self.end_second()
                    return self.compare(program, streamed, seconds, rng, hidden, check_share, worthwhile, interval, end - time.monotonic())
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
        copied = ",".join(name for name, baseline in there.items() if baseline.remark)
        in_strides: dict[str, Scalar] = {IN_STRIDES: copied} if copied else {}
        conditions = {**measurement.conditions, **self.roof, **left_out, **in_strides, "calls_in_a_turn": self.calls}
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
        conditions: dict[str, Scalar] = {"floor_seconds": self.floor, "overhead_seconds": self.overhead.empty}
        conditions["run"] = "the baselines beside one another"
        verdict = measure.judge(low, high)
        return Measurement("time of one call", "s", "lower", own, timings, best, speedup, (low, high), verdict, conditions)

    def release_memory(self) -> None:
        """Have them let go of what the last call left: on a GPU, the next candidate may need the memory."""
        if self.judge.device != "cpu":
            self.judge.forget()
            for worker in self.workers:
                trust(worker.release_memory)
            for worker in self.second_workers:
                with suppress(WorkerError):  # it is done without
                    worker.release_memory()

    def close(self) -> None:
        """End them."""
        if not all(one.wait(0.0) for one in self.compiling):
            for worker in self.aside:
                worker.signal(signal.SIGKILL)
            for one in self.compiling:
                one.wait(END_SECONDS)
        self.judge.close()
        for worker in filter(None, [self.worker, *self.aside]):
            worker.close()
        self.end_probe()

    def end_probe(self) -> None:
        """End the process that can measure the peaks, if it has not answered."""
        probe, self.probe = self.probe, None
        if probe is not None and probe.poll() is None:
            with probe:
                probe.kill()


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


def _but(programs: Mapping[str, measure.Timeable], without: str) -> dict[str, measure.Timeable]:
    return {name: program for name, program in programs.items() if name != without}


def trust(step: Callable[[], Any]) -> Any:
    """Return what `step` returns; a WorkerError in it, and what would be a candidate's rejection, become TrustedFailed."""
    try:
        return step()
    except WorkerError as error:
        raise TrustedFailed(f"a trusted process failed: {error}", error.hint) from error
    except Rejected as error:
        raise TrustedFailed(f"a trusted process failed: {error.verdict.reason}") from error
