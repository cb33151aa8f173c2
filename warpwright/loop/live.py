"""What runs now, for whoever watches: a small file beside the archive for each run of a task, which says what is being done.

A file that its process left behind, because it was killed, is ignored and removed. A folder that cannot be written to has none.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from warpwright.space import Tell


@dataclass(frozen=True)
class Running:
    """One run of one task."""

    task: str
    device: str
    search: str
    phase: str
    """What is being done, in a few words."""
    began: float
    """Unix time."""
    seconds: float | None
    """The budget; None: it has no seconds."""
    pid: int


def folder_of(archive: Path) -> Path:
    """Return the folder in which the runs into an archive say what they do."""
    return archive.with_name(f"{archive.name}.running")


@contextlib.contextmanager
def told(archive: Path, running: Running, tell: Tell) -> Iterator[Tell]:
    """Inside, the run is listed; whatever is told to the result is passed on to `tell` and shown."""
    file = folder_of(archive) / f"{running.pid}-{threading.get_ident()}.json"

    def write(phase: str) -> None:
        partial = file.with_suffix(".partial")
        with contextlib.suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            partial.write_text(json.dumps(asdict(replace(running, phase=phase))))
            partial.replace(file)

    def pass_on(phase: str) -> None:
        write(phase)
        tell(phase)

    write(running.phase)
    try:
        yield pass_on
    finally:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
            file.parent.rmdir()  # which a folder with others in it refuses


def running(archive: Path) -> list[Running]:
    """Return the runs that go on, the oldest first."""
    active = []
    for file in folder_of(archive).glob("*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            one = Running(**json.loads(file.read_text()))
            if _lives(one.pid):
                active.append(one)
            else:
                file.unlink(missing_ok=True)
    return sorted(active, key=lambda one: one.began)


def begin(task: str, device: str, search: str, seconds: float | None) -> Running:
    """Return the listing of a run of this process that begins now."""
    return Running(task, device, search, "starting", time.time(), seconds, os.getpid())


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
