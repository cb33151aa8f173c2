"""How a run of the loop is to go, and what it gave."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from warpwright.base import Record, Task
from warpwright.deadline import Deadline
from warpwright.errors import WarpwrightError


@dataclass(frozen=True)
class Course:
    """How a run goes on beside its search: who is told, what ends it early, what it draws."""

    on_record: Callable[[Record], None] | None = None
    """Called with each record, once it is in the archive."""
    should_stop: Callable[[], bool] | None = None
    """Asked before each proposal."""
    seed: int = 0
    batch: int = 1
    """Proposals that a search is asked for at once."""
    clock: Callable[[], float] = time.monotonic
    deadline: Deadline | None = None
    """Stands in for the budget's seconds where all of the run is to fit; whoever gives one enforces it."""


@dataclass(frozen=True)
class Outcome:
    """What a run of the loop gave."""

    task: Task
    best: Record | None
    """The fastest proven program: a candidate that is FASTER than the best baseline, else that baseline itself."""
    records: tuple[Record, ...]
    """The record of every baseline and proposal, in order; a repeated proposal's record is repeated."""
    stopped: str
    """Why the loop ended, in words."""
    proposals: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    """Ctrl-C, or `Course.should_stop` said so."""
    failure: WarpwrightError | None = None
    """Our own failure that ended the run (the archive could not be written). What was measured until then is in `records`."""
    left_out: tuple[str, ...] = ()
    """What the budget of wall time had no room for, in words."""
    exhausted: bool = False
    """The search ended by itself: more time would have changed nothing."""
    cut: bool = False
    """The deadline came in the middle of something."""
    unanswered: int = 0
    """Questions that a model did not answer: the same run asks them again."""
