"""Processes that take jobs from one queue and put lines into another, until a time: a process that a GPU's error ends leaves the rest to others."""

from __future__ import annotations

import gc
import multiprocessing as mp
import queue
import time
from collections.abc import Callable, Collection, Iterator, Sequence
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


def free() -> None:
    """Give back what programs held that are gone."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
