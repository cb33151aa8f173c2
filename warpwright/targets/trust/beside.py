"""Work of an evaluator that goes on in a thread of its own, beside whatever comes next."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from warpwright.deadline import stop_thread
from warpwright.workers import device_yield

T = TypeVar("T")

GLANCE_SECONDS = 0.05
"""A wait in steps so long can be ended by a deadline, also in a thread that is not the main one."""

END_SECONDS = 2.0
"""For a thread to see that its worker has ended."""


TURN_SECONDS = 5e-4
"""For which one thread keeps the interpreter while others wait for it. With Python's 5 ms each of a step's hundreds of short requests to its
worker took 5 ms longer while the main thread read and rewrote the program."""


class _Turns:
    """How many steps want short turns, and what the interpreter had before."""

    lock = threading.Lock()
    steps = 0
    before = 0.0


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    """Inside, threads of this process take turns of TURN_SECONDS; afterwards, of what they took before."""
    with _Turns.lock:
        if not _Turns.steps:
            _Turns.before = sys.getswitchinterval()
            sys.setswitchinterval(min(TURN_SECONDS, _Turns.before))
        _Turns.steps += 1
    try:
        yield
    finally:
        with _Turns.lock:
            _Turns.steps -= 1
            if not _Turns.steps:
                sys.setswitchinterval(_Turns.before)


class Beside(Generic[T]):
    """A step that was begun; `result` waits for what it returns, or raises what it raised."""

    def __init__(self, step: Callable[[], T], name: str) -> None:
        self._step = step
        self._made: list[T] = []
        self._failure: BaseException | None = None
        self.abandoned = False
        """Was it ended? Then nobody goes on with what it was for."""
        self._thread = threading.Thread(target=self._run, name=f"warpwright {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with short_turns():
                self._made.append(self._step())
        except BaseException as error:
            self._failure = error

    def wait(self, seconds: float = math.inf) -> bool:
        """Wait until the step is over, at most so long; return whether it is."""
        until = time.monotonic() + seconds
        while self._thread.is_alive() and (left := until - time.monotonic()) > 0:
            self._thread.join(min(left, GLANCE_SECONDS))
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait."""
        self.wait()
        if self._failure is not None:
            raise self._failure
        return self._made[0]

    def abandon(self) -> None:
        """End the step, and the workers that it asks: they are killed, so that it does not wait for their answers."""
        self.abandoned = True
        if not self._thread.is_alive():
            return
        stop_thread(self._thread)
        for worker in [one for one in device_yield.living if getattr(one, "thread", None) == self._thread.ident]:
            worker.signal(signal.SIGKILL)
        self._thread.join(END_SECONDS)
