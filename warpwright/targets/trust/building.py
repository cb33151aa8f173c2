"""How a task's trusted processes come up: the judge first; the baselines once a program has passed, in the order of promise before a deadline.

On a GPU the host's cores are free: there torch.compile compiles the original in a process of its own, beside the other baselines; before a deadline
beside all the rest. Within a plan (a deadline that is not firm: `audit`) it begins as soon as the judge is up, beside the first candidate's
verification, and the device's peaks are measured while it goes on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from warpwright.base import BASELINE, Candidate, Measurement, Task, Timing, Verdict
from warpwright.errors import RooflineError, TrustedFailed
from warpwright.targets import strides
from warpwright.targets.trust import roof
from warpwright.targets.trust.aside import Aside, begin_compiling, take_second
from warpwright.targets.trust.beside import GLANCE_SECONDS, Beside
from warpwright.targets.trust.planning import BASELINES_OF_SPENT, COMPILE_SHARE, ended, limited, slowness_of, time_for
from warpwright.targets.trust.trusted import ORIGINAL, Baseline, Trusted, TrustedProgram, Workbench, trust
from warpwright.timing import measure, rates, roofline
from warpwright.verifier import streamed, timed, verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers import device_yield
from warpwright.workers.sandbox import Worker

BASELINE_SECONDS = 2.0
"""For the run that times the baselines beside one another, before the first candidate: it gives their records, and the length of a turn. What a
candidate is compared with is timed again, beside it."""

BASELINES_OF_ONE = 0.5
"""... and for no more than this share of the time that one candidate is timed for, in each regime: nobody else builds or verifies meanwhile."""

AGAINST_MALICE = frozenset({"background", "patched", "inspection", "forbidden", "source", "late_output"})
"""Checks of how a process behaves. A baseline is ours, and no cheat: there they are false alarms of a busy machine."""

TRIES = 3


RESERVED_SECONDS = 7.0
"""What a baseline that was compiled aside leaves to the rest when it is verified: timing baselines and the first candidate takes 4 to 7 s on an
H200. Verified up to the last second, it was in time itself, and no candidate was (residual networks under 29 s)."""


COUNTING_SHARE, BASELINES_SHARE = 0.2, 0.05
"""Of the time that is left, the most that is waited for the task's work to be counted, and spent on timing the baselines beside one another in a
regime: what a candidate is compared with is timed again."""


TIMES_THE_ORIGINAL = 4.0
"""There what was compiled aside may take so many times as long to be verified as the original took to be built and verified, or longer."""


def start(bench: Workbench, candidates: Sequence[Candidate], regime: str = "single", both: bool = False) -> Trusted:
    """Start a judge that can verify; `candidates` are the baselines, which are not built yet.

    Raise one of HARNESS_ERRORS when a process does not do as it should. A task that gives no score says so in `unscored`.
    """
    with bench.beside_others():
        judge = verify.Judge(bench.task, bench.place, bench.limits, failures=bench.failures)
    try:
        with bench.beside_others():
            certificate = judge.certify()
    except BaseException:
        judge.close()
        raise
    baselines = {candidate.proposer.removeprefix(BASELINE): Baseline(candidate) for candidate in candidates}
    return Trusted(judge, baselines, regime=regime, both=both, unscored="" if certificate.scored else certificate.reason)


Meanwhile = Callable[[], None]
"""Does one thing that is useful while somebody else compiles, if there is one."""


def add_baselines(bench: Workbench, trusted: Trusted, seconds: float, rng: random.Random, meanwhile: Meanwhile = lambda: None) -> None:
    """Build and verify the baselines, and time them for at most `seconds`. They take far longer than a wrong program takes to be found out.

    A task whose original does not pass gives no score. Raises as `start` does.
    """
    counting = None if bench.counts_in_judge else _count_beside(bench)  # the work is counted in another process meanwhile
    _probe_ahead(bench, trusted)
    try:
        _build_baselines(bench, trusted, meanwhile)
        if not trusted.unscored:
            bench.tell("the roofline")
            work = _work(bench, counting) if counting else roofline.work(bench.task, folder=bench.folder, count=trusted.judge.count)
            _time_baselines(bench, trusted, work, seconds, rng)
    finally:
        trusted.end_probe()
    trusted.ready = True


def begin_ahead(bench: Workbench, trusted: Trusted, ready: Mapping[str, Beside[Worker]]) -> None:
    """Begin what takes long and disturbs nobody who verifies: compilations, and the process that measures the device's peaks.

    `ready`: processes for compilations that come up beside the judge (`come_up`), by baseline.
    """
    if not trusted.unscored:
        trusted.begun = begin_compiling(bench, trusted, ready)
        _probe_ahead(bench, trusted)


def _probe_ahead(bench: Workbench, trusted: Trusted) -> None:
    """Have a process come up that can measure the device's peaks, where they are not known and there are cores to spare."""
    if trusted.probe is None and bench.has_free_cores and not bench.firm:
        trusted.probe = roofline.probe_ahead(bench.place, bench.folder)


