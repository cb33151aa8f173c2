"""The device regime: how much faster one kernel of a few microseconds is than another, timed on the device itself, within one process.

    span    many launches of one program, captured as one graph, between two events of the device
    round   A B B A or B A A B, queued at once, so that the device never waits for the host: slow drift falls on both alike
    epoch   rounds on graphs that were captured anew, in memory laid out anew, in random order; its value is the median of its rounds' log-ratios

Where a program's memory lies in the caches makes two copies of one kernel differ by a per cent, for as long as they lie there. So memory is laid out
anew for each epoch, and it is the epochs that the interval is made from: pairs of one epoch would agree with one another and be wrong together. It is
looked at again and again, as `sequential` permits, until it decides.

Nothing is checked here, and the programs run in the caller's process: it is for code that was verified elsewhere, in domains whose programs are no
Python files.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from warpwright.base import Comparison
from warpwright.timing.sequential import LOOK_ERROR, bound, next_look

BAND = 1.005
"""SAME: the interval lies within 1/BAND .. BAND."""

SPAN_SECONDS = 500e-6
"""Of one span: an event is good to about half a microsecond, which is 0.1 % of it."""

FEWEST, MOST = 8, 1000
"""Launches in a span."""

ROUNDS = 3
"""In an epoch."""

WARM_SECONDS = 0.05
"""Of launches before the first epoch: clocks rise under load."""

Launch = Callable[[int], Any]
"""Puts call number i on the device's queue; it may use it to choose among inputs that rotate."""

Program = Callable[[int], Launch]
"""Gives the launch of an epoch: it may allocate outputs or load its code anew for each, or always give the same."""


class Clock(Protocol):
    """A device that launches are captured for, queued on and timed by."""

    def capture(self, launch: Launch, calls: int, rng: Random) -> Callable[[], None]:
        """Return what queues `calls` launches, numbered from 0, in memory laid out anew."""
        ...

    def timed(self, spans: list[Callable[[], None]]) -> list[float]:
        """Queue all spans, wait, and return the seconds of each by the device's own clock."""
        ...


@dataclass(frozen=True)
class Ratio:
    """How much faster the first program is than the second."""

    speedup: float
    interval: tuple[float, float]
    """95 % over all looks together."""
    verdict: Comparison
    first: float
    second: float
    """Seconds of one launch: medians over the epochs."""
    epochs: tuple[float, ...]
    """The speed-up in each."""
    calls: int
    """Launches in a span."""
    seconds: float
    """That the comparison took."""


