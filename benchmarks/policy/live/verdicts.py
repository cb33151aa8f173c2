"""The verifier's word on programs, without the evaluator's clock: its judge, all of a task's cases, and a process of its own for each program.

An evaluator's first timed answer took 43 to 64 s where twelve tasks began side by side on an H200, since the baselines of each are timed alone. A
verdict needs no clock. The judge comes up with the first; what it is forked from, as soon as these are made.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpwright.timing.device_lock import DeviceLock

MEMORY = "out of memory"
"""In the reason of what is no verdict: others on the same GPU hold what the program needs. (Of 16 answers beside fourteen tasks two were such.)"""

TRIES, AGAIN_SECONDS = 8, 4.0
"""How often a program is verified, or a judge started, that finds too little memory free, and how long after."""


SHOWN = 200
"""Characters of a reason that are kept. (A want of memory stood further back in one, which counted as a refusal.)"""


class NoScore(Exception):
    """The task gives no score, or its judge fails."""


class Steps:
    """Which step a verdict is at, and what each took."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin a verdict."""
        self.at, self.began, self.seconds = "", time.monotonic(), Counter[str]()

    def tell(self, text: str) -> None:
        """Go on to a step."""
        now = time.monotonic()
        self.seconds[self.at or "begun"] += now - self.began  # type: ignore[assignment]  # a Counter adds seconds up as well
        self.at, self.began = text, now

    def told(self) -> dict[str, float]:
        """Return the seconds of each step, those that took some."""
        self.tell("")
        return {step: round(seconds, 1) for step, seconds in self.seconds.items() if seconds >= 0.05}


class Verdicts:
    """What the verifier says of one task's programs."""

    def __init__(self, file: Path, device: str, scale: float = 1.0) -> None:
        from dataclasses import replace

        from warpwright import targets
        from warpwright.run import Settings, measuring

        self.steps = Steps()
        settings = Settings(device=device, baselines=("eager",), scale=scale)
        self.evaluator: Any = targets.evaluator(settings.describe(file), device, replace(measuring(settings, tell=self.steps.tell), resident=True))
        self.known: dict[str, str] = {}
        """Text of a program -> why it is refused, or ""."""

    def refused(self, name: str, candidate: Any) -> str:
        """Return why a program is refused, or "". Raise NoScore where nothing can be said of any program of the task."""
        for tries in range(TRIES if name not in self.known else 0):
            why = self._asked(candidate)
            if MEMORY not in why:
                self.known[name] = why[:SHOWN]
                break
            self.steps.tell("waiting for memory")
            if tries + 1 < TRIES:
                time.sleep(AGAIN_SECONDS)
        if name not in self.known:
            raise NoScore("no memory is free for the program, in several tries")
        return self.known[name]

    def _asked(self, candidate: Any) -> str:
        from warpwright.errors import WarpwrightError
        from warpwright.targets.trust.trusted import HARNESS_ERRORS

        try:
            verdict = self.evaluator._twice(lambda: self._verdict(candidate))
        except HARNESS_ERRORS as error:
            if MEMORY in str(error):
                return str(error)
            raise NoScore(f"{type(error).__name__}: {error}"[:300]) from error
        except WarpwrightError as error:  # the program's own fault
            return f"crashed: {type(error).__name__}: {error}"
        self.evaluator._hold_spare()
        return "" if verdict.ok else f"{verdict.status}, {verdict.check}: {verdict.reason}"

    def _verdict(self, candidate: Any) -> Any:
        trusted = self.evaluator._judging()
        if trusted.unscored:
            raise NoScore(trusted.unscored)
        with self.evaluator._worker() as worker:
            _, verdict = self.evaluator._verified(trusted, worker, candidate)
        trusted.release_memory()
        return verdict

    def close(self) -> None:
        """End its processes."""
        self.evaluator.close()


QUIET, LOOKS, MOST_LOOKING = 0.4e-3, 3, 1.0
"""Seconds that a kernel of no work takes where no other process's kernels run; times in a row; seconds after which it is timed all the same."""


class Turns:
    """The GPU among processes, as `probe.Turns`, by the evaluator's own lock: those that verify step aside for those that time."""

    def __init__(self, device: str = "cuda:0") -> None:
        self.lock, self.device = DeviceLock(device), device

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Share the GPU with others that check and verify."""
        with self.lock.shared():
            yield

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Have the GPU alone, and quiet: what a judge had sent when it stepped aside runs on. (One original of 14 took 1.31 times as long so.)"""
        with self.lock.exclusive():
            if self.device != "cpu":
                self._quiet()
            yield

    @staticmethod
    def _quiet() -> None:
        import torch

        own, began, quiet = torch.zeros(1, device="cuda"), time.monotonic(), 0
        while quiet < LOOKS and time.monotonic() - began < MOST_LOOKING:
            at = time.perf_counter()
            own.add_(1)
            torch.cuda.synchronize()
            quiet = quiet + 1 if time.perf_counter() - at < QUIET else 0
