"""Where the wall time of one `optimize` goes: its phases, the workers that it starts, and what it asks them for.

    with traced(began) as events: warpwright.optimize(...)
    python -m benchmarks.timing.phases FILE audit PROGRAM --task TASK ...      (the command, its events in FILE as they happen)

An event is {"at", "seconds", "thread", "what"}; requests shorter than LEAST are summed up by kind at the end. For benchmarks: it patches the classes.
A file has what a thread is in the middle of, too, once a second: where a run is cut off, its last lines say what it was doing, and since when.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warpwright.deadline import process_start
from warpwright.reports.progress import Progress
from warpwright.timing import roofline
from warpwright.timing.device_lock import DeviceLock
from warpwright.workers.sandbox import Worker

LEAST = 0.15
SHOWN = 400
"""Characters of a message."""

OPEN_SECONDS = 1.0
"""How often a file is told what goes on, of what has gone on for so long."""

Event = dict[str, Any]


class Trace:
    """Notes events, from any thread."""

    def __init__(self, began: float, file: Path | None = None) -> None:
        self.began, self.events, self.file = began, list[Event](), file
        self.sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        self.open: dict[int, tuple[float, str, str]] = {}
        """What goes on: when it began, in which thread, and what it is."""
        self.over = threading.Event()

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
            self.append({"at": round(at, 2), "seconds": round(seconds, 2), "thread": thread, "what": what})

    def append(self, event: Event) -> None:
        """Keep an event, and write it at once."""
        self.events.append(event)
        self.write(event)

    def write(self, event: Event) -> None:
        """Write an event to the file, if there is one."""
        if self.file is not None:
            with self.file.open("a") as file:
                file.write(json.dumps(event) + "\n")

    def watch(self) -> None:
        """Write what goes on, until all is over."""
        while not self.over.wait(OPEN_SECONDS):
            now = time.monotonic()
            long = [(since, thread, what) for since, thread, what in list(self.open.values()) if now - since >= OPEN_SECONDS]
            for since, thread, what in sorted(long):
                self.write({"at": round(since - self.began, 2), "so far": round(now - since, 2), "thread": thread, "what": what})

    def timed(self, name: Callable[..., str], function: Callable[..., Any], least: float = LEAST) -> Callable[..., Any]:
        """Return the function, its calls noted if they take as long as `least`."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            begun, what, key = time.monotonic(), name(*args, **kwargs), id(args)
            self.open[key] = begun, threading.current_thread().name.removeprefix("warpwright "), what
            try:
                return function(*args, **kwargs)
            finally:
                self.open.pop(key, None)
                self.note(what, begun, least)

        return run


class _Handler(logging.Handler):
    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.DEBUG)
        self.trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        self.trace.note(f"# {said}" if len(said) <= SHOWN else f"# {said[: SHOWN // 2]} ... {said[-SHOWN // 2 :]}")  # a recipe differs at its end


@contextlib.contextmanager
def traced(began: float | None = None, file: Path | None = None) -> Iterator[list[Event]]:
    """Inside, events are noted, and written to `file` as they happen; the sums by kind come at the end."""
    trace = Trace(time.monotonic() if began is None else began, file)
    log, handler = logging.getLogger("warpwright"), _Handler(trace)
    level = log.level
    places: list[tuple[Any, str, Callable[..., str]]] = [
        (Worker, "__init__", lambda worker, role, *_, **__: f"start {role}"),
        (Worker, "request", lambda worker, op, *_, **__: f"{worker.role}: {op}"),
        (Worker, "go", lambda worker, *_, **__: f"{worker.role}: call"),
        (Worker, "close", lambda worker, *_, **__: f"close {worker.role}"),
        (roofline, "work", lambda *_, **__: "counting the work"),
        (roofline, "peaks", lambda *_, **__: "the peaks"),
        (Worker, "greet", lambda worker: f"{worker.role}: comes up"),
    ]
    kept = [(holder, name, getattr(holder, name)) for holder, name, _ in places]
    exclusive, tell = DeviceLock.exclusive, Progress.tell

    def told(progress: Progress, phase: str) -> None:
        trace.note(f"> {phase}")
        tell(progress, phase)

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
    Progress.tell = told  # type: ignore[method-assign, assignment]
    if file is not None:
        threading.Thread(target=trace.watch, daemon=True).start()
    try:
        yield trace.events
    finally:
        trace.over.set()
        DeviceLock.exclusive = exclusive  # type: ignore[method-assign]
        Progress.tell = tell  # type: ignore[method-assign]
        for holder, name, function in kept:
            setattr(holder, name, function)
        log.removeHandler(handler)
        log.setLevel(level)
        for what, (count, seconds) in sorted(trace.sums.items(), key=lambda item: -item[1][1]):
            trace.append({"at": None, "seconds": round(seconds, 2), "count": int(count), "what": what})


def text(events: list[Event]) -> str:
    """Return the events as lines."""
    lines = []
    for event in events:
        if event["at"] is None:
            lines.append(f"  sum {event['seconds']:7.2f} s in {event['count']:5d} x {event['what']}")
        else:
            seconds = f"{event['so far']}.." if "so far" in event else event["seconds"] or ""
            lines.append(f"{event['at']:6.2f} {seconds:>8} {event['thread'][:18]:18} {event['what']}")
    return "\n".join(lines)


def main() -> int:
    """Run the command line, in this process, with its events in a file."""
    from warpwright.cli import command

    file, *arguments = sys.argv[1:]
    sys.argv = ["warpwright", *arguments]
    command._leave = lambda *_: None  # which would end this process before the sums are written
    with traced(process_start(), Path(file)):
        return command.main()


if __name__ == "__main__":
    sys.exit(main())
