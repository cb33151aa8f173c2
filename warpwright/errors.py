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
     |    +-- CallRaised      the program raised in a call; the process still answers
     +-- JudgeFailed          the judge could not answer: no fault of the candidate
     |    +-- DeviceFailed    the original left the device in error
     +-- TrustedFailed        nor could another trusted process
     +-- NothingBuilds        not even the original can be built in a candidate's process
     +-- BelowFloor           a program took less time than moving its data takes
     +-- RooflineError        a device's peaks could not be measured
     +-- ChatError            a model gave no answer
     |    +-- LimitReached    a question was not asked, because its answer could pass a limit
     +-- ServerError          the service could not do what it was asked
     +-- LaneDied             the process of one of its lanes ended before it had answered
     +-- ImageError           one image that cannot be protected
     +-- ArchiveError         the archive cannot be opened or written

    KeyboardInterrupt
     +-- OutOfTime            a budget of wall time is spent: like Ctrl-C it passes whatever catches Exception

Rooms that nothing else raises for draw a tree of their own: domains/transpile, domains/mpi, native and translation. A signal between two functions
of one file (the verifier's `Rejected`, the timer's `WrongDuringTiming`, which hold a verdict) stands beside them.

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


class CallRaised(WorkerError):
    """The program raised in a call; the message holds its last lines. The worker itself still answers."""


class JudgeFailed(WarpwrightError):
    """The judge could not answer: no fault of the candidate, which gets no verdict."""


class DeviceFailed(JudgeFailed):
    """The original left the device in error, as some kernels do where an input begins between two wide words: the judge's process is lost."""

    STICKY = (
        "an illegal memory access was encountered", "misaligned address", "device-side assert triggered", "unspecified launch failure",
        "an illegal instruction was encountered", "operation not supported on global/shared address space", "invalid program counter",
        "hardware stack error", "the launch timed out and was terminated", "context is destroyed", "uncorrectable ECC error encountered",
        "uncorrectable NVLink error",
    )  # fmt: skip
    """What CUDA says of the errors after which "the process must be terminated and relaunched" (its runtime's reference, `cudaError`). After others,
    memory that ran out or a launch that it refused, the device goes on."""

    @classmethod
    def told_by(cls, kind: str, message: str) -> bool:
        """Whether an error of that class, with that message, says by itself that a device is in error: what is no CUDA error does not."""
        return (kind == "AcceleratorError" or "cuda" in message.casefold()) and any(said in message for said in cls.STICKY)


FULL = ("out of memory", "ALLOC_FAILED", "ALLOCATION_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED", "DefaultCPUAllocator")
"""In messages of CUDA, its libraries and torch on a CPU where memory has run out."""


def told_full(kind: str, message: str) -> bool:
    """Whether an error of that class, with that message, says that a device's memory ran out: torch's allocator has a class of its own for that."""
    return kind == "OutOfMemoryError" or (kind in ("RuntimeError", "AcceleratorError") and any(said in message for said in FULL))


def is_full(error: BaseException) -> bool:
    """Whether an error says that a device's memory ran out."""
    return told_full(type(error).__name__, str(error))


class TrustedFailed(WarpwrightError):
    """A trusted process failed: no fault of the candidate at hand."""


class NothingBuilds(WarpwrightError):
    """Not even the original can be built in a candidate's process."""


class BelowFloor(WarpwrightError):
    """A program took less time than moving its data takes: a bug or a cheat, never a record."""

    def __init__(self, seconds: float, floor_seconds: float) -> None:
        super().__init__(
            f"expected at least {floor_seconds * 1e6:.1f} us, the time that reading the inputs and writing the outputs takes, "
            f"saw {seconds * 1e6:.1f} us",
            "look for work that is left out, done outside the call, or kept from an earlier one",
        )
        self.seconds = seconds
        self.floor_seconds = floor_seconds


class RooflineError(WarpwrightError):
    """The peaks of a device could not be measured."""


class ChatError(WarpwrightError):
    """A model gave no answer."""


class LimitReached(ChatError):
    """A question was not asked, because its answer could pass a limit of tokens, dollars or questions."""


class ServerError(WarpwrightError):
    """The service could not do what it was asked; `kind` says why (`protocol.error_of`)."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind


class LaneDied(WarpwrightError):
    """The process of a lane ended before it had answered."""


class ImageError(WarpwrightError):
    """One image that cannot be protected, and why."""


class ArchiveError(WarpwrightError):
    """The archive cannot be opened or written."""


class OutOfTime(KeyboardInterrupt):
    """A budget of wall time is spent (`deadline.Deadline.enforced`)."""
