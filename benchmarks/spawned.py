"""Processes that take jobs from one queue and put lines into another, until a time: a process that a GPU's error ends leaves the rest to others."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing as mp
import os
import queue
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.5


def lines(
    work: Callable[..., None], jobs: Collection[Any], most: int, end: float, *given: Any, daemon: bool = True, loaded: Sequence[str] = (),
    renewed_until: float = 0.0,
) -> Iterator[Any]:  # fmt: skip
    """Yield what `work(todo, lines, *given)` puts into `lines`, from `most` processes at most, until all have ended or it is `end` (time.monotonic).

    Those that are left then are ended, as when nobody asks for more lines. `loaded`: modules that are imported once, in a process of which the others
    are copies; none of them may use a GPU when it is imported. (Fourteen that import torch and transformers side by side take 7 to 9 s.)
    `renewed_until`: until then another process takes the place of one that has ended, while jobs are left: for work that ends after one job.
    """
    context: Any = mp.get_context("forkserver" if loaded else "spawn")
    if loaded:
        context.set_forkserver_preload(list(loaded))
    todo, put = context.Queue(), context.Queue()
    for job in jobs:
        todo.put(job)
    processes: list[Any] = []

    def begin() -> None:
        processes.append(context.Process(target=work, args=(todo, put, *given), daemon=daemon))
        processes[-1].start()

    for _ in range(min(most, len(jobs))):
        begin()
    try:
        while (now := time.monotonic()) < end:
            renewing = now < renewed_until and not todo.empty()
            if not renewing and not any(process.is_alive() for process in processes) and put.empty():
                break
            if renewing:
                processes[:] = [process for process in processes if process.is_alive()]
                for _ in range(most - len(processes)):
                    begin()
            try:
                line = put.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            yield line
    finally:
        todo.cancel_join_thread()  # what is left and larger than a pipe would keep this process from ending
        for process in processes:
            process.terminate()


def taken(todo: Any, until: float) -> Iterator[Any]:
    """Yield jobs of a queue until none is left or it is `until`; after half a second without one none is left."""
    while time.monotonic() < until:
        try:
            job = todo.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return
        yield job


@contextlib.contextmanager
def still() -> Iterator[int]:
    """Inside, the other processes of `lines` stand still, and what they began: how many. On cores and a GPU that fifteen share, two times of the same
    program of less than 0.2 ms differed by 1.25x in the median (results/first_choices_h200). Should this process be ended, the others go on.

    Whoever asks for it may wait for nothing that they hold.
    """
    others = _others()
    if not others:
        yield 0
        return
    resume = ["sh", "-c", f"read _; kill -CONT {' '.join(map(str, others))}"]  # when its input ends, by whatever
    with subprocess.Popen(resume, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL):
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield len(others)


def _others() -> list[int]:
    """Return the other children of this process's parent and all that they began, but the tracker of multiprocessing."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            children.setdefault(int(status.read_text().rpartition(")")[2].split()[1]), []).append(int(status.parent.name))
    found, waiting = [], [pid for pid in children.get(os.getppid(), []) if pid != os.getpid()]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
                waiting += children.get(pid, [])
    return found


def free() -> None:
    """Give back what programs held that are gone."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
