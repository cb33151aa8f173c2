"""Where the wall time of one `optimize` goes: its phases, the workers that it starts, and what it asks them for.

    with traced(began) as events: warpwright.optimize(...)

An event is {"at", "seconds", "thread", "what"}; requests shorter than LEAST are summed up by kind at the end. For benchmarks: it patches the classes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from warpwright.timing import roofline
from warpwright.timing.device_lock import DeviceLock
from warpwright.workers.sandbox import Worker

LEAST = 0.15
SHOWN = 400
"""Characters of a message."""

Event = dict[str, Any]


class Trace:
    """Notes events, from any thread."""

    def __init__(self, began: float) -> None:
        self.began, self.events = began, list[Event]()
        self.sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])

    def note(self, what: str, begun: float | None = None, least: float = 0.0) -> None:
        """Note what begins now, or what has taken from `begun` to now."""
        now = time.monotonic()
        seconds = now - begun if begun is not None else 0.0
        if begun is not None:
            self.sums[what][0] += 1
            self.sums[what][1] += seconds
        if seconds >= least:
            thread = threading.current_thread().name.removeprefix("warpwright ")
            at = (now if begun is None else begun) - self.began
            self.events.append({"at": round(at, 2), "seconds": round(seconds, 2), "thread": thread, "what": what})

    def timed(self, name: Callable[..., str], function: Callable[..., Any], least: float = LEAST) -> Callable[..., Any]:
        """Return the function, its calls noted if they take as long as `least`."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            begun = time.monotonic()
            try:
                return function(*args, **kwargs)
            finally:
                self.note(name(*args, **kwargs), begun, least)

        return run


class _Handler(logging.Handler):
    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.DEBUG)
        self.trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        self.trace.note(f"# {said}" if len(said) <= SHOWN else f"# {said[: SHOWN // 2]} ... {said[-SHOWN // 2 :]}")  # a recipe differs at its end


@contextlib.contextmanager
def traced(began: float | None = None) -> Iterator[list[Event]]:
    """Inside, events are noted; the sums by kind come at the end."""
    trace = Trace(time.monotonic() if began is None else began)
    log, handler = logging.getLogger("warpwright"), _Handler(trace)
    level = log.level
    places: list[tuple[Any, str, Callable[..., str]]] = [
        (Worker, "__init__", lambda worker, role, *_, **__: f"start {role}"),
        (Worker, "request", lambda worker, op, *_, **__: f"{worker.role}: {op}"),
        (Worker, "go", lambda worker, *_, **__: f"{worker.role}: call"),
        (Worker, "close", lambda worker, *_, **__: f"close {worker.role}"),
        (roofline, "work", lambda *_, **__: "counting the work"),
        (roofline, "peaks", lambda *_, **__: "the peaks"),
    ]
    kept = [(holder, name, getattr(holder, name)) for holder, name, _ in places]
    exclusive = DeviceLock.exclusive

    @contextlib.contextmanager
    def waited(lock: DeviceLock) -> Iterator[None]:
        begun = time.monotonic()
        with exclusive(lock):
            trace.note("waiting for the device", begun, LEAST)
            begun = time.monotonic()
            try:
                yield
            finally:
                trace.note("holding the device", begun)

    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    for (holder, name, said), (_, _, function) in zip(places, kept, strict=True):
        setattr(holder, name, trace.timed(said, function))
    DeviceLock.exclusive = waited  # type: ignore[method-assign, assignment]
    try:
        yield trace.events
    finally:
        DeviceLock.exclusive = exclusive  # type: ignore[method-assign]
        for holder, name, function in kept:
            setattr(holder, name, function)
        log.removeHandler(handler)
        log.setLevel(level)
        for what, (count, seconds) in sorted(trace.sums.items(), key=lambda item: -item[1][1]):
            trace.events.append({"at": None, "seconds": round(seconds, 2), "count": int(count), "what": what})


def text(events: list[Event]) -> str:
    """Return the events as lines."""
    lines = []
    for event in events:
        if event["at"] is None:
            lines.append(f"  sum {event['seconds']:7.2f} s in {event['count']:5d} x {event['what']}")
        else:
            lines.append(f"{event['at']:6.2f} {event['seconds'] or '':>6} {event['thread'][:18]:18} {event['what']}")
    return "\n".join(lines)
