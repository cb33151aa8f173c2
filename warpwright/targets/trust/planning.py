"""How long a baseline may take to be built and verified before a deadline, and what becomes of one that took longer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from warpwright.base import Source
from warpwright.targets.trust.trusted import AUTOTUNING, ORIGINAL, Baseline, Trusted, Workbench
from warpwright.workers.sandbox import Worker

COMPILED = "torch.compile("
"""In a program's text: its build takes from seconds to minutes, where another's takes milliseconds."""

COMPILE_SHARE, AUTOTUNE_SHARE = 0.4, 0.3
"""Of the time that is left, the most that building and verifying a compiled baseline may take, and one that tries kernels out."""

EXTRA_SHARE = 0.1
"""Of the time that is left, the most that one more way to run the original as it is may take: as long as the original itself took."""

AUTOTUNE_TAKES = 1.5
"""Times as long as the plain compilation takes, at least: 0.9 to 4 on a CPU, 2 to 10 on an H200."""

LEAST_SECONDS, COLD_SECONDS = 4.0, 8.0
"""No compilation is begun with less; the latter where this machine has not compiled the program before. A softmax took 3.6 and 8.3 s of CPU time."""

COMPILING_OF_SPENT, BASELINES_OF_SPENT = 0.5, 0.02
"""Of what was spent: at least so long may a compilation take, and are the baselines timed, where the deadline is not firm."""


@contextmanager
def limited(bench: Workbench, worker: Worker, seconds: float) -> Iterator[None]:
    """Inside, a worker has `seconds` for all that it is asked, if there is a deadline."""
    worker.limits = replace(bench.limits.filled(), build_seconds=seconds, call_seconds=min(seconds, bench.limits.call_seconds))
    worker.until = time.monotonic() + seconds if bench.deadline is not None else math.inf
    try:
        yield
    finally:
        worker.limits, worker.until = bench.limits.filled(), math.inf


def ended(bench: Workbench, baseline: Baseline, seconds: float, what: str = "ready") -> None:
    """Note of a baseline that its worker did not survive it, and whether that was for want of time."""
    baseline.program = None
    if seconds < bench.limits.build_seconds and baseline.verdict is not None and baseline.verdict.status == "timeout":
        baseline.left_out = f"it was not {what} within {seconds:.0f} s, the share of the budget that was left for it"


def slowness_of(source: Source) -> int:
    """0 for a program that is built at once, 1 for one that is compiled, 2 for one that tries kernels out."""
    return 0 if COMPILED not in source.text else 2 if any(word in source.text for word in AUTOTUNING) else 1


def time_for(bench: Workbench, trusted: Trusted, baseline: Baseline, share: float = COMPILE_SHARE) -> tuple[float, str]:
    """Return how long a baseline may take to be built and verified; and why there is no time for it, or "". `share`: of one that is compiled."""
    slowness, left = slowness_of(baseline.candidate.source), bench.left
    if bench.deadline is None:
        return bench.limits.build_seconds, ""
    if not slowness:
        return bench.limits.build_seconds, _no_time_for_more(trusted, baseline, left)
    seconds = min(bench.share(share, COMPILING_OF_SPENT) if slowness == 1 else AUTOTUNE_SHARE * left, bench.limits.build_seconds)
    plain = [other for other in trusted.baselines.values() if slowness_of(other.candidate.source) == 1 and slowness == 2]
    if any(other.left_out for other in plain):
        return seconds, f"there was no time for the plain compilation, and it takes longer ({left:.0f} s were left)"
    least = LEAST_SECONDS if (bench.folder / "builds" / baseline.candidate.key).exists() else COLD_SECONDS
    least = max([least, *(AUTOTUNE_TAKES * other.seconds for other in plain)])
    return seconds, f"it takes {least:.0f} s or more, and {left:.0f} s of the budget were left for all" if seconds < least else ""


def _no_time_for_more(trusted: Trusted, baseline: Baseline, left: float) -> str:
    """Say why there is no time for one more way to run the original as it is, or ""."""
    original = trusted.baselines.get(ORIGINAL)
    if original is None or original is baseline or original.seconds <= EXTRA_SHARE * left:
        return ""
    return f"it takes about {original.seconds:.0f} s, as the original did, and {left:.0f} s of the budget were left for all"
