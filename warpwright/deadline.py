"""A budget of wall time: whoever plans asks what is left, and whoever is in the middle of something is stopped when nothing is."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from warpwright.errors import OutOfTime

WRITING_SHARE, MOST_WRITING_SECONDS = 0.08, 1.0
"""Of the budget, kept for ending the workers and writing the result: they took 0.2 to 0.4 s on two cores."""

MOST_WAITING, MOST_WRITING_SHARE = 6.0, 0.5
"""Where others keep a process from the cores: its writing is believed to take so many times longer at most, so much of a budget is kept for it."""

CROWDED_SHARE = 0.4
"""Of its time waited for a core, a process says so: two that share one wait for half of it."""

AGAIN_SECONDS = 2.0
"""Code that keeps an OutOfTime to itself is stopped once more after so long."""

LOOK_SECONDS = 0.5
"""How often it is looked how much time is left."""

SOON_SECONDS = 0.05
"""How often it is looked whether an import has ended that must not be cut in two."""

LONGEST_START = 60.0
"""A process is not believed to have taken longer than this to come to its first line."""

_SPENT = "the budget of wall time is spent"

_SIGNAL = int(signal.SIGRTMIN) + 7 if hasattr(signal, "SIGRTMIN") else int(signal.SIGUSR2)
"""A number that neither Python nor batch systems use: pytest-timeout takes SIGALRM, Slurm USR1 and USR2."""


@dataclass(frozen=True)
class Deadline:
    """`seconds` of wall time from `began` (`time.monotonic()`)."""

    seconds: float
    began: float
    kept: float = 0.0
    """Seconds that whoever plans leaves to what comes after."""
    firm: bool = True
    """Does everything end then? A deadline that is not firm says what is worth beginning; what a verdict needs is done all the same."""

    @classmethod
    def of(cls, seconds: float | None, began: float | None = None, firm: bool = True) -> Deadline | None:
        """Return the deadline of a budget that begins now, or at `began`; None for a budget without seconds."""
        return None if seconds is None else cls(seconds, time.monotonic() if began is None else began, firm=firm)

    @property
    def at(self) -> float:
        """When work ends, so that the result is written when the budget is over (`time.monotonic()`)."""
        writing = min(MOST_WRITING_SECONDS, WRITING_SHARE * self.seconds) * waiting()
        return self.began + self.seconds - min(writing, MOST_WRITING_SHARE * self.seconds)

    @property
    def left(self) -> float:
        """Seconds of work that are left to plan with; not below 0."""
        return max(0.0, self.at - self.kept - time.monotonic())

    @contextlib.contextmanager
    def enforced(self) -> Iterator[None]:
        """Inside, OutOfTime is raised when the deadline comes, wherever the thread is then; catch it outside of the block.

        In the main thread a signal also ends a system call that waits. In another one the exception comes with its next line of Python. A process
        that works with torch already will go on to do so: there, imports are not cut in two. Elsewhere they are, and what is raised after that is an
        OutOfTime too: now and then torch keeps the exception to itself, and its next module fails for what the one before did not define.
        """
        watch = _Watch(self, threading.current_thread() is threading.main_thread(), "torch" in sys.modules)
        try:
            try:
                watch.start()
                yield
            except Exception as error:
                if watch.cut_import and not out_of_time(error):
                    raise OutOfTime(f"{_SPENT}, in the middle of an import") from error
                raise
            finally:  # where the exception may come as well: it comes once, and the outer block ends the watch
                watch.over = True
        finally:
            watch.stop()


def load(*modules: str) -> None:
    """Import modules in a thread of their own: a deadline then ends the wait for them, and does not cut their import in two.

    What cannot be imported is left to whoever imports it next.
    """

    def work() -> None:
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    if all(name in sys.modules for name in modules):
        return
    thread = threading.Thread(target=work, name="warpwright imports", daemon=True)
    thread.start()
    while thread.is_alive():  # in small steps: outside of the main thread no exception ends a longer one
        thread.join(SOON_SECONDS)


def process_start() -> float:
    """Return when this process began (`time.monotonic()`), or now where the system does not say: its own start-up is part of a command's time."""
    now = time.monotonic()
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - age if 0 <= age < LONGEST_START else now


def waiting() -> float:
    """Return how many times longer this process takes than with a core of its own: 1 on an idle machine, and where the system does not say."""
    try:
        running, queued = map(int, Path("/proc/self/schedstat").read_text().split()[:2])
    except (OSError, ValueError):
        return 1.0
    return min(MOST_WAITING, 1 + queued / running) if running > 0 else 1.0


def crowded() -> str:
    """Return in words how much other work keeps this process from the cores; "" where it hardly does."""
    share = 1 - 1 / waiting()
    return f"other work had the cores for {100 * share:.0f} % of the time that this process wanted one" if share > CROWDED_SHARE else ""


def stop_thread(thread: threading.Thread) -> None:
    """Have a thread that works for nobody any more end before its next line of Python."""
    if thread.ident is not None:
        _raise_in(thread.ident, OutOfTime)


def out_of_time(error: BaseException | None) -> bool:
    """Is this an OutOfTime, or what code raised that tidied up after one?"""
    return error is not None and (isinstance(error, OutOfTime) or out_of_time(error.__context__))


class _Watch:
    """Raises OutOfTime in the thread that started it."""

    def __init__(self, deadline: Deadline, in_main_thread: bool, spares_imports: bool) -> None:
        self.deadline, self.in_main_thread, self.spares_imports, self.over, self.raised = deadline, in_main_thread, spares_imports, False, False
        self.thread, self.lock, self.done = threading.get_ident(), threading.Lock(), threading.Event()
        self.cut_import = False

    def start(self) -> None:
        if self.in_main_thread:
            self.before = signal.signal(_SIGNAL, self._raise)
        threading.Thread(target=self._run, name="warpwright deadline", daemon=True).start()

    def stop(self) -> None:
        self.over = True
        self.done.set()
        with self.lock:
            if self.in_main_thread:
                signal.signal(_SIGNAL, self.before or signal.SIG_DFL)
            else:
                _raise_in(self.thread, None)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if not self.over and not (self.spares_imports and _importing(frame)):
            self.raised = True
            self.cut_import = self.cut_import or _importing(frame)
            raise OutOfTime(_SPENT)

    def _run(self) -> None:
        wait = 0.0
        while not self.done.wait(wait):
            if not self.raised and (left := self.deadline.at - time.monotonic()) > 0:  # the machine may become busier until then
                wait = min(left, LOOK_SECONDS)
                continue
            if self.raised:  # leave it time to tidy up
                self.raised, wait = False, AGAIN_SECONDS
                continue
            with self.lock:
                if self.over:
                    return
                if self.in_main_thread:
                    signal.pthread_kill(self.thread, _SIGNAL)
                elif not (self.spares_imports and _importing(sys._current_frames().get(self.thread))):
                    self.raised = True
                    self.cut_import = self.cut_import or _importing(sys._current_frames().get(self.thread))
                    _raise_in(self.thread, OutOfTime)
            wait = SOON_SECONDS  # for the signal to come to the thread, which may be in a C library or in an import


def _importing(frame: FrameType | None) -> bool:
    """Is a module being imported there? One that is cut in two cannot be imported again."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have the thread raise `kind` before its next line; None takes back what it has not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind) if kind is not None else None)
