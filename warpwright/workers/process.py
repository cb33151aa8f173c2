"""A worker's process as the kernel shows it: its stop switch, its threads and descendants, and what they do while they should be idle."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from warpwright.errors import WorkerRan, WorkerTimeout
from warpwright.workers import device_yield
from warpwright.workers.freezer import Freezer
from warpwright.workers.procfs import cpu_clock, descendants, open_files, page_faults, state_of, thread_seconds, threads_called, threads_of

SETTLE_SECONDS = 0.1
CALM_SECONDS = 0.03  # OpenMP's threads wait busily for up to 12 ms
STOP_SECONDS = 2.0
SPIN_SECONDS = 4e-3  # for which a thread of OpenMP waits busily after a call; 64 of them used 0.15 s together
LONGEST_SPIN = 15e-3  # on some machines: 32 threads of a Xeon used 0.25 s together, and a program has one team for torch and one of its own


CONTEXT_THREAD, DEVICE_FILES = "cuda-EvtHandlr", r"/dev/nvidia\d+"
"""A thread that CUDA's driver has for each context, and files that it opens for one: on an H200 a process with one context has 1 and 23, with two
2 and 39."""


@dataclass(frozen=True)
class Contexts:
    """What a process shows of its CUDA contexts from outside."""

    threads: int
    files: int


@dataclass(frozen=True)
class Activity:
    """What a worker's processes did while they should have been idle."""

    cpu_seconds: float
    """Of all threads, the usual busy waiting of OpenMP's left out."""
    unexplained: float
    """The same with all that may be busy waiting left out: it shows at once after a call only."""
    seconds: float
    children: int
    """Living descendants of the worker."""
    wakeups: int
    """How often the busiest thread, the main one left out, went to sleep again: a thread that waits for work sleeps through."""


