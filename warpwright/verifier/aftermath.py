"""What a worker does after it has answered: nothing on a CPU, where it is stopped; on a GPU, as far as the CPU time of its thread tells."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from warpwright.verifier.judge_client import Comparison, Judge
from warpwright.verifier.rejections import exported
from warpwright.workers.sandbox import Worker

SETTLED_SECONDS, SETTLED_SHARE = 0.0015, 0.25  # CPU time that the answering thread may use before it sleeps again, and share of the call
QUIET_SECONDS = 0.05
QUIET_SHARE, LOOKS = 0.5, 3


def worked_on(worker: Worker) -> str:
    """Return what went on after the answer of a worker that is not stopped then, or "". Once may be chance: stolen time counts as CPU time."""
    if worker.freezes:
        return ""
    busy = worker.settle()
    if busy > _settled(worker):
        return f"after the call had answered, its thread worked on for {busy:.4f} s"
    return ""


def _settled(worker: Worker) -> float:
    return SETTLED_SECONDS + SETTLED_SHARE * worker.call_seconds


WORKING_CALLS, WORKING_ERROR, APART_SECONDS = 48, 0.01, 0.01
"""Calls of the program and of nothing, each; how often as many of the program's stand out by chance; and the pause between two pairs."""


def works_on(worker: Worker, call: Callable[[bool], None]) -> str:
    """Return what shows that a program goes on after its answers, once that was suspected, or "". `call` makes one: of the program, or of nothing.

    On a busy host time that is stolen from a thread counts as its own, in spells of tens of milliseconds: four calls running may meet one. So calls
    of the program and of nothing take turns, over half a second and more, and the former have to stand out (Fisher's exact test).
    """
    seen = {True: 0, False: 0}
    limit = _settled(worker)
    for _ in range(WORKING_CALLS):
        time.sleep(APART_SECONDS)
        for own in (True, False):
            call(own)
            seen[own] += worker.settle() > limit
    if by_chance(seen[True], seen[False], WORKING_CALLS) > WORKING_ERROR:
        return ""
    return (
        f"after {seen[True]} of {WORKING_CALLS} calls had answered, its thread worked on for more than {limit:.4f} s; "
        f"after {seen[False]} of as many calls of nothing"
    )


def by_chance(more: int, fewer: int, of: int) -> float:
    """Return how likely so many or more of `of` events are the first kind's, with `more + fewer` among twice `of`, if the two kinds are alike."""
    total = more + fewer
    ways = [math.comb(of, one) * math.comb(of, total - one) for one in range(more, min(total, of) + 1)]
    return sum(ways) / math.comb(2 * of, total)


LATE_SECONDS, LATE_CALLS, IDLE_SHARE = 20e-6, 8, 4.0
"""On a GPU: a wait for the device after a call, when it had been waited for; how many calls are asked; so many times as long as after nothing."""


def launched_late(worker: Worker, call: Callable[[bool], None]) -> str:
    """Return why kernels were launched when a call was over, or "". `call` makes one, held: of the program, or of nothing.

    A long wait after one call is a suspicion. Then calls of the program and of nothing take turns: a busy host or GPU delays both.
    """
    if not worker.waits or worker.waits[-1] < LATE_SECONDS:
        return ""
    waits: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * LATE_CALLS):
        call(number % 2 == 1)
        waits[number % 2 == 1].append(worker.waits[-1])
    own, idle = min(waits[True]), max(waits[False])
    if own < LATE_SECONDS or own < IDLE_SHARE * idle:
        return ""
    return f"when the call was over and the device was idle, it worked on for {own * 1e6:.0f} us and more, in {LATE_CALLS} calls running"


FILES_OF_A_CONTEXT = 12
"""Of the driver's, that tell of a context whose thread has another name: one opens 16 on an H200. None of 65 honest programs opened any, 15 of which
use streams, graphs, NVRTC or Triton in 236 verifications."""


def second_context(worker: Worker) -> str:
    """Return what shows that a process has made a CUDA context for itself, or "": no wait for the device of torch's context waits for its kernels."""
    before = worker.contexts_before
    if before is None or not before.threads:
        return ""
    now = worker.contexts()
    if before.files and not now.files and worker.alive:
        return "the process does not let its open files be seen any more, as it did before the program"
    if now.threads <= before.threads:
        files = f"the process has {now.files} files of the driver open, {before.files} before the program: it has made a CUDA context for itself"
        return files if now.files >= before.files + FILES_OF_A_CONTEXT else ""
    return f"the process has {now.threads} CUDA contexts, {before.threads} before the program: no wait for torch's waits for what is done in another"


def goes_on(worker: Worker) -> str:
    """Return what a stopped worker does when it is let run without being asked for anything, or "". Many threads wait busily at first."""
    if not worker.freezes:
        return ""
    for _ in range(LOOKS):
        seen = worker.activity(QUIET_SECONDS)
        if seen.cpu_seconds <= QUIET_SHARE * seen.seconds:
            return ""
    return f"after the call had returned the process used {seen.cpu_seconds:.3f} s of CPU time within {seen.seconds:.3f} s"


def explained(judge: Judge, worker: Worker, comparison: Comparison) -> Comparison:
    """Return why values are wrong, if the reason is that they are still being computed: let the worker run for a moment and look again."""
    if comparison.check not in ("values", "cached", "stale_state", "non_finite"):
        return comparison
    worker.activity(QUIET_SECONDS)
    if judge.unchanged(exported(worker)):
        return comparison
    text = "when the call answered, its output was not yet written; it changed while nothing was asked of the process"
    return Comparison("background", text, comparison.excess, comparison.errors, comparison.original)
