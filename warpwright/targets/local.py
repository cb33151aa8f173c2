"""The evaluator that works with processes on this machine: build, verify, measure, and one Record for whatever happened.

    trusted, kept for the task       a judge, and one worker that holds every baseline (trusted.py, building.py)
    untrusted, one a candidate       a worker that is killed after use

What is cheap comes first: the judge alone verifies a program; the baselines are built, verified and timed when the first has passed, or when their
records are asked for. When a trusted process fails, all are started again, once, for the candidate at hand.
Before a deadline the trusted processes come up while the program is read: the judge, and where the device leaves the host's cores free all of them,
with the first candidate (`prepare`) verified while torch.compile compiles.
A resident evaluator (`Measuring.resident`) starts the next candidate's process in advance: on a GPU it takes a second to come up.
"""

from __future__ import annotations

import logging
import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.base import BASELINE, FAILED, LEFT_OUT, Build, Candidate, Measurement, Record, Source, Status, Task, Verdict, failed, now, target_of
from warpwright.errors import BelowFloor, DeviceFailed, NothingBuilds, WarpwrightError, WorkerError
from warpwright.space import Measuring
from warpwright.targets import pair, slowed, strides
from warpwright.targets.baselines import baselines as baseline_sources
from warpwright.targets.trust import roof, second_process
from warpwright.targets.trust.aside import come_up, end_all
from warpwright.targets.trust.beside import Beside
from warpwright.targets.trust.building import add_baselines, begin_ahead, start
from warpwright.targets.trust.trusted import HARNESS_ERRORS, ORIGINAL, Baseline, Trusted, Workbench, trust
from warpwright.targets.versions import versions
from warpwright.tasks import taskfile
from warpwright.tasks.sources import syntax_tree
from warpwright.timing import measure, regimes
from warpwright.timing.device_lock import DeviceLock
from warpwright.verifier import streamed, timed, verify
from warpwright.verifier.ledger import CONFIRMING_ROUNDS, hidden_work, left_to_the_kernel, still_more
from warpwright.verifier.rejections import Rejected, rejection, verdict_of
from warpwright.workers.limits import Limits
from warpwright.workers.procfs import written_bytes
from warpwright.workers.sandbox import Worker, up

__all__ = ["ORIGINAL", "LocalEvaluator", "versions"]

log = logging.getLogger("warpwright")

TIMING_SHARE, BOTH_SHARE = 0.5, 0.35
"""Of the time that is left before a deadline, the most that one program is timed for, or in its first regime where it is timed in both: a second
block, for a large speed-up, and the other regime add up to nine tenths of that."""

PROGRAM_OF_SPENT = 0.1
"""Of what was spent: at least so long is one program timed where the deadline is not firm."""


AFTER_TIMING, LEAST_TIMING = 0.4, 1.0
"""Seconds: what comes after a timing that has to end in time (the last checks), and what it has in any case."""

HIDDEN_AHEAD = measure.FEWEST_HIDDEN + 2
"""Hidden cases that are drawn before the device is taken alone: as many as a timing calls, but for one in ten of its rounds."""

TAKES_THE_ORIGINAL = "takes the original's forward"
"""In the warning of a generated program whose guard refuses a call (`domains/graph/watch.py`)."""

UNUSUAL_STRIDES = re.compile(r" has strides \([\d, ]*\): pass ")
"""In that warning, where an input lies otherwise than the example's."""


@dataclass
class _Ahead:
    """A program that was verified before it was asked for."""

    worker: Worker
    build: Build
    verdict: Verdict
    still: ExitStack = field(default_factory=ExitStack)
    """It stands still until this is closed."""


