"""Stops a worker's process, every thread of it, whenever it has not been asked for anything.

A worker that has answered stops itself at once, so that no thread of it gets on with anything until the parent has woken up. The parent looks
whether it has, and stops it if not: then the worker's own stop may still be to come, and the next turn begins with it (`owes`).
"""

from __future__ import annotations

import os
import signal
import time

from warpwright.workers.procfs import state_of, threads_of

SELF_SECONDS = 2e-3
"""How long the parent waits for a worker to stop itself. What passes until it has stopped counts as time of the call."""

LONGEST = 2.0
"""Seconds that a stop may take: a thread that waits for a disk or a page stops when it has it."""


class Freezer:
    """The stop switch of one process. A stop takes some 0.1 ms, of which the process runs on for some 10 us."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.frozen = False
        self.owes = False
        """The process was stopped from outside before it came to stop itself."""

    def end_turn(self) -> bool:
        """Wait until the process, which has answered, has stopped itself, or else stop it. False if a thread does not stop."""
        deadline = time.monotonic() + SELF_SECONDS
        while not self.stopped():
            if time.monotonic() > deadline:
                self.freeze()
                self.owes = True
                return self.settle()
        self.frozen, self.owes = True, False
        return True

    def pay(self) -> None:
        """Let a process run on that has only now stopped itself for its last answer."""
        if self.owes and self.stopped():
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
        return True

    def thaw(self) -> None:
        """Let the process run."""
        if self.frozen:
            self.frozen = False
            self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return  # whoever asks it for something next is told that it has ended
