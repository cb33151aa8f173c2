"""Several trainings at once on one device, each with its own stream, seed and stopping place; a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from warpwright.domains.unlearnable.verification.training.recipe import Outcome, Plan
from warpwright.domains.unlearnable.verification.training.trainer import Training

CHECKPOINT_SECONDS = 30.0
"""A training's state is written at the first end of an epoch after this long: killed, a run loses half a minute."""

_TURN = 4
"""Steps that a training sends before it is the next one's turn."""


@dataclass(frozen=True)
class Job:
    """One training to run."""

    key: str
    plan: Callable[[], Plan]
    """Called when the training begins: many plans at once would hold many sets of images."""
    seed: int
    work: float = 1.0
    """How much there is to do, in any unit: what the time left is reckoned by."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    """Jobs."""
    count: int
    running: tuple[tuple[str, int, int], ...]
    """Key, epochs done, epochs, of each training under way."""
    seconds: float
    left: float | None
    """Seconds, as the work so far went; None before there was any."""

    @property
    def text(self) -> str:
        """The line that a user sees."""
        running = ", ".join(f"{key} {epoch}/{epochs}" for key, epoch, epochs in self.running)
        left = "" if self.left is None else f", about {_duration(self.left)} left"
        return f"{self.done} of {self.count} trainings{left}" + (f"; {running}" if running else "")


@dataclass
class _Lane:
    job: Job
    training: Training
    saved: float
    """When its state was written."""

    @property
    def share(self) -> float:
        return self.training.epoch / max(self.training.recipe.epochs, 1)


class _Plans:
    """Makes the next job's plan while others train: a host that prepares images for seconds would let the device wait.

    One plan is made at a time, and none while a training begins: plans share what they keep, and beginning may record a graph.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._coming: tuple[str, Future[Plan]] | None = None

    def begin(self, job: Job) -> None:
        """Begin to make a job's plan, unless that was begun."""
        if self._coming is None:
            self._coming = job.key, self._pool.submit(job.plan)

    def of(self, job: Job) -> Plan:
        """Return a job's plan."""
        (key, future), self._coming = self._coming or ("", None), None
        if future is not None and key == job.key:
            return future.result()
        if future is not None:  # of a job for which there was no time left
            future.exception()
        return job.plan()

    def end(self) -> None:
        """Wait for nothing any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def outcomes(
    jobs: Sequence[Job],
    lanes: int = 1,
    parts: Path | None = None,
    show: Callable[[Progress], None] | None = None,
    until: float | None = None,
    fits: Callable[[Job], bool] = lambda job: True,
) -> Iterator[tuple[Job, Outcome]]:
    """Yield each job with its outcome as it ends; at most `lanes` run at once.

    `parts`: folder for the states of trainings under way, from which a later call goes on. `until`: a moment of time.monotonic() at which
    to stop; what runs then is written to `parts`, and not yielded. `fits`: is there time for a job whose turn it is? Else it is left out.
    """
    plans = _Plans()
    try:
        yield from _outcomes(jobs, lanes, parts, show, until, fits, plans)
    finally:
        plans.end()


def _outcomes(
    jobs: Sequence[Job],
    lanes: int,
    parts: Path | None,
    show: Callable[[Progress], None] | None,
    until: float | None,
    fits: Callable[[Job], bool],
    plans: _Plans,
) -> Iterator[tuple[Job, Outcome]]:
    began, waiting, active = time.monotonic(), deque(jobs), list[_Lane]()
    finished = earlier = 0.0
    done = 0
    while waiting or active:
        while waiting and len(active) < lanes:
            job = waiting.popleft()
            if not fits(job):
                continue
            lane = _begin(job, plans.of(job), parts)
            earlier += lane.share * lane.job.work
            active.append(lane)
        if waiting and fits(waiting[0]):
            plans.begin(waiting[0])
        for lane in list(active):
            epoch = lane.training.epoch
            if not lane.training.finished:
                lane.training.advance(_TURN if lanes > 1 else lane.training.per_epoch)
            if lane.training.finished:
                outcome = lane.training.outcome()
                active.remove(lane)
                _forget(lane.job, parts)
                done, finished = done + 1, finished + lane.job.work
                yield lane.job, outcome
            elif lane.training.epoch > epoch and time.monotonic() - lane.saved > CHECKPOINT_SECONDS:
                _save(lane, parts)
            if show is not None and lane.training.epoch > epoch:
                show(_progress(jobs, active, done, finished, earlier, time.monotonic() - began))
        if until is not None and time.monotonic() > until:
            for lane in active:
                if lane.training.at:
                    lane.training.advance(lane.training.per_epoch)  # the rest of its epoch: another process can go on from there alone
                _save(lane, parts)
            return


def _progress(jobs: Sequence[Job], active: Sequence[_Lane], done: int, finished: float, earlier: float, seconds: float) -> Progress:
    whole = sum(job.work for job in jobs)
    reached = finished + sum(lane.share * lane.job.work for lane in active)
    ours = reached - earlier
    left = seconds * (whole - reached) / ours if ours > 0 else None
    running = tuple((lane.job.key, lane.training.epoch, lane.training.recipe.epochs) for lane in active)
    return Progress(done, len(jobs), running, seconds, left)


def _begin(job: Job, plan: Plan, parts: Path | None) -> _Lane:
    training = Training(plan, job.seed)
    file = _file(job, parts)
    if file is not None and file.exists():
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        training.restore(state)
    return _Lane(job, training, time.monotonic())


def _save(lane: _Lane, parts: Path | None) -> None:
    """Write the state of the last whole epoch; within one there is nothing to write that another process could go on with."""
    file = _file(lane.job, parts)
    lane.saved = time.monotonic()
    if file is None or lane.training.at:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".part")
    with lane.training.on_device():
        torch.save(lane.training.state(), temporary)
    os.replace(temporary, file)


def _forget(job: Job, parts: Path | None) -> None:
    file = _file(job, parts)
    if file is not None:
        file.unlink(missing_ok=True)


def _file(job: Job, parts: Path | None) -> Path | None:
    return None if parts is None else parts / f"{hashlib.sha256(job.key.encode()).hexdigest()[:16]}.pt"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02d} s" if whole < 6000 else f"{whole / 3600:.1f} h"
