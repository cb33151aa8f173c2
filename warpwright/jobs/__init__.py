"""Runs many jobs in processes of their own, N at a time: on this machine (local.py), or (`executor="ray"`) on a Ray cluster (ray.py).

A job is the name of a function, `module:function`, and a payload of plain values; its result is plain values too. Each job runs in a fresh
Python process (child.py), so that a crash, a leak or a call of os._exit ends that job alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpwright.errors import UsageError
from warpwright.jobs import local, ray
from warpwright.jobs.local import Answer, Payload

EXECUTORS = {"local": local.map_jobs, "ray": ray.map_jobs}


def map_jobs(function: str, payloads: Sequence[Payload], count: int = 1, executor: str = "local", timeout: float | None = None) -> Iterator[Answer]:
    """Yield (position, result) of each job as it ends, at most `count` at once; a failed job's result is a WorkerError.

    Ctrl-C, or closing the iterator, interrupts the running jobs, waits for what they still have to write, and starts no more.
    Raise UsageError for an unknown executor or no job at a time, MissingExtra where Ray is asked for and not installed.
    """
    if executor not in EXECUTORS:
        raise UsageError(f"expected an executor, saw {executor!r}", f"choose one of {', '.join(EXECUTORS)}")
    if count < 1:
        raise UsageError(f"expected at least one job at a time, saw {count}", "write --jobs 1")
    return EXECUTORS[executor](function, payloads, count, timeout)


__all__ = ["EXECUTORS", "Answer", "Payload", "map_jobs"]
