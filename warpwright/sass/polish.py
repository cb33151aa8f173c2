"""The last polish: a search of so many seconds over the schedule of one finished kernel, and the judgement that says whether it is kept.

    polish(cubin, harness, "kernel_name", 30.0)  ->  Polished(kept, speedup, interval, schedule, reason)

Whatever is in the way (no GPU, no disassembler, a kernel whose bits differ from run to run) is a reason in words, never an exception: the kernel
stays as the compiler made it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import domains
from warpwright.base import Budget, Task
from warpwright.deadline import out_of_time
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.domain import MOST_REGISTERS, build
from warpwright.errors import WarpwrightError
from warpwright.loop import Course, Outcome, optimize
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import Judging, fastest, first_accepted, percent, span

SEARCH = "screen"
FINAL_SECONDS = 4.0
"""Of the time, at most, that the judgement is kept; a third of a short one."""

Open = Callable[[Task, str, Measuring], AbstractContextManager[Any]]
"""Opens an evaluator that judges (judging.Judging): CubinEvaluator, but in tests."""


@dataclass(frozen=True)
class Polished:
    """What came of one kernel."""

    kernel: str
    kept: bool
    reason: str
    """What was seen, in words."""
    speedup: float = 1.0
    interval: tuple[float, float] = (1.0, 1.0)
    """99 %, on warm inputs, from a process of its own."""
    cold: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Speed-up and 99 % interval of single launches on cold caches."""
    schedule: str = ""
    """The text of the schedule, where it is kept."""
    candidates: int = 0
    failed: int = 0

    def __str__(self) -> str:
        return f"{self.kernel}: {self.reason}"


def polish(
    cubin: Path, harness: Path, kernel: str, seconds: float, device: str = "cubin:0", evaluator: Open = CubinEvaluator, seed: int = 0,
    proposals: int | None = None,
) -> Polished:  # fmt: skip
    """Search a kernel's schedule for `seconds`, the final measurement included, or by so many candidates; keep one that is proven faster.

    The seconds begin when all stands ready. Once on a machine the edits' C++ is built before, for some ten seconds: counted in, it left a search of
    ten seconds one candidate on an H200.
    """
    if not disassembly.is_available():
        return Polished(kernel, False, "left as it is: there is no nvdisasm (pip install 'warpwright[sass]')")
    try:
        task = domains.describe(cubin, {"harness": str(harness), "kernel": kernel, "registers": MOST_REGISTERS})
        build()
        with evaluator(task, device, Measuring(seed=seed)) as opened:
            space = domains.space(task, "cubin")
            end = time.monotonic() + seconds
            budget = Budget(max(0.1, seconds - min(FINAL_SECONDS, seconds / 3)), proposals)
            outcome = optimize(task, space, opened, SEARCH, budget, course=Course(seed=seed))
            return _chosen(kernel, outcome, opened, end)
    except WarpwrightError as error:
        return Polished(kernel, False, f"left as it is: {error}")
    except BaseException as error:
        if not out_of_time(error):
            raise
        return Polished(kernel, False, "left as it is: the time was over")


def _chosen(kernel: str, outcome: Outcome, evaluator: Judging, end: float) -> Polished:
    """Return the fastest schedule that the judgement accepts."""
    failed = sum(record.status != "ok" for record in outcome.records)
    seen = f"{outcome.proposals} candidates"
    found = first_accepted(evaluator, fastest(outcome.records), stress=0.5, until=end)
    refused = "".join(f"; refused: {reason}" for reason in found.refusals)
    if found.candidate is None or found.judgement is None:
        reason = f"left as it is: nothing was proven faster among {seen}{refused}"
        return Polished(kernel, False, reason, candidates=outcome.proposals, failed=failed)
    it = found.judgement
    gain = f"{percent(it.speedup)} ({span(it.interval)}) warm, {percent(it.cold[0])} ({span(it.cold[1:])}) cold, of {seen}"
    reason = f"{gain}, {it.launches} launches bit by bit as before{refused}"
    return Polished(kernel, True, reason, it.speedup, it.interval, it.cold, found.candidate.source.text, outcome.proposals, failed)