def compare(
    first: Program, second: Program, clock: Clock, *, seconds: float = 3.0, band: float = BAND, calls: int = 0, rng: Random | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Ratio:  # fmt: skip
    """Time two programs beside one another for at most about `seconds`; the verdict is against `band`. `calls`: launches in a span, if not 0."""
    rng = rng or Random()
    began = now()
    calls = calls or calls_of(first, second, clock, rng)
    epochs: list[tuple[float, float, float]] = []
    held: list[Any] = []
    look_at = next_look(0)
    while True:
        spans, value = _epoch(first, second, clock, calls, len(epochs), rng)
        held = [*held[-1:], spans]  # the last one's memory is still taken when the next is laid out
        epochs.append(value)
        over = now() - began >= seconds and len(epochs) >= next_look(0)
        if len(epochs) < look_at and not over:
            continue
        look_at = next_look(len(epochs))
        logs = [epoch[0] for epoch in epochs]
        low, high = (bound(logs, LOOK_ERROR / 2, upper) for upper in (False, True))
        verdict = _judged(math.exp(low), math.exp(high) if high < 700 else math.inf, band)
        if verdict != "UNSURE" or over:
            low, high = max(low, min(logs)), min(high, max(logs))
            one, other = (statistics.median(epoch[at] for epoch in epochs) for at in (1, 2))
            interval, each = (math.exp(low), math.exp(high)), tuple(math.exp(value) for value in logs)
            return Ratio(math.exp(statistics.median(logs)), interval, verdict, one, other, each, calls, now() - began)


def _judged(low: float, high: float, band: float) -> Comparison:
    if low >= 1 / band and high <= band:
        return "SAME"
    return "FASTER" if low > band else "SLOWER" if high < 1 / band else "UNSURE"


def _epoch(first: Program, second: Program, clock: Clock, calls: int, number: int, rng: Random) -> tuple[Any, tuple[float, float, float]]:
    """Return the spans of an epoch, and (log-ratio, seconds of a launch of the first, of the second)."""
    programs = [first, second]
    spans: dict[int, Callable[[], None]] = {}
    for which in rng.sample((0, 1), 2):
        spans[which] = clock.capture(programs[which](number), calls, rng)
    orders = [rng.choice(((0, 1, 1, 0), (1, 0, 0, 1))) for _ in range(ROUNDS)]
    warm = rng.sample((0, 1), 2)
    taken = clock.timed([spans[which] for which in (*warm, *(which for order in orders for which in order))])[len(warm) :]
    ratios, each = [], (list[float](), list[float]())
    for at, order in enumerate(orders):
        both = [0.0, 0.0]
        for which, seconds in zip(order, taken[4 * at : 4 * at + 4], strict=True):
            both[which] += seconds
            each[which].append(seconds / calls)
        ratios.append(math.log(both[1] / both[0]))
    return spans, (statistics.median(ratios), statistics.median(each[0]), statistics.median(each[1]))


def calls_of(first: Program, second: Program, clock: Clock, rng: Random) -> int:
    """Return how many launches make a span, from the slower of two programs; the device is warm afterwards."""
    slowest = 0.0
    for program in (first, second):
        span = clock.capture(program(0), FEWEST, rng)
        best = min(clock.timed([span] * 4))
        for _ in range(20):
            repeats = max(1, min(1000, round(WARM_SECONDS / 20 / max(best, 1e-7))))
            best = min(best, *clock.timed([span] * repeats))
        slowest = max(slowest, best / FEWEST)
    return max(FEWEST, min(MOST, round(SPAN_SECONDS / max(slowest, 1e-9))))


# --- clocks ----------------------------------------------------------------------------------------------------------------------------


PAD_BYTES = 32 << 20
"""At most so much lies before what a graph allocates: another piece each time."""


class CudaClock:
    """A CUDA device through torch: launches on torch's current stream are captured as a CUDA graph, spans are timed by events.

    A launch of one's own has to go to `torch.cuda.current_stream().cuda_stream`. Nothing that another thread of a program does may go on while it is
    captured: the capture fails in place of leaving it out.
    """

    def __init__(self, device: str = "cuda:0") -> None:
        import torch

        self._torch = torch
        self.device = torch.device(device)

    def capture(self, launch: Launch, calls: int, rng: Random) -> Callable[[], None]:
        """Return what replays the graph of `calls` launches; the graph lives as long as that."""
        from warpwright.timing.capturing import _recording as recording

        torch = self._torch
        with torch.cuda.device(self.device):
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                launch(0)  # handles and workspaces are made in the first call
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with recording(graph, errors="global"):
                pad = torch.empty(rng.randrange(512, PAD_BYTES), dtype=torch.uint8, device=self.device)
                for number in range(calls):
                    launch(number)

        def span(pad: Any = pad) -> None:  # which it keeps in its place
            graph.replay()

        return span

    def timed(self, spans: list[Callable[[], None]]) -> list[float]:
        """Queue all spans with an event before each and after the last, so that nothing stands between them."""
        torch = self._torch
        with torch.cuda.device(self.device):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(len(spans) + 1)]
            events[0].record()
            for span, event in zip(spans, events[1:], strict=True):
                span()
                event.record()
            torch.cuda.synchronize()
            return [one.elapsed_time(other) * 1e-3 for one, other in itertools.pairwise(events)]


class HostClock:
    """The processor itself, for programs that are done when they return: the same comparison without a GPU."""

    def capture(self, launch: Launch, calls: int, rng: Random) -> Callable[[], None]:
        """Return a loop of `calls` launches."""

        def span() -> None:
            for number in range(calls):
                launch(number)

        return span

    def timed(self, spans: list[Callable[[], None]]) -> list[float]:
        """Return the seconds of each."""
        taken = []
        for span in spans:
            began = time.perf_counter()
            span()
            taken.append(time.perf_counter() - began)
        return taken
