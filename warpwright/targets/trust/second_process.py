"""A second process of the best baseline, for speed-ups that are no larger than what two processes of one program may differ by.

Two processes of one program differ for as long as they live: where their memory lies, which cores they were put on. The baselines' process serves
all candidates of a session; if it is a slow one, each of them looks faster. On an H200 a softmax of 20 us, as single calls, was 1.04 to 1.31 times
slower in one process than in eight others, and once FASTER in seven runs. Most of that was the core (`verifier/timed.py`). What is left may be found
in a small speed-up only, which is claimed where a second process gives it, too. On a CPU, of 39 single comparisons of a softmax of 0.6 ms with
itself, in two pairs of processes, two were FASTER, by 1.09x and 1.11x: both of the same pair, whose ratios were all above 1.

There is one such process, for every baseline that one is asked for of. A resident evaluator on a GPU has it come up with the first baselines, the
compiled ones in it; from then on a candidate is timed beside both processes at once (`doubles.py`). Elsewhere it comes up when a small speed-up has
been found, which is then found again beside it. (Begun so late it took 10 s of an answer on an H200.)
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

from warpwright.base import Comparison, Measurement
from warpwright.errors import JudgeFailed, TrustedFailed, WorkerError
from warpwright.targets.trust import doubles
from warpwright.targets.trust.trusted import Trusted, TrustedProgram, TrustedStream, Workbench
from warpwright.timing import measure
from warpwright.verifier import timed, verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers.sandbox import Worker

CONFIRM_BELOW = doubles.ENOUGH

SHARE = 0.5
"""Of the time of the first comparison."""

TIMES_ITS_BUILD = 4.0
"""Of the seconds that the baseline took to come up the first time: where less is left, what was measured stands as it is."""

BUILD_SHARE = 0.25
"""Of what is left before a deadline: the most that the process may take to come up."""

LEAST_BUILD = 5.0
"""Seconds to come up, beside those of TIMES_ITS_BUILD, where a deadline that is not firm is over."""

TRIES = 3
"""In a row, each for another candidate, until it counts as one that does not come up: one candidate may have held the memory that it needs."""

LEAST_SECONDS = 30.0
"""Before a deadline that is firm: the process takes some seconds to come up, and more where the baseline is compiled."""


def wanted(bench: Workbench, measurement: Measurement) -> bool:
    """Whether a speed-up has to be found beside a second process: on a GPU, where a call of microseconds is mostly the host's work, and on a CPU
    where no budget runs out: a search has its programs to try. Not if it was found beside both already."""
    host = bench.place == "cpu"
    there_is_time = not bench.firm or (bench.left > LEAST_SECONDS and not host)
    small = measurement.verdict == "FASTER" and measurement.speedup < CONFIRM_BELOW
    return (bench.has_free_cores or host) and there_is_time and small and not doubles.beside_a_second_process(measurement)


def build(bench: Workbench, trusted: Trusted, name: str) -> TrustedProgram | None:
    """Return a baseline in the second process, which is kept for the candidates to come; None if it did not come up there.

    One that has died since, for want of memory beside a candidate, say, comes up anew: else small speed-ups would stand unconfirmed from then on.
    """
    trusted.second = {
        one: program for one, program in trusted.second.items() if (program.worker.alive if program is not None else trusted.failed[one] >= TRIES)
    }
    known = trusted.second.get(name)
    baseline = trusted.baselines[name]
    if name in trusted.second or (bench.firm and bench.left < TIMES_ITS_BUILD * baseline.seconds):
        return known
    trusted.second[name] = None
    worker: Worker | None = None
    try:
        worker = _process(bench, trusted)
        worker.until = time.monotonic() + max(BUILD_SHARE * bench.left, 0.0 if bench.firm else TIMES_ITS_BUILD * baseline.seconds + LEAST_BUILD)
        with bench.building(baseline.candidate.source):
            _, rejected = verify.build(trusted.judge, worker, name, baseline.candidate.source)
        if rejected is None:
            take(trusted, worker, name)
    except (Rejected, WorkerError, JudgeFailed):
        pass  # a process of ours: it says nothing of the candidate
    finally:
        trusted.failed[name] = trusted.failed[name] + 1 if trusted.second[name] is None else 0
        if worker is not None:
            worker.until = math.inf
            if not any(one is not None for one in trusted.second.values()):
                worker.close()
    return trusted.second[name]


def take(trusted: Trusted, worker: Worker, name: str) -> None:
    """Have a baseline that was built in the second process ready to be timed there. Raises Rejected, and what a worker does."""
    timed.load_timed_state(trusted.judge, worker, name)
    trusted.second[name] = TrustedProgram(trusted.judge, worker, name)


def _process(bench: Workbench, trusted: Trusted) -> Worker:
    """Return the second process, a new one where there is none."""
    worker = trusted.second_worker
    if worker is None or not worker.alive:
        worker = trusted.second_worker = Worker("baseline", bench.place, bench.limits)
        trusted.aside.append(worker)
    return worker


def compared(
    trusted: Trusted, measurement: Measurement, candidate: timed.TimedProgram, second: TrustedProgram, seconds: float, rng: random.Random
) -> Measurement:
    """Time a candidate beside a second process of its best baseline; return the measurement with what both allow."""
    name, calls = measurement.best_baseline, getattr(candidate, "calls", 1)
    beside = second if calls == 1 else TrustedStream(trusted.judge, second.worker, second.entry, calls)
    try:
        found = measure.compare(
            candidate, {name: beside}, trusted.judge.fresh, seconds=SHARE * seconds, floor_seconds=0.0, overhead_seconds=trusted.overhead / calls,
            rng=rng, sound=timed.sound(trusted.judge.device),
        )  # fmt: skip
    except TrustedFailed:
        trusted.end_second()  # a lost device stays lost
        return unconfirmed(measurement)
    return agreed(measurement, found)


def unconfirmed(measurement: Measurement) -> Measurement:
    """Return a measurement beside which no second process came up: it stands, and says so."""
    return _noted(measurement, f"no second process of {measurement.best_baseline} came up to confirm it")


def _noted(measurement: Measurement, remark: str) -> Measurement:
    note = "; ".join(filter(None, [str(measurement.conditions.get("note", "")), remark]))
    return replace(measurement, conditions={**measurement.conditions, "note": note})


def agreed(measurement: Measurement, second: Measurement) -> Measurement:
    """Return a measurement that claims no more than a second one does: the smaller speed-up, with an interval that holds both."""
    low, high = min(measurement.interval[0], second.interval[0]), max(measurement.interval[1], second.interval[1])
    speedup = min(measurement.speedup, second.speedup)
    holds = second.verdict == "FASTER" or (second.verdict == "UNSURE" and second.interval[0] > 1.0)  # half the time gives a wider interval
    verdict: Comparison = "FASTER" if holds else "UNSURE"
    over = f"speedup_over_{measurement.best_baseline}"
    conditions = {**measurement.conditions, "speedup_over_second_process": second.speedup}
    conditions |= {over: min(float(conditions[over]), second.speedup)} if over in conditions else {}
    own = str(conditions.get("regime", "single"))
    regimes = {
        name: replace(one, speedup=speedup, interval=(low, high), verdict=verdict) if name == own else one
        for name, one in measurement.regimes.items()
    }
    both = replace(measurement, verdict=verdict, speedup=speedup, interval=(low, high), conditions=conditions, regimes=regimes)
    if holds:
        return both
    beside = f"{second.speedup:.3f}x [{second.interval[0]:.3f}, {second.interval[1]:.3f}]"
    return _noted(both, f"beside a second process of {measurement.best_baseline} it is {beside}: two processes of one program may differ by as much")
