"""Every error of this domain, and the codes of what the compiler refuses.

    WarpwrightError
     +-- CaptureError
     |    +-- Refusal           a construct that no tier translates: file, line, code and reason
     +-- NotApplicable
     |    +-- DoesNotApply      a tier, a pass or a technique does not take this form: the next one is tried
     +-- UsageError
     |    +-- BadArgument       an argument of another type, or their number; also a TypeError
     |    +-- BadValue          an argument or a shape out of its range, an array that cannot be written; also a ValueError
     +-- LaunchFailed           a kernel that ran and stopped: a barrier that not all threads reach, a bad launch shape
     +-- Demote                 a signal between the parts of barrier fission, which starts again with it; it leaves them never
"""

from __future__ import annotations

from warpwright.errors import CaptureError, NotApplicable, UsageError, WarpwrightError

CODES = {
    "dynamic-parallelism": "a kernel launch inside device code",
    "library-call": "a call into a library that has no source here (cuBLAS, cuDNN, Thrust, CUB, cuRAND, ...)",
    "tma": "bulk tensor copies, mbarrier and wgmma of Hopper",
    "ptx": "inline PTX",
    "texture": "surfaces, and layered, mipmapped or cube textures",
    "divergent-barrier": "a barrier that only some threads of a block reach",
    "cluster": "thread block clusters and distributed shared memory",
    "compiler": "source that the C++ compiler does not accept once it is translated",
    "not-cuda": "source that every CUDA compiler rejects, though a C++ compiler would take it",
    "front-end": "source that the parser or the preprocessor does not accept",
}
"""Code of a refusal -> what it is about."""


class Refusal(CaptureError):
    """A construct that cannot be translated: `file`, `line`, `code` (of CODES), `reason`."""

    def __init__(self, file: str, line: int, code: str, reason: str, hint: str = "", column: int = 0) -> None:
        super().__init__(f"{file}:{line}:{f'{column}:' if column else ''} {reason} [{code}]", hint)
        self.file = file
        self.line = line
        self.column = column
        """0 where only the line is known."""
        self.code = code
        self.reason = reason


class BadArgument(UsageError, TypeError):
    """An argument of a kernel is of another type than its parameter, or there are too many or too few."""


class BadValue(UsageError, ValueError):
    """An argument of a kernel, or its grid or block, is out of range."""


class LaunchFailed(WarpwrightError):
    """A kernel ran and stopped with an error of its own."""


class DoesNotApply(NotApplicable):
    """A tier, a pass or a technique does not take a form: the reason, and the line of the CUDA source (0 where nobody reads it)."""

    def __init__(self, line: int = 0, reason: str = "another form") -> None:
        super().__init__(f"line {line}: {reason}")


class Demote(WarpwrightError):
    """Uniform variables that have to be kept for each thread after all: `keys`."""

    def __init__(self, keys: set[int]) -> None:
        super().__init__(f"{len(keys)} variables are kept for each thread")
        self.keys = keys
