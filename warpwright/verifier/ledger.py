"""What a candidate's process works before its timed calls, while it is made ready for them.

On a CPU it is stopped whenever nothing is asked of it, and its inputs come while it is stopped: what is left is what it can do without them when
it is told to make room, fresh memory touched in advance, say. The parent reads the process's CPU clock around that, without the time for which the
process is let run until its threads sleep (`Worker.calm`: OpenMP's wait busily for up to 12 ms after a call). It is noise in one call and plain in
many, so it is judged once, at the end of a timing.
On CUDA the preparation is timed instead: it ends with a synchronisation, so queued kernels lengthen it. It is longer, by 2 to 20 ms on an H200,
where another process used the GPU last, which is so in every turn of a candidate and in few of the baselines', who share a process: only those few
are compared. And it varies, with what else the driver is asked: what counts of a candidate's turns is the lower bound of their median, over the
later half, and over all by the rule that its times are compared by, whichever is larger: a few slow turns are not work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.timing.sequential import LOOK_ERROR, bound, median_interval
from warpwright.workers.sandbox import Worker

FEWEST = 5
"""Calls below which nothing is said."""

SHARE = 0.5
"""A preparation may take this much more than a baseline's: page faults differ."""

LEAST_SECONDS = 2e-3
"""Less is not told from noise: a flush of the caches alone takes some ten milliseconds."""

GAIN_SHARE = 0.3
"""Hidden work counts from this share of the time that the candidate saves."""


@dataclass
class Ledger:
    """Seconds of work around the calls of one program."""

    worker: Worker
    preparing: list[float] = field(default_factory=list)
    _began: float = 0.0
    _counts: bool = True

    def before_preparing(self, switched: bool = True) -> None:
        """The program's turn begins. `switched`: another process had the turn before."""
        self._counts = switched or self.worker.device == "cpu"
        self._began = self._clock()

    def after_preparing(self) -> None:
        """The inputs are there."""
        if self._counts:
            self.preparing.append(self._clock() - self._began)

    def _clock(self) -> float:
        return self.worker.cpu_clock() - self.worker.calm_seconds if self.worker.device == "cpu" else time.perf_counter()


def hidden_work(candidate: Ledger, baselines: list[Ledger], saved: float, spare: float = 0.0) -> str:
    """Return what the candidate worked outside its calls beyond what is usual, or "".

    `saved`: seconds a call that it seems to save. `spare`: seconds that a preparation of this kind may take more than another by itself.
    """
    if len(candidate.preparing) < FEWEST:
        return ""
    cpu = candidate.worker.device == "cpu"
    worked = (_late if cpu else _surely)(candidate.preparing)
    others = [ledger.preparing for ledger in baselines]
    if not cpu:
        others = [[seconds for other in others for seconds in other]]  # too few of each
    usual = max((_upper(other) for other in others if len(other) >= FEWEST), default=None)
    if usual is None or worked - (1 + SHARE) * usual <= spare + max(LEAST_SECONDS, GAIN_SHARE * saved):
        return ""
    return f"it worked {worked * 1e3:.1f} ms before each timed call, while it was made ready for it; the originals {usual * 1e3:.1f} ms"


MOST_WRITTEN = 32 << 20
"""Bytes that a program may write to files on a disk while it is timed. The kernel writes them out when it likes, in others' turns too: 32 MiB are
some 30 ms of a disk and a few of a core, spread over all of a timing."""


def left_to_the_kernel(written: int) -> str:
    """Return why so many bytes written to files are work that is done in others' turns, or ""."""
    if written <= MOST_WRITTEN:
        return ""
    return f"it wrote {written / 1e6:.0f} MB to files while it was timed, which the kernel puts on the disk while others are timed"


CONFIRMING_ROUNDS = 12
"""Of a candidate's and a baseline's turn, after an alarm."""


def still_more(candidate: Sequence[float], baseline: Sequence[float], saved: float, spare: float = 0.0) -> bool:
    """Whether preparations that took turns, the two programs' one after the other, still differ by more than is usual.

    The first suspicion compares preparations with unlike histories: who had the device before, and how long ago.
    """
    more = [one - (1 + SHARE) * other for one, other in zip(candidate, baseline, strict=True)]
    return bound(more, CONFIRM_ERROR, upper=False) > spare + max(LEAST_SECONDS, GAIN_SHARE * saved)


CONFIRM_ERROR = 0.05
"""One-sided, of the median difference: the alarm was raised before, with an error of its own."""


def _late(seconds: list[float]) -> float:
    """Return the upper quartile of the later half: a program may wait until it believes itself unwatched."""
    return _upper(seconds[len(seconds) // 2 :])


def _surely(seconds: list[float]) -> float:
    """Return what the median surely is not below, of the later half or of all, whichever is more."""
    return max(median_interval(seconds[len(seconds) // 2 :])[0], bound(seconds, LOOK_ERROR / 2, upper=False))


def _upper(seconds: list[float]) -> float:
    """Return the upper quartile: a program's turns follow its own or another's, with little or much time between."""
    return statistics.quantiles(seconds, n=4)[2] if len(seconds) > 1 else seconds[0]