def printable(text: str) -> str:
    """Return a program's words with what a terminal would take for an order, or could not print, as escape sequences."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


class Process:
    """The process of one worker; whoever starts it sets `pid` and what hangs on it."""

    pid: int
    role: str
    device: str
    freezer: Freezer
    calm_seconds: float
    at_rest: float
    """CPU time used in `calm` so far."""
    still = False
    """It is held still for now, and answers nothing (`stopped`)."""
    contexts_before: Contexts | None = None
    """On a GPU: what it showed of its CUDA contexts when it had come up, with the runner's own."""
    _guard_pid: int
    """Of its parent, from which all its descendants hang."""

    @property
    def alive(self) -> bool:
        """Has it not ended?"""
        raise NotImplementedError

    def close(self) -> None:
        """Kill it and all its descendants."""
        raise NotImplementedError

    # -- turns

    @property
    def freezes(self) -> bool:
        """Whether the process is stopped whenever nothing is asked of it."""
        return self.device == "cpu" and self.role != "judge"

    def freeze(self) -> None:
        """Stop every thread of the process. Raises WorkerTimeout if one does not stop."""
        if self.freezes and not self.freezer.frozen:
            self.freezer.freeze()
            if not self.freezer.settle():
                self._end_unstopped()

    def _end_unstopped(self) -> Never:
        """End a process that did not stop. Raises WorkerRan where a candidate's uses CPU time all the same, WorkerTimeout else."""
        runs_on = self.role == "candidate" and (self.freezer.strays_often or self.freezer.runs_on())
        self.close()
        if runs_on:
            raise WorkerRan("the process was told to stop, and used CPU time all the same: something lets it run on")
        raise WorkerTimeout("a thread of the worker did not stop when it was told to; the process was killed")

    def thaw(self) -> None:
        """Let the process run. Raises WorkerRan if a candidate's does so without being let."""
        self.freezer.thaw()
        if self.role == "candidate" and self.freezer.strays_often:
            strays, stops = self.freezer.strays, self.freezer.stops
            self.close()
            raise WorkerRan(f"in {strays} of {stops} stops the process used CPU time while it was to stand still: something lets it run on")

    def signal(self, number: int) -> None:
        """Send a signal to the worker and all its descendants."""
        for pid in descendants(self._guard_pid):
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Inside, the worker and its descendants stand still, also when this process gives way to somebody else's timing."""
        device_yield.living.discard(self)
        self.still = True
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + STOP_SECONDS
        while self.alive and state_of(f"/proc/{self.pid}") != "T" and time.monotonic() < deadline:
            time.sleep(0.0005)  # the signal takes effect when the process is next given the CPU
        try:
            yield
        finally:
            if not self.freezer.frozen:  # a worker that is stopped between its turns stays so
                self.signal(signal.SIGCONT)
            self.still = False
            device_yield.living.add(self)

    # -- what the process does while it should be idle

    def activity(self, seconds: float) -> Activity:
        """Watch the worker and its descendants for `seconds` in which nothing is asked of it, and in which it may run."""
        self.thaw()
        before, switches, start = self._cpu_seconds(), self._switches(), time.monotonic()
        time.sleep(seconds)
        after, later = self._cpu_seconds(), self._switches()
        each = {key: seconds - before.get(key, 0.0) for key, seconds in after.items()}
        spinning = sum(min(SPIN_SECONDS, seconds) for key, seconds in each.items() if key != (self.pid, self.pid))
        used = sum(each.values()) - min(spinning, SPIN_SECONDS * ((os.cpu_count() or 1) - 1))
        unexplained = sum(max(spent - (LONGEST_SPIN if key != (self.pid, self.pid) else 0.0), 0.0) for key, spent in each.items())
        wakeups = max((later[thread] - switches.get(thread, 0) for thread in later), default=0)
        self.freeze()
        return Activity(used, unexplained, time.monotonic() - start, self.children(), wakeups)

    def _switches(self) -> dict[int, int]:
        """Return how often each thread but the main one has gone to sleep."""
        switches = {}
        for thread in self.threads() - {self.pid}:
            with contextlib.suppress(OSError, IndexError, ValueError):
                status = Path(f"/proc/{self.pid}/task/{thread}/status").read_text()
                switches[thread] = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        return switches

    def children(self) -> int:
        """Return how many processes live that the worker started, daemons included."""
        return sum(pid != self.pid for pid in descendants(self._guard_pid))

    def threads(self) -> frozenset[int]:
        """Return the ids of the worker's threads."""
        return threads_of(self.pid)

    def contexts(self) -> Contexts:
        """Return what the process shows of its CUDA contexts now."""
        return Contexts(threads_called(self.pid, CONTEXT_THREAD), open_files(self.pid, DEVICE_FILES))

    def calm(self) -> None:
        """On a CPU, let the process run until all its threads sleep, for CALM_SECONDS at most, and stop it again.

        OpenMP's wait busily after a call, and take a core from the next program: calls of 2 ms on two cores varied by 100 %, and by 8 % with this.
        What they use counts as `calm_seconds`, not as work: there is nothing new to work on yet.
        """
        if self.device != "cpu":
            return
        began = self.cpu_clock()
        self.thaw()
        deadline = time.monotonic() + CALM_SECONDS
        folders = [f"/proc/{self.pid}/task/{thread}" for thread in self.threads()]
        while any(state_of(folder) == "R" for folder in folders) and time.monotonic() < deadline:
            time.sleep(0.0005)
        self.freeze()
        self.calm_seconds += self.cpu_clock() - began

    def settle(self) -> float:
        """Wait until the main thread sleeps, for at most a tenth of a second; return the CPU time that it still used."""
        folder, deadline = f"/proc/{self.pid}/task/{self.pid}", time.monotonic() + SETTLE_SECONDS
        try:
            before = thread_seconds(folder)
            while state_of(f"/proc/{self.pid}") != "S" and time.monotonic() < deadline:
                time.sleep(0.0002)
            return thread_seconds(folder) - before
        except OSError:
            return 0.0

    def work_done(self) -> int:
        """Return how often the worker and its descendants have asked for a page of memory, as a compiler does all the time."""
        return sum(page_faults(pid) for pid in {self.pid, *descendants(self._guard_pid)})

    def cpu_clock(self) -> float:
        """Return the CPU time of the worker's process, ended threads included, in seconds; nanoseconds are counted."""
        return cpu_clock(self.pid)

    def worked(self) -> float:
        """Return the CPU seconds that a process which is not stopped between its turns has used since it last answered, or since this was asked."""
        now = self.cpu_clock()
        used, self.at_rest = now - self.at_rest, now
        return used

    def _cpu_seconds(self) -> dict[tuple[int, int], float]:
        used = {}
        for pid in {self.pid, *descendants(self._guard_pid)}:
            for thread in threads_of(pid):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    used[pid, thread] = thread_seconds(f"/proc/{pid}/task/{thread}")
        return used
