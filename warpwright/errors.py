"""Every error that warpwright raises on purpose.

    WarpwrightError
     +-- UsageError           the user asked for something that cannot be (exit code 2)
     |    +-- TaskError       a task file cannot be loaded or does not define what it should
     |    +-- MissingExtra    an optional dependency is absent; names the extra to install
     +-- NotApplicable        an action that is not legal at this place of this IR
     +-- CaptureError         a program that the domain cannot read; the reason is shown and the original is kept
     +-- WorkerError          a worker process did not answer as it should; `evaluate` turns it into a status
     |    +-- WorkerDied      it ended: exit code or signal in the message
     |    +-- WorkerTimeout   it did not answer in time and was killed
     |    +-- WorkerProtocol  it answered nonsense
     |    +-- WorkerRan       it ran while it was stopped
     +-- ArchiveError         the archive cannot be opened or written

    KeyboardInterrupt
     +-- OutOfTime            a budget of wall time is spent: like Ctrl-C it passes whatever catches Exception

A message has three parts: what was expected, what was seen, and (second argument) what to do.
"""

from __future__ import annotations

from pathlib import Path


class WarpwrightError(Exception):
    """Base of all of them: `message`, and `hint`, which says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class UsageError(WarpwrightError):
    """The user asked for something that cannot be."""


class TaskError(UsageError):
    """A task file cannot be loaded or does not define what it should."""


class MissingExtra(UsageError):
    """An optional dependency is absent."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}, which is not installed", how_to_install(extra))
        self.extra = extra


def how_to_install(extra: str) -> str:
    """Return the command that installs what an extra names, for a package from an index or from a checkout."""
    checkout = Path(__file__).resolve().parents[1]
    return f"pip install '{checkout if (checkout / 'pyproject.toml').is_file() else 'warpwright'}[{extra}]'"


class NotApplicable(WarpwrightError):
    """An action that is not legal at this place of this IR."""


class CaptureError(WarpwrightError):
    """A program that the domain cannot read."""


class WorkerError(WarpwrightError):
    """A worker process did not answer as it should."""


class WorkerDied(WorkerError):
    """The worker process ended."""


class WorkerTimeout(WorkerError):
    """The worker process did not answer in time and was killed."""


class WorkerProtocol(WorkerError):
    """The worker process answered something that the protocol does not allow."""


class WorkerRan(WorkerError):
    """The worker process ran while it was to stand still."""


class ArchiveError(WarpwrightError):
    """The archive cannot be opened or written."""


class OutOfTime(KeyboardInterrupt):
    """A budget of wall time is spent (`deadline.Deadline.enforced`)."""