def _measure_peaks(bench: Workbench, trusted: Trusted) -> None:
    """Measure the peaks of the device while torch.compile has the host's cores, so that nobody waits for that later.

    A compilation uses the device for a few calls; of many calls the best one counts.
    """
    probe, trusted.probe = trusted.probe, None
    if probe is not None:
        bench.tell("the peaks of the device")
        with bench.alone(), suppress(RooflineError):  # it is asked once more by whoever needs the answer, and says why there is none
            roofline.peaks(bench.place, bench.folder, probe=probe)


def _count_beside(bench: Workbench) -> Beside[rates.Work]:
    """Begin to count the task's work in another process."""

    def count() -> rates.Work:
        with bench.lock.host():
            return roofline.work(bench.task, min(300.0, bench.left), bench.folder)

    return Beside(count, "counting")


def _work(bench: Workbench, counting: Beside[rates.Work]) -> rates.Work:
    """Return what was counted; a run that ends early does not wait for it."""
    if counting.wait(bench.share(COUNTING_SHARE)):
        return counting.result()
    return rates.Work(0, 0, note="not counted: no time was left within the budget")


def _build_baselines(bench: Workbench, trusted: Trusted, meanwhile: Meanwhile) -> None:
    """Build and verify every baseline: in one worker, but for those that are compiled aside.

    Before a deadline they come in the order of promise: what builds at once, then what is compiled, then what tries kernels out, which is begun only
    if there is time. What tries kernels out is never built beside a compilation: it keeps the quickest by its own clock, which a busy machine may
    mislead, and a weaker baseline flatters every candidate. (The first right answer of a server on an H200 waits 10 s of 54 for the compilation.)
    """
    ordered = sorted(trusted.baselines.items(), key=lambda item: slowness_of(item[1].candidate.source) if bench.deadline is not None else 0)
    aside, trusted.begun = trusted.begun if trusted.begun is not None else begin_compiling(bench, trusted), None
    last = [item for item in ordered if aside and slowness_of(item[1].candidate.source) > 1]
    first = [item for item in ordered if item[0] not in aside and item not in last]
    tried: dict[str, Worker] = {}
    _build_together(bench, trusted, first, tried)
    if aside and (bench.begins_ahead or bench.resident):
        _measure_peaks(bench, trusted)
    for name, one in aside.items():
        _end_aside(bench, trusted, name, one, meanwhile)
    _build_together(bench, trusted, [*first, *last], tried)
    original = trusted.baselines.get(ORIGINAL)
    if original is not None and not original.right:
        trusted.unscored = f"the original does not pass as a candidate: {original.verdict.reason if original.verdict else ''}"


def _build_together(bench: Workbench, trusted: Trusted, chosen: Sequence[tuple[str, Baseline]], tried: dict[str, Worker]) -> None:
    """Build and verify those that were not tried in the common worker yet. One that ends it is left out, and the others are built anew."""
    fatal: set[str] = set()
    while True:
        if trusted.worker is None or not trusted.worker.alive:
            trusted.worker = Worker("baseline", bench.place, bench.limits)
        worker = trusted.worker
        for name, baseline in chosen:
            if name in fatal or baseline.left_out or tried.get(name) is worker:
                continue
            tried[name] = worker
            seconds, why = time_for(bench, trusted, baseline)
            if why:
                baseline.left_out = why
                continue
            bench.tell(f"baseline {name}")
            with limited(bench, worker, seconds):
                _build_baseline(bench, trusted.judge, worker, name, baseline)
            if not worker.alive:
                fatal.add(name)
                ended(bench, baseline, seconds)
                break
        else:
            return


