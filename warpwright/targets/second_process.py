"""A second process of the best baseline, for speed-ups that are no larger than what two processes of one program may differ by.

Two processes of one program differ for as long as they live: where their memory lies, which cores they were put on. The baselines' process serves
all candidates of a session; if it is a slow one, each of them looks faster. On an H200 a softmax of 20 us, as single calls, was 1.04 to 1.31 times
slower in one process than in eight others, and once FASTER in seven runs. Most of that was the core (`verifier/timed.py`). What is left may be found
in a small speed-up only, which is claimed where a second process gives it, too.
"""

from __future__ import annotations

import random
from dataclasses import replace

from warpwright.base import Measurement
from warpwright.errors import TrustedFailed
from warpwright.targets.trusted import Trusted, TrustedProgram, TrustedStream, Workbench
from warpwright.timing import measure
from warpwright.verifier import timed, verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers.sandbox import Worker

CONFIRM_BELOW = 1.25
"""A larger speed-up is no difference between processes: 66 ratios of two processes, on one core in each pass, lay between 0.93 and 1.17."""

SHARE = 0.5
"""Of the time of the first comparison."""

LEAST_SECONDS = 30.0
"""Before a deadline: the process takes some seconds to come up, and more where the baseline is compiled."""


def wanted(bench: Workbench, measurement: Measurement) -> bool:
    """Whether a speed-up has to be found beside a second process: on a GPU, where a call of microseconds is mostly the host's work."""
    there_is_time = bench.left > LEAST_SECONDS
    return bench.has_free_cores and there_is_time and measurement.verdict == "FASTER" and measurement.speedup < CONFIRM_BELOW


def build(bench: Workbench, trusted: Trusted, name: str) -> TrustedProgram | None:
    """Return a baseline in a process of its own, which is kept for the candidates to come; None if it did not come up."""
    if name in trusted.second and trusted.second[name].worker.alive:
        return trusted.second[name]
    source = trusted.baselines[name].candidate.source
    worker = Worker("baseline", bench.place, bench.limits)
    trusted.aside.append(worker)
    try:
        with bench.building(source):
            _, rejected = verify.build(trusted.judge, worker, name, source)
        if rejected:
            return None
        timed.load_timed_state(trusted.judge, worker, name)
    except Rejected:
        return None
    trusted.second[name] = TrustedProgram(trusted.judge, worker, name)
    return trusted.second[name]


def compared(
    trusted: Trusted, measurement: Measurement, candidate: timed.TimedProgram, second: TrustedProgram, seconds: float, rng: random.Random
) -> Measurement:
    """Time a candidate beside a second process of its best baseline; return the measurement with what both allow."""
    name, calls = measurement.best_baseline, getattr(candidate, "calls", 1)
    beside = second if calls == 1 else TrustedStream(trusted.judge, second.worker, second.entry, calls)
    try:
        found = measure.compare(
            candidate, {name: beside}, trusted.judge.fresh, seconds=SHARE * seconds, floor_seconds=0.0, overhead_seconds=trusted.overhead / calls,
            rng=rng,
        )  # fmt: skip
    except TrustedFailed:
        return measurement
    return agreed(measurement, found)


def agreed(measurement: Measurement, second: Measurement) -> Measurement:
    """Return a measurement that claims no more than a second one does: the smaller speed-up, with an interval that holds both."""
    low, high = min(measurement.interval[0], second.interval[0]), max(measurement.interval[1], second.interval[1])
    conditions = {**measurement.conditions, "speedup_over_second_process": second.speedup}
    speedup = min(measurement.speedup, second.speedup)
    if second.verdict == "FASTER":
        return replace(measurement, speedup=speedup, interval=(low, high), conditions=conditions)
    remark = f"beside a second process of {measurement.best_baseline} it is {second.speedup:.3f}x: two processes of one program may differ by as much"
    conditions["note"] = "; ".join(filter(None, [str(conditions.get("note", "")), remark]))
    return replace(measurement, verdict="UNSURE", speedup=speedup, interval=(low, high), conditions=conditions)