class LocalEvaluator:
    """Evaluates candidates of one task on one device. It starts no process before the first evaluation, or before `with` where it is told to
    (`Measuring.ahead`); close it, or use it with `with`."""

    def __init__(
        self,
        task: Task,
        device: str = "cpu",
        measuring: Measuring | None = None,
        limits: Limits | None = None,
        lock: DeviceLock | None = None,
        folder: Path | None = None,
    ) -> None:
        """`folder`: where measured peaks are kept."""
        self.task, self.device = task, device
        measuring = measuring or Measuring()
        self._regime = regimes.declared(measuring.regime, device)
        self.versions: Mapping[str, str] = {**versions(device), "regime": self._regime} if self._regime != "single" else versions(device)
        if measuring.warm_up_seconds != Limits.warm_up_seconds:  # a program that was given up is no answer under another limit
            self.versions = {**self.versions, "warm_up_seconds": f"{measuring.warm_up_seconds:g}"}
        place = "cuda:0" if device == "cuda" else device
        folder = folder or native.cache_folder()
        limits = replace(limits or Limits(warm_up_seconds=measuring.warm_up_seconds), reads=taskfile.reads(task))
        self._bench = Workbench(task, place, limits, lock or DeviceLock(place), folder, measuring.deadline, measuring.tell, measuring.resident)
        self._measuring = measuring
        self._random = random.Random(self._measuring.seed)
        self._trusted: Trusted | None = None
        self._sources: Mapping[str, Source] | None = None
        self._spare: Worker | None = None
        self._compiling: Mapping[str, Beside[Worker]] = {}
        """Processes for compilations, coming up beside the judge."""
        self._begun: Beside[Trusted] | None = None
        """The trusted processes, coming up in a thread of their own."""
        self._expected: list[Candidate] = []
        """Who will be asked for first."""
        self._asked, self._answers = 0.0, 0
        """When the candidate at hand was asked for, and how many have been timed."""
        self._builds: bool | None = None
        """Can anything be built where candidates are? None until that is known."""
        self._unbuildable = ""
        self._ahead: dict[str, _Ahead] = {}
        """Who was verified before that, by key: one that passed, at most, and those before it."""

    # --- the Evaluator protocol -------------------------------------------------------------------------------------------------------

    def baselines(self) -> list[Candidate]:
        """Return the baseline programs; raise UsageError for a name that the device does not have, TaskError for a file that has changed."""
        if self._sources is None:
            chosen = self._measuring.baselines or tuple(filter(None, str(self.task.option("baselines")).split(",")))
            names = (ORIGINAL, *(name for name in chosen if name != ORIGINAL)) if chosen else None
            backward = bool(self.task.option("backward"))
            self._sources = baseline_sources(taskfile.source_text(self.task), self._bench.place, names, backward)
        return [Candidate(source, target_of(self.device), proposer=BASELINE + name) for name, source in self._sources.items()]

    def rebuilt(self, baseline: Candidate) -> Candidate:
        """Return the baseline as it is built where the strides of its results were refused."""
        return strides.rebuilt(baseline)

    def evaluate_baselines(self) -> Iterator[Record]:
        """Yield the record of each baseline. All are `unscored` when the task gives no score, or when its own processes cannot be started."""
        try:
            trusted = self._twice(self._ready)
        except HARNESS_ERRORS as error:
            yield from (self._harness_failure(candidate, error) for candidate in self.baselines())
            return
        for name, baseline in trusted.baselines.items():
            if trusted.unscored:
                yield self._record(baseline.candidate, "unscored", detail=trusted.unscored)
            else:
                yield self._baseline_record(trusted, name, baseline)

    @property
    def works_ahead(self) -> bool:
        """Do the baselines come up while the program is read? Before a deadline, where that takes nothing from the device."""
        return self._measuring.ahead and self._bench.hurries

    def finished_baselines(self) -> Iterator[Record]:
        """Yield the baselines' records if they are timed already."""
        trusted = self._trusted
        if trusted is not None and trusted.ready and not trusted.unscored:
            yield from (self._baseline_record(trusted, name, baseline) for name, baseline in trusted.baselines.items())

    def prepare(self, candidates: Sequence[Candidate]) -> None:
        """Hear what will be evaluated first: it may be verified while there is nothing else to do."""
        self._expected = list(candidates)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield the record of each candidate as soon as it is known."""
        if self._bench.begins_ahead and self._begun is not None:
            self._hold_spare()  # beside the judge
        for candidate in candidates:
            began = self._asked = time.monotonic()
            record = self._evaluate(candidate)
            self._answers += record.measurement is not None
            if self._measuring.resident:
                self._hold_spare()
            yield replace(record, seconds=time.monotonic() - began)

    def compare(self, first: Candidate, second: Candidate) -> Measurement | None:
        """Return how much faster `first` is than `second`, timed beside one another; None when one fails this time. Both have passed before."""
        return self._twice(lambda: self._beside_one_another(self._ready(), first, second))  # type: ignore[no-any-return]

    def close(self) -> None:
        """End every process."""
        if self._begun is not None:
            self._begun.abandon()
            self._begun = None
        self._drop_ahead()
        compiling, self._compiling = self._compiling, {}
        end_all(compiling, self._trusted)
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        if self._trusted is not None:
            self._trusted.close()
            self._trusted = None

    def __enter__(self) -> LocalEvaluator:
        if self._bench.begins_ahead:
            self._compiling = come_up(self._bench, self.baselines())
        if self._measuring.ahead or self._bench.begins_ahead:
            self._begun = Beside(self._come_up, "trusted processes")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the trusted processes --------------------------------------------------------------------------------------------------------

    def _twice(self, step: Callable[[], Any]) -> Any:
        """Do `step`; when a trusted process fails, start all of them anew and do it once more: as often as a case is left out for it besides."""
        failures = self._bench.failures
        while True:
            known = failures.total()
            try:
                return step()
            except DeviceFailed as error:
                if failures.total() == known:
                    break
                log.debug("all that is trusted begins anew, without a case: %s", error)
            except HARNESS_ERRORS as error:
                log.debug("all that is trusted begins anew: %s", error)
                break
            self.close()
        self.close()
        return step()

    def _judging(self) -> Trusted:
        """Return the trusted processes, those that are there if they still live: the judge, and the baselines if they are built."""
        if self._trusted is not None and not self._trusted.alive:
            self.close()
        if self._begun is not None:
            begun, self._begun = self._begun, None
            try:
                return begun.result()
            except BaseException:
                begun.abandon()
                raise
        if self._trusted is None:
            self._start()
        assert self._trusted is not None
        return self._trusted

    def _start(self) -> None:
        """Start the judge."""
        self._bench.tell("the original, in float64")
        both = regimes.always_both(self._measuring.regime, self.device)
        self._trusted = trust(lambda: start(self._bench, self.baselines(), self._regime, both))

    def _ready(self) -> Trusted:
        """Return the trusted processes with the baselines built and timed, unless the task gives no score."""
        trusted = self._judging()
        self._add_baselines(trusted)
        return trusted

    def _add_baselines(self, trusted: Trusted) -> None:
        if not trusted.ready and not trusted.unscored:
            trust(lambda: add_baselines(self._bench, trusted, self._measuring.seconds, self._random, self._verify_ahead))

    # --- before a deadline, beside the reading of the program ---

    def _come_up(self) -> Trusted:
        """Start the judge, and where the host's cores are free the baselines; what follows finds them there."""
        self._start()
        assert self._trusted is not None
        if self._bench.begins_ahead:
            begin_ahead(self._bench, self._trusted, self._compiling)
        if self._bench.hurries:
            self._add_baselines(self._trusted)
            if self._passed_ahead and not self._trusted.complete:  # it may hold memory that a baseline needs: once more without it
                self._drop_ahead()
                self._trusted.close()
                self._start()
                self._add_baselines(self._trusted)
        return self._trusted

    @property
    def _passed_ahead(self) -> bool:
        return any(one.verdict.ok for one in self._ahead.values())

    def _verify_ahead(self) -> None:
        """Build and verify the next program that will be asked for, until one has passed; it stands still until then."""
        trusted = self._trusted
        if trusted is None or not self._expected or self._passed_ahead:
            return
        candidate = self._expected.pop(0)
        if unreadable(candidate.source):
            return
        worker = self._worker()
        try:
            build, verdict = self._verified(trusted, worker, candidate)
            one = self._ahead[candidate.key] = _Ahead(worker, build, verdict)
            if not verdict.ok:
                worker.close()
            else:
                worker.release_memory()
                one.still.enter_context(worker.stopped())
        except BaseException:
            worker.close()
            raise

    def _taken_ahead(self, candidate: Candidate) -> _Ahead | None:
        """Return the program if it was verified ahead, let go again."""
        self._expected = []
        one = self._ahead.pop(candidate.key, None)
        if one is not None:
            one.still.close()
        return one

    def _drop_ahead(self) -> None:
        for one in self._ahead.values():
            one.still.close()
            one.worker.close()
        self._ahead, self._expected = {}, []

    def _ready_beside(self, worker: Worker) -> bool:
        """Have the baselines built while a candidate that has passed stands still in `worker`; return whether it lives on.

        It may hold memory that a baseline needs. So where a baseline could not be built, or the original is not right, the candidate is ended and the
        baselines are built once more without it: a program gains nothing by what it holds. (Of its audit those are inputs twice and outputs three
        times: 32 GB of KernelBench's L1-19, where 13 are timed.)
        """
        assert self._trusted is not None
        worker.release_memory()
        if self._trusted.ready:
            return True
        with worker.stopped():
            trusted = self._ready()
        if trusted.complete:
            return True
        worker.close()
        self.close()
        self._ready()
        return False

    def _hold_spare(self) -> None:
        """Start the process of the next candidate, if there is none that waits."""
        if self._spare is None or not self._spare.alive:
            self._spare = Worker("candidate", self._bench.place, self._bench.limits)

    def _worker(self) -> Worker:
        """Return a process for a candidate: the one that waits, or a new one."""
        return up(self._next_worker)

    def _next_worker(self) -> Worker:
        spare, self._spare = self._spare, None
        if spare is not None and spare.alive:
            return spare
        return Worker("candidate", self._bench.place, self._bench.limits)

    # --- candidates -------------------------------------------------------------------------------------------------------------------

    def _evaluate(self, candidate: Candidate) -> Record:
        """Return the candidate's record, whatever happens: with `base.failed` the place where exceptions become statuses."""
        problem = unreadable(candidate.source)
        if problem:
            return self._record(candidate, "not_built", Verdict(False, "not_built", problem, check="build"), build=Build(False, problem))
        try:
            return self._twice(lambda: self._attempt(self._judging(), candidate))  # type: ignore[no-any-return]
        except (NothingBuilds, *HARNESS_ERRORS) as error:
            return self._harness_failure(candidate, error)
        except WarpwrightError as error:
            return replace(failed(self.task, candidate, self.device, error), versions=self.versions)

    def _attempt(self, trusted: Trusted, candidate: Candidate) -> Record:
        if trusted.unscored:
            return self._record(candidate, "unscored", detail=trusted.unscored)
        ahead = self._taken_ahead(candidate)
        with ahead.worker if ahead is not None else self._worker() as worker:
            build, verdict = (ahead.build, ahead.verdict) if ahead is not None else self._verified(trusted, worker, candidate)
            self._builds = self._builds or build.ok or None
            if verdict.check == "build":
                self._expect_the_original_to_build(trusted)
            if verdict.ok and not self._ready_beside(worker):
                return self._attempt(self._judging(), candidate)
            measurement = None
            if verdict.ok:
                verdict, measurement = self._time(trusted, worker, verdict)
                trusted.release_memory()
        detail = fell_back(build.log) if verdict.ok else ""
        return replace(self._record(candidate, verdict.status, verdict, measurement, build, detail), sandbox=worker.fence)

    def _verified(self, trusted: Trusted, worker: Worker, candidate: Candidate) -> tuple[Build, Verdict]:
        """Build and verify a candidate."""
        self._bench.tell("building")
        with self._bench.building(candidate.source):
            build, rejected = verify.build(trusted.judge, worker, "candidate", candidate.source)
        self._bench.tell("verifying")
        with self._bench.beside_others():
            return build, rejected or verify.verify(trusted.judge, worker, "candidate", self.task)

    def _expect_the_original_to_build(self, trusted: Trusted) -> None:
        """After the first program that could not be built, build the original in its place; raise NothingBuilds where that fails as well.

        There a program has less than the trusted processes have: another user, who may not read the task's files, say. Nobody's program would pass.
        """
        if self._builds is None:
            source = next(one.source for one in self.baselines() if one.proposer == BASELINE + ORIGINAL)
            with self._worker() as worker, self._bench.building(source):
                build, rejected = verify.build(trusted.judge, worker, "candidate", source)
            self._builds = build.ok
            if rejected is not None:
                self._unbuildable = f"the original itself cannot be built where candidates are ({worker.fence}): {rejected.reason}"
        if not self._builds:
            raise NothingBuilds(self._unbuildable)

    def _time(self, trusted: Trusted, worker: Worker, verdict: Verdict) -> tuple[Verdict, Measurement | None]:
        """Time a verified candidate beside the baselines; return the verdict, which a timed call may have changed."""
        single = timed.TimedProgram(trusted.judge, worker, "candidate", puts_off=True)
        turns = streamed.StreamedProgram(trusted.judge, worker, "candidate", trusted.calls, puts_off=True) if trusted.calls else None
        over = False
        try:
            return self._timed(trusted, worker, verdict, single, turns)
        except KeyboardInterrupt:  # or OutOfTime: the judge may be in the middle of an answer, for which nobody waits any more
            over = True
            raise
        finally:
            if not over and any(program.waits_for_judgement for program in (single, turns) if program is not None) and trusted.judge.worker.alive:
                with suppress(*HARNESS_ERRORS):  # an answer was found without them
                    trusted.judge.drop_aside()

    def _timed(
        self, trusted: Trusted, worker: Worker, verdict: Verdict, single: timed.TimedProgram, turns: streamed.StreamedProgram | None
    ) -> tuple[Verdict, Measurement | None]:  # fmt: skip
        """The same with the program as it is called once and in turns."""
        with self._bench.beside_others():
            trusted.judge.draw_ahead(HIDDEN_AHEAD)
        share, worthwhile, interval = TIMING_SHARE if turns is None else BOTH_SHARE, self._measuring.worthwhile, self._measuring.interval
        self._bench.tell("timing")
        written = written_bytes(worker.pid)
        try:
            with self._bench.alone():  # which may have taken long
                seconds = min(self._measuring.seconds, self._bench.share(share, PROGRAM_OF_SPENT))
                within = self._left_within()
                measurement = trusted.compare(
                    single, turns, min(seconds, within), self._random, trusted.judge.hidden, worthwhile=worthwhile, interval=interval, within=within
                )  # fmt: skip
            measurement = self._confirmed(trusted, worker, measurement, single, turns, seconds)
            if wrong := self._judged_later(single, turns):
                return wrong, None
        except Rejected as rejected:
            return rejected.verdict, None
        except BelowFloor as error:
            if wrong := self._judged_later(single, turns):
                return wrong, None
            with self._bench.alone():
                too_high = roof.raised(self._bench, trusted)
            if too_high:  # of a machine that was busy when its peaks were measured
                return self._time(trusted, worker, verdict)
            return Verdict(False, "cheated", str(error), check="below_floor"), None
        except measure.WrongDuringTiming as error:
            return error.verdict, None
        except WorkerError as error:
            return verdict_of(error), None
        hidden = self._hidden_work(trusted, measurement, single, turns) or left_to_the_kernel(written_bytes(worker.pid) - written)
        if hidden:
            return rejection("background", hidden), None
        refused = self._slows_others(trusted, worker, measurement, single, turns)
        if refused is not None:
            return refused, None
        late = verify.afterwards(trusted.judge, worker, "candidate")
        if late is not None:
            return late, None
        roof.doubt_beside(self._bench, trusted, measurement.candidate.median)
        if self._bench.place != "cpu":  # there the program is slowed down alike
            measurement = trusted.earlier.beside(measurement)
        return verdict, trusted.annotated(measurement)

    def _judged_later(self, *programs: timed.TimedProgram | None) -> Verdict | None:
        """Return the first rejection among the timed calls' outputs whose judging was put off; others may use the device meanwhile."""
        until = time.monotonic() + timed.LATER_SECONDS
        try:
            with self._bench.beside_others():
                return next(filter(None, (program.judged_later(until) for program in programs if program is not None)), None)
        except WorkerError as error:
            return verdict_of(error)

    def _left_within(self) -> float:
        """Return the seconds that are left for the timing where the answer should be there within some."""
        if not self._measuring.within or not self._answers:
            return math.inf
        return max(LEAST_TIMING, self._measuring.within - (time.monotonic() - self._asked) - AFTER_TIMING)

    def _confirmed(
        self, trusted: Trusted, worker: Worker, measurement: Measurement, single: timed.TimedProgram, turns: streamed.StreamedProgram | None,
        seconds: float,
    ) -> Measurement:  # fmt: skip
        """Return a measurement, with a small speed-up found beside a second process of the baseline as well, where that is asked for."""
        if not second_process.wanted(self._bench, measurement):
            return measurement
        with worker.stopped():
            beside = second_process.build(self._bench, trusted, measurement.best_baseline)
        if beside is None:
            return second_process.unconfirmed(measurement)
        candidate = turns if turns is not None and measurement.conditions["regime"] == "stream" else single
        with self._bench.alone():
            return second_process.compared(trusted, measurement, candidate, beside, seconds, self._random)

    def _beside_one_another(self, trusted: Trusted, first: Candidate, second: Candidate) -> Measurement | None:
        """Build and verify both, each in a process of its own, and time them in each regime; neither may work outside its calls."""
        judge, bench = trusted.judge, self._bench
        with self._worker() as one, self._worker() as other:
            for worker, candidate in ((one, first), (other, second)):
                with bench.building(candidate.source):
                    _, rejected = verify.build(judge, worker, "candidate", candidate.source)
                with bench.beside_others():
                    if rejected or not verify.verify(judge, worker, "candidate", self.task).ok:
                        return None
            with bench.alone():
                return pair.compare(trusted, one, other, self._measuring.seconds, self._random)

    def _hidden_work(
        self, trusted: Trusted, measurement: Measurement, single: timed.TimedProgram, turns: streamed.StreamedProgram | None
    ) -> str:
        """Return what the candidate worked outside its calls in either regime, or ""."""
        for name, regime in measurement.regimes.items():
            saved = regime.baselines[regime.best_baseline] - regime.candidate
            program, calls = (single, 1) if turns is None or name == "single" else (turns, turns.calls)
            spare = program.spare
            beside = trusted.timed(name)
            hidden = hidden_work(program.ledger, [other.ledger for other in beside], saved * calls, spare)
            if hidden and self._still_works(trusted, program, beside[0], saved * calls, spare):
                return f"{hidden} (regime: {name})"
        return ""

    def _slows_others(
        self, trusted: Trusted, worker: Worker, measurement: Measurement, single: timed.TimedProgram, turns: streamed.StreamedProgram | None
    ) -> Verdict | None:
        """Refuse a program that was FASTER and slows the best baseline down between its own turns, where it is not stopped then."""
        if worker.freezes or measurement.verdict != "FASTER":
            return None
        in_turns = turns is not None and measurement.conditions["regime"] == "stream"
        name = trusted.quickest("stream" if in_turns else "single") or measurement.best_baseline
        baseline = trusted.baselines[name].turns(trusted.calls) if in_turns else trusted.programs()[name]
        candidate = turns if turns is not None and in_turns else single
        try:
            with self._bench.alone():
                longer = slowed.slowed(candidate, baseline, trusted.judge.fresh, worker.stopped, self._random)
        except Rejected as rejected:
            return rejected.verdict
        except WorkerError as error:
            return verdict_of(error)
        return rejection("background", slowed.reason(longer, name)) if longer > 1 else None

    def _still_works(self, trusted: Trusted, program: timed.TimedProgram, beside: timed.TimedProgram, saved: float, spare: float) -> bool:
        """Whether the candidate works more than a baseline before its calls when the two take turns, each on inputs of its own."""
        taken: dict[timed.TimedProgram, list[float]] = {program: [], beside: []}
        try:
            with self._bench.alone():
                for number in range(CONFIRMING_ROUNDS):
                    for one in (program, beside) if number % 2 else (beside, program):
                        one.prepare(trusted.judge.fresh(), self._random.random())
                        one.go()
                        taken[one].append(one.ledger.preparing[-1])
        except (Rejected, WorkerError):
            return True
        return still_more(taken[program], taken[beside], saved, spare)

    # --- records ----------------------------------------------------------------------------------------------------------------------

    def _record(
        self, candidate: Candidate, status: Status, verdict: Verdict | None = None, measurement: Measurement | None = None,
        build: Build | None = None, detail: str = "",
    ) -> Record:  # fmt: skip
        detail = detail or (verdict.reason if verdict is not None else "")
        return Record(self.task, candidate, self.device, status, verdict, measurement, build, detail, 0.0, self.versions, now())

    def _harness_failure(self, candidate: Candidate, error: Exception) -> Record:
        """Return a record that says nothing of the candidate, and that no later run takes for an answer: its versions are no run's."""
        return replace(self._record(candidate, "unscored", detail=str(error)), versions={**self.versions, FAILED: type(error).__name__})

    def _baseline_record(self, trusted: Trusted, name: str, baseline: Baseline) -> Record:
        if baseline.left_out:
            record = self._record(baseline.candidate, "timeout", baseline.verdict, None, baseline.build, baseline.note)
            return replace(record, seconds=baseline.seconds, versions={**self.versions, LEFT_OUT: "no time"})
        verdict = baseline.verdict
        assert verdict is not None
        measurement = trusted.standing(name) if name in trusted.timings else None
        record = self._record(baseline.candidate, verdict.status, verdict, measurement, baseline.build, baseline.note or baseline.remark)
        fence = baseline.program.worker.fence if baseline.program is not None else ""
        return replace(record, seconds=baseline.seconds, sandbox=fence)


def fell_back(log: str) -> str:
    """Return what a program of ours said when it left a call to the original, or "": what is timed is then not its recipe.

    Inputs at unusual strides are the verifier's own, never those that are timed: a program may leave them to the original.
    """
    line = next((line for line in log.splitlines() if TAKES_THE_ORIGINAL in line and not UNUSUAL_STRIDES.search(line)), "")
    return line[line.find("this call") :].strip() if line else ""


def unreadable(source: Source) -> str:
    """Return why a Python program's text is no program, or "": what needs no process to be found out."""
    if source.language != "python":
        return ""
    try:
        syntax_tree(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"{type(error).__name__}: {source.files[0][0]}{where}: {error.msg if isinstance(error, SyntaxError) else error}"
    return ""