# --- beside the rest -------------------------------------------------------------------------------------------------------------------


def _end_aside(bench: Workbench, trusted: Trusted, name: str, one: Aside, meanwhile: Meanwhile) -> None:
    """Wait for a baseline that is compiled aside, and verify it."""
    baseline = trusted.baselines[name]
    if not one.building.wait(0.0):
        bench.tell(f"waiting for baseline {name}")
    while not one.building.wait(GLANCE_SECONDS):
        if bench.hurries:
            meanwhile()
    worker, rejected, second = one.building.result()
    began = time.monotonic()
    bench.tell(f"baseline {name}")
    if worker.alive:
        device_yield.living.add(worker)
        original = trusted.baselines.get(ORIGINAL, baseline)
        least = 1.0 if bench.firm else TIMES_THE_ORIGINAL * original.seconds
        seconds = max(min(COMPILE_SHARE * bench.left, bench.left - RESERVED_SECONDS), least)
        with limited(bench, worker, seconds):
            _judge_baseline(bench, trusted.judge, worker, name, baseline, rejected)
        if not worker.alive:
            ended(bench, baseline, seconds, "verified")
    else:
        baseline.verdict = rejected
        ended(bench, baseline, one.seconds)
    baseline.seconds += time.monotonic() - began
    if second is not None:
        take_second(trusted, second, name)


def _build_baseline(bench: Workbench, judge: verify.Judge, worker: Worker, name: str, baseline: Baseline) -> None:
    began = time.monotonic()
    with bench.building(baseline.candidate.source):
        baseline.build, rejected = verify.build(judge, worker, name, baseline.candidate.source)
    _judge_baseline(bench, judge, worker, name, baseline, rejected)
    baseline.seconds = time.monotonic() - began


def _judge_baseline(bench: Workbench, judge: verify.Judge, worker: Worker, name: str, baseline: Baseline, rejected: Verdict | None) -> None:
    """Verify a baseline that was built, or was not: `rejected`."""
    assert baseline.build is not None
    if not rejected:
        baseline.build = replace(baseline.build, seconds=_longest_build(bench, baseline.candidate, baseline.build.seconds))
    baseline.program = None if rejected else TrustedProgram(judge, worker, name)
    bench.tell(f"verifying baseline {name}")
    with bench.beside_others():
        baseline.verdict = rejected or _verdict_of(bench, judge, worker, name, baseline)
        trust(worker.release_memory)
    if name != ORIGINAL and baseline.refused is None and worker.alive and strides.refused_for_strides(baseline.verdict):
        _build_in_strides(bench, judge, worker, name, baseline)


def _build_in_strides(bench: Workbench, judge: verify.Judge, worker: Worker, name: str, baseline: Baseline) -> None:
    """Build a baseline that was refused for its results' strides anew, so that they are the original's, and verify it.

    One that cannot be built so stands as it was: timed, and refused.
    """
    plain, first = baseline.candidate, baseline.build
    baseline.refused, baseline.candidate = baseline.verdict, strides.rebuilt(plain)
    bench.tell(f"baseline {name}, in the original's strides")
    with bench.building(baseline.candidate.source):
        baseline.build, rejected = verify.build(judge, worker, name, baseline.candidate.source)
    if rejected is None or not worker.alive:
        _judge_baseline(bench, judge, worker, name, baseline, rejected)
        return
    baseline.candidate, baseline.not_in_strides = plain, rejected.reason
    with bench.building(plain.source):
        _, again = verify.build(judge, worker, name, plain.source)
    baseline.build, baseline.verdict = first, again or baseline.refused
    baseline.program = None if again else TrustedProgram(judge, worker, name)


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
        return _verify_baseline(bench.task, judge, worker, name, bench.hurries)
    try:
        timed.load_timed_state(judge, worker, name)
    except Rejected as rejected:
        return rejected.verdict
    return baseline.verdict


