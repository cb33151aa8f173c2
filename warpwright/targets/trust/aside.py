"""Baselines that are compiled in a process of their own, beside the rest: on a GPU, where the host's cores are free for that."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from warpwright.base import BASELINE, Candidate, Verdict
from warpwright.errors import JudgeFailed, OutOfTime, TrustedFailed, WorkerError
from warpwright.targets.trust import second_process
from warpwright.targets.trust.beside import Beside
from warpwright.targets.trust.planning import limited, slowness_of, time_for
from warpwright.targets.trust.trusted import Baseline, Trusted, Workbench
from warpwright.verifier import verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers import device_yield
from warpwright.workers.sandbox import Worker

ASIDE_SHARE = 0.6
"""Of the time that is left, the most that a compilation may take which runs beside the rest and keeps nobody from anything: what comes after it takes
5 to 8 s on an H200. (`planning.COMPILE_SHARE` is of those that do not.)"""

COMPILERS_MODULES = ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.async_compile")
"""What torch.compile imports when it is first called: 8 s on an H200 while the rest came up beside it."""

LOAD_SECONDS = 30.0
"""For that; who takes longer does it in the build."""


def come_up(bench: Workbench, candidates: Sequence[Candidate]) -> dict[str, Beside[Worker]]:
    """Have a process come up, with the compiler's modules, for each baseline that is compiled aside: beside the judge, which takes as long."""

    def start() -> Worker:
        worker = Worker("baseline", bench.place, bench.limits)
        worker.greet()
        worker.request("load", LOAD_SECONDS, modules=list(COMPILERS_MODULES))
        return worker

    names = [one.proposer.removeprefix(BASELINE) for one in candidates if slowness_of(one.source) == 1]
    return {name: Beside(start, f"process of {name}") for name in names}


def end_all(ready: Mapping[str, Beside[Worker]], trusted: Trusted | None) -> None:
    """End the processes that are still coming up, and those that nobody took."""
    for one in ready.values():
        one.abandon()
        with suppress(Exception, OutOfTime):  # it did not come up
            if one.wait(0.0) and (trusted is None or one.result() not in trusted.aside):
                one.result().close()


@dataclass(frozen=True)
class Aside:
    """A baseline that is compiled in a worker of its own."""

    building: Beside[tuple[Worker, Verdict | None, Worker | None]]
    """Gives the worker, and the rejection if the build failed; and a second process that has built it, too."""
    seconds: float
    """What it may take."""


def begin_compiling(bench: Workbench, trusted: Trusted, ready: Mapping[str, Beside[Worker]] | None = None) -> dict[str, Aside]:
    """Begin to compile what torch.compile takes long for, where the host's cores are free for that: on a GPU."""
    begun: dict[str, Aside] = {}
    if not bench.has_free_cores:
        return begun
    for name, baseline in trusted.baselines.items():
        if slowness_of(baseline.candidate.source) != 1 or baseline.program is not None:
            continue
        seconds, why = time_for(bench, trusted, baseline, ASIDE_SHARE)
        if why:
            baseline.left_out = why
            continue
        step = partial(compile_one, bench, trusted, name, baseline, seconds, (ready or {}).get(name))
        begun[name] = Aside(Beside(step, name), seconds)
        trusted.compiling.append(begun[name].building)
    return begun


def compile_one(
    bench: Workbench, trusted: Trusted, name: str, baseline: Baseline, seconds: float, ready: Beside[Worker] | None
) -> tuple[Worker, Verdict | None, Worker | None]:
    began = time.monotonic()
    second = Beside(partial(_come_up_second, bench, trusted), f"second process of {name}") if bench.resident else None
    worker = _worker_for(bench, ready)
    trusted.aside.append(worker)
    if not trusted.judge.worker.alive:
        worker.close()
    device_yield.living.discard(worker)  # it goes on while another task is timed, as a build on a GPU does
    try:
        with limited(bench, worker, seconds):
            baseline.build, rejected = verify.build(trusted.judge, worker, name, baseline.candidate.source)
    finally:
        baseline.seconds = time.monotonic() - began
    return worker, rejected, _built_twice(bench, trusted, second, name, baseline, rejected) if second is not None else None


def _come_up_second(bench: Workbench, trusted: Trusted) -> Worker:
    """Have the second process come up, with the compiler's modules, beside the compilation in the first: what that finds out is kept on the disk."""
    worker = Worker("baseline", bench.place, bench.limits)
    device_yield.living.discard(worker)
    trusted.aside.append(worker)
    if not trusted.judge.worker.alive:
        worker.close()
    try:
        worker.greet()
        worker.request("load", LOAD_SECONDS, modules=list(COMPILERS_MODULES))
    except BaseException:
        worker.close()
        raise
    return worker


TIMES_THE_FIRST = 2.0
"""Of the seconds that a baseline was compiled in: the most that the second process may take, which finds that on the disk. Who waits for one waits
for both."""


def _built_twice(
    bench: Workbench, trusted: Trusted, coming: Beside[Worker], name: str, baseline: Baseline, rejected: Verdict | None
) -> Worker | None:
    """Return the second process with a compiled baseline built in it; None where that fails: then it is built when it is asked for."""
    worker: Worker | None = None
    try:
        worker = coming.result()
        worker.thread = threading.get_ident()
        if rejected is None:
            with limited(bench, worker, TIMES_THE_FIRST * baseline.seconds + second_process.LEAST_BUILD):
                _, rejected = verify.build(trusted.judge, worker, name, baseline.candidate.source)
        if rejected is None:
            return worker
    except (WorkerError, JudgeFailed, OSError):  # it ended (JudgeFailed: before the build), hung, or had no room: the baseline itself has been built
        pass
    except BaseException:
        _close(worker)
        raise
    _close(worker)
    return None


def _close(worker: Worker | None) -> None:
    if worker is not None:
        worker.close()


def _worker_for(bench: Workbench, ready: Beside[Worker] | None) -> Worker:
    """Return the process that came up for a compilation, or a new one."""
    if ready is not None:
        with suppress(WorkerError):
            worker = ready.result()
            worker.thread = threading.get_ident()
            return worker
        if ready.abandoned:
            raise TrustedFailed("the evaluator was closed while a process came up")
    return Worker("baseline", bench.place, bench.limits)


def take_second(trusted: Trusted, worker: Worker, name: str) -> None:
    """Have the second process ready for the timing."""
    baseline = trusted.baselines[name]
    if not baseline.right or baseline.in_strides:  # there it was built as it was refused: it is built again when it is asked for
        worker.close()
        return
    trusted.second_worker = worker
    device_yield.living.add(worker)
    with suppress(Rejected, WorkerError, JudgeFailed):  # then it is built when it is asked for
        second_process.take(trusted, worker, name)
