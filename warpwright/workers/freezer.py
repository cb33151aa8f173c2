"""Stops a worker's process, every thread of it, whenever it has not been asked for anything.

A worker that has answered stops itself at once, so that no thread of it gets on with anything until the parent has woken up. The parent waits for
that, and gives up its core meanwhile: where it polled busily instead, the worker's main thread had no core left to stop itself on.
"""

from __future__ import annotations

import os
import signal
import time

from warpwright.workers.procfs import cpu_clock, state_of, threads_of, user_seconds

SELF_SECONDS = 5e-4
"""A worker that takes longer than this to stop itself had time to go on with something: what passes until then counts as time of the call."""

ASLEEP_SECONDS = 20e-3
"""For which a main thread that has answered sleeps before it is stopped from outside: Python's lock changes hands every 5 ms."""

LONGEST = 2.0
"""Seconds that a stop may take: a thread that waits for a disk or a page stops when it has it."""

RAN_SECONDS = 1e-4
"""Of CPU time between a stop and the next word to go; none is used by a process that stands still, but a machine's interrupts may be booked on it."""

WATCHED = 0.5
"""Seconds for which a process that did not stop is watched after it has been told once more: one that waits for a disk uses no CPU time."""

RAN_ON = 0.02
"""Seconds in user mode in that time: two ticks of the kernel's clock."""

STRAYS, STRAY_SHARE = 4, 0.05
"""Stops, and their share, in which a process ran all the same before that is its own doing: SIGCONT may come from a timer that it has set."""


class Freezer:
    """The stop switch of one process. A stop takes some 0.1 ms, of which the process runs on for some 10 us."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.frozen = False
        self.late = False
        """The process took longer than SELF_SECONDS to stop after its last answer."""
        self.owes = False
        """It was stopped from outside, perhaps before it came to stop itself."""
        self.stops = self.strays = 0
        self._used: float | None = None
        """Seconds of CPU time that it had used when it stopped."""
        self._loose: bool | None = None
        """Whether it was found going on in this stop, if `look` has looked."""

    @property
    def strays_often(self) -> bool:
        """Whether the process has run, again and again, while it was to stand still."""
        return self.strays >= STRAYS and self.strays > STRAY_SHARE * self.stops

    def end_turn(self) -> bool:
        """Wait until the process, which has answered, has stopped itself. False if a thread does not stop.

        A main thread that sleeps has been sent on past its own stop by somebody else's timing (`device_yield`), or waits for Python's lock, which
        another thread holds: then it is stopped here, and it may stop itself once more when it is let go (`owes`).
        """
        began, asleep, self.owes = time.monotonic(), 0.0, False
        while not self.stopped():
            now = time.monotonic()
            if now - began > LONGEST:
                return False
            asleep = (asleep or now) if state_of(f"/proc/{self.pid}") == "S" else 0.0
            if asleep and now - asleep > ASLEEP_SECONDS:
                self.freeze()
                self.owes = True
            os.sched_yield()
        self.frozen, self.late = True, time.monotonic() - began > SELF_SECONDS
        self._used = cpu_clock(self.pid)
        return True

    def pay(self) -> None:
        """Let a process run on that has only now stopped itself for its last answer."""
        if self.owes and not self.frozen and self.stopped():
            self.owes = False
            self._send(signal.SIGCONT)

    def stopped(self) -> bool:
        """Whether every thread has stopped, or the process has ended."""
        return all(state_of(f"/proc/{self.pid}/task/{thread}") in ("T", "t", "Z", "X", "") for thread in threads_of(self.pid))

    def freeze(self) -> None:
        """Send the stop; `settle` says when all threads have obeyed."""
        if not self.frozen:
            self._send(signal.SIGSTOP)
            self.frozen = True

    def settle(self) -> bool:
        """Wait until every thread has stopped, or the process has ended; False if one has not in time."""
        deadline = time.monotonic() + LONGEST
        while not self.stopped():
            if time.monotonic() > deadline:
                return False
        self._used = cpu_clock(self.pid)
        return True

    def runs_on(self) -> bool:
        """Whether a process that did not stop in time still uses CPU time when it is told to stop once more: something lets it run on."""
        self._send(signal.SIGSTOP)
        until, used = time.monotonic() + WATCHED, user_seconds(self.pid)  # in the kernel: one that gives much memory back, say
        while time.monotonic() < until:
            time.sleep(0.02)
            if user_seconds(self.pid) - used >= RAN_ON:
                return True
        return False

    def look(self) -> None:
        """See whether the process still stands still: before the clock of a call starts, since it takes some 20 us."""
        if self.frozen and self._used is not None:
            self._loose = state_of(f"/proc/{self.pid}") not in ("T", "t", "Z", "X", "")

    def thaw(self) -> None:
        """Let the process run, and note whether it had stood still: nobody but itself has it go on."""
        if self.frozen:
            if self._used is not None:
                if self._loose is None:
                    self.look()
                self.stops += 1
                self.strays += bool(self._loose) or cpu_clock(self.pid) - self._used > RAN_SECONDS
            self.frozen, self._used, self._loose = False, None, None
            self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return  # whoever asks it for something next is told that it has ended
