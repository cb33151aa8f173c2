"""The order of work: by priority, then by deadline, then by arrival; one job at a time for each lane. Pure logic, no clock and no thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Job:
    """One piece of work, from its arrival to its answer."""

    key: str
    session: str
    lane: Any
    """What it is evaluated by: jobs of the same lane never run together."""
    request: Any
    priority: int = 0
    deadline: float = math.inf
    """On the queue's clock."""
    arrived: float = 0.0
    began: float | None = None
    state: str = "queued"
    """queued, running, done."""
    answer: dict[str, Any] = field(default_factory=dict)
    """{"result": ...} or {"error": ...}, once done."""
    whenever_done: list[Callable[[Job], None]] = field(default_factory=list)
    number: int = 0


class Queue:
    """The jobs that wait."""

    def __init__(self) -> None:
        self.waiting: list[Job] = []
        self._count = 0

    def add(self, job: Job) -> None:
        """Take a job in."""
        self._count += 1
        job.number = self._count
        self.waiting.append(job)

    def take(self, busy: Collection[Any]) -> Job | None:
        """Remove and return the job to do next, of those whose lane is not busy; None when there is none."""
        free = [job for job in self.waiting if job.lane not in busy]
        if not free:
            return None
        chosen = min(free, key=lambda job: (-job.priority, job.deadline, job.number))
        self.waiting.remove(chosen)
        return chosen

    def remove(self, job: Job) -> bool:
        """Take a job out before it has begun; whether it was there."""
        if job not in self.waiting:
            return False
        self.waiting.remove(job)
        return True

    def expired(self, now: float) -> list[Job]:
        """Remove and return the jobs whose deadline is over."""
        late = [job for job in self.waiting if job.deadline <= now]
        self.waiting = [job for job in self.waiting if job.deadline > now]
        return late