def _verify_baseline(task: Task, judge: verify.Judge, worker: Worker, name: str, hurried: bool = False) -> Verdict:
    """Verify a baseline; again, some times, after an alarm that can only be a false one. The original is right in any case of that kind.

    The original goes the whole way of a candidate: what refuses it would refuse any. Of the others, which are ours, the values count; of the original
    too before a deadline, where a candidate that is refused for no fault of its own costs less than the time.
    """
    for _ in range(TRIES):
        verdict = verify.verify(judge, worker, name, task, ours=name != ORIGINAL or hurried)
        if verdict.check not in AGAINST_MALICE or not worker.alive:
            return verdict
    if name == ORIGINAL:
        try:
            timed.load_timed_state(judge, worker, name)
        except Rejected as rejected:
            return rejected.verdict
        return Verdict(True, "ok", f"the check {verdict.check!r} is left aside for the original itself: {verdict.reason}", verdict.case)
    return verdict


def _time_baselines(bench: Workbench, trusted: Trusted, work: rates.Work, seconds: float, rng: random.Random) -> None:
    """Time the baselines beside one another in each regime, the first that is right in the candidate's place; and a call of nothing."""
    assert trusted.worker is not None
    first = trusted.eligible[0]
    seconds = min(BASELINE_SECONDS, BASELINES_OF_ONE * seconds, bench.share(BASELINES_SHARE, BASELINES_OF_SPENT))
    with bench.alone():
        bench.tell("timing the baselines")
        roof.find(bench, trusted, work)
        trusted.overhead = timed.overheads(trusted.worker)
        alone = _stands_alone(trusted, first)
        measured = trusted.compare(trusted.programs()[first], None, seconds, rng, check_share=0.0, without="" if alone else first)
        trusted.by_regime["single"] = _timings(first, measured)
        roof.doubt(bench, trusted)
        _time_streams(bench, trusted, first, seconds, rng)
    trusted.release_memory()


def _time_streams(bench: Workbench, trusted: Trusted, first: str, seconds: float, rng: random.Random) -> None:
    """The same in turns of calls, where every program is timed so. Why a task has none, or its baselines cannot make them, is in `left_out`."""
    median = min(timing.median for name, timing in trusted.by_regime["single"].items() if name in trusted.eligible)
    trusted.calls, why = streamed.calls_of(trusted.judge, trusted.judge.fresh(), median, bench.place)
    if trusted.calls and trusted.both:
        try:
            trusted.calls = _filled(bench, trusted, rng)
            programs = trusted.streams()
            beside = programs if _stands_alone(trusted, first) else {name: one for name, one in programs.items() if name != first}
            trusted.by_regime["stream"] = _timings(first, measure.compare(
                programs[first], beside, trusted.judge.fresh, seconds=seconds, floor_seconds=trusted.floor,
                overhead_seconds=trusted.overhead / trusted.calls, rng=rng, eligible=trusted.eligible, check_share=0.0,
                sound=timed.sound(bench.place),
            ))  # fmt: skip
        except (TrustedFailed, Rejected) as error:
            if not trusted.alive:
                raise
            trusted.calls, why = 0, f"the baselines cannot be called in turns: {str(error)[:200]}"
    if why:
        trusted.left_out["stream"] = why


def _stands_alone(trusted: Trusted, first: str) -> bool:
    """Whether a baseline has none that is right beside it to be timed with, so that it is timed beside itself; or has a second process, which counts
    for it."""
    return not set(trusted.eligible) - {first} or first in trusted.doubles


def _timings(first: str, measured: Measurement) -> Mapping[str, Timing]:
    """Return the baselines' timings of a run in which the first had the candidate's place. (Timed twice it took a quarter of the run.)"""
    return measured.baselines if first in measured.baselines else {first: measured.candidate, **measured.baselines}


def _filled(bench: Workbench, trusted: Trusted, rng: random.Random) -> int:
    """Return how many calls make a turn, by what they take in one: back to back a call may take a quarter of its time from idle with empty caches.

    (A softmax of 60 us had turns of 42 calls by its single time: 2.5 ms in place of 10, of which a cold beginning takes some 0.4.)
    """
    quickest = float("inf")
    for program in trusted.timed("stream"):
        for _ in range(2):
            program.prepare(trusted.judge.fresh(), rng.random())
            quickest = min(quickest, program.go())
    seconds = max(quickest - (trusted.overhead / trusted.calls).of(quickest), 1e-6)
    return max(trusted.calls, streamed.calls_of(trusted.judge, trusted.judge.fresh(), seconds, bench.place)[0])
