"""Two candidates timed beside one another, in each regime that their task has. Both were verified before."""

from __future__ import annotations

import random
from collections.abc import Sequence

from warpwright.base import Measurement
from warpwright.errors import WorkerError
from warpwright.targets.trust.trusted import Trusted
from warpwright.timing import measure, regimes
from warpwright.timing.overhead import Overhead
from warpwright.verifier.judge_client import Judge
from warpwright.verifier.ledger import hidden_work
from warpwright.verifier.rejections import Rejected
from warpwright.verifier.streamed import StreamedProgram
from warpwright.verifier.timed import TimedProgram, sound
from warpwright.workers.sandbox import Worker

NAMES = ("first", "second")


def compare(trusted: Trusted, first: Worker, second: Worker, seconds: float, rng: random.Random) -> Measurement | None:
    """Return how much faster the program in one worker is than that in another; None where one fails, or works outside its calls.

    The verdict is that of the regime which the task declares, and never FASTER where the first is slower in the other.
    """
    ways = _ways(trusted, (first, second))
    chosen = trusted.regime if trusted.regime in ways else "single"
    measured: dict[str, Measurement] = {}
    left_out = dict(trusted.left_out)
    for name in sorted(ways, key=lambda name: name != chosen):
        if measured and not trusted.both and measured[chosen].verdict not in ("FASTER", "SLOWER"):
            left_out[name] = "only programs of which one is FASTER are timed in it"
            continue
        share = 1.0 if name == chosen else regimes.OTHER_SHARE
        result = _timed(trusted.judge, ways[name], seconds * share, trusted.overhead / (trusted.calls if name == "stream" else 1), rng)
        if result is None:
            return None
        measured[name] = result
    return regimes.joined(measured, chosen, left_out)


def _ways(trusted: Trusted, workers: Sequence[Worker]) -> dict[str, Sequence[TimedProgram]]:
    judge, pairs = trusted.judge, list(zip(workers, NAMES, strict=True))
    ways: dict[str, Sequence[TimedProgram]] = {"single": [TimedProgram(judge, worker, "candidate", name) for worker, name in pairs]}
    if trusted.calls:
        ways["stream"] = [StreamedProgram(judge, worker, "candidate", trusted.calls, name) for worker, name in pairs]
    return ways


def _timed(judge: Judge, programs: Sequence[TimedProgram], seconds: float, overhead: Overhead, rng: random.Random) -> Measurement | None:
    """Return the measurement in one regime; the second program, which is timed in a baseline's place, is checked at the end."""
    one, other = programs
    try:
        measurement = measure.compare(
            one, {NAMES[1]: other}, judge.fresh, seconds=seconds, floor_seconds=0.0, overhead_seconds=overhead, rng=rng, check_share=0.1,
            hidden_inputs=judge.hidden if not isinstance(one, StreamedProgram) else None, sound=sound(judge.device),
        )  # fmt: skip
        last = other.check()
    except (Rejected, measure.WrongDuringTiming, WorkerError):
        return None
    saved = (measurement.baselines[NAMES[1]].median - measurement.candidate.median) * getattr(one, "calls", 1)
    hidden = hidden_work(one.ledger, [other.ledger], saved, one.spare) or hidden_work(other.ledger, [one.ledger], -saved, one.spare)
    return None if hidden or (last is not None and not last.ok) else measurement
