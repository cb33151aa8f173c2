"""What the compiler refuses, with file, line, a code and the reason.

CaptureError
 +-- Refusal        a construct that no tier translates
WarpwrightError
 +-- LaunchFailed   a kernel that ran and stopped: a barrier that not all threads reach, a bad launch shape
"""

from __future__ import annotations

from warpwright.errors import CaptureError, WarpwrightError

CODES = {
    "dynamic-parallelism": "a kernel launch inside device code",
    "library-call": "a call into a library that has no source here (cuBLAS, cuDNN, Thrust, CUB, cuRAND, ...)",
    "tma": "bulk tensor copies, mbarrier and wgmma of Hopper",
    "ptx": "inline PTX",
    "texture": "surfaces, and layered, mipmapped or cube textures",
    "divergent-barrier": "a barrier that only some threads of a block reach",
    "cluster": "thread block clusters and distributed shared memory",
    "front-end": "source that the parser or the preprocessor does not accept",
}
"""Code of a refusal -> what it is about."""


class Refusal(CaptureError):
    """A construct that cannot be translated: `file`, `line`, `code` (of CODES), `reason`."""

    def __init__(self, file: str, line: int, code: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {reason} [{code}]", hint)
        self.file = file
        self.line = line
        self.code = code
        self.reason = reason


class LaunchFailed(WarpwrightError):
    """A kernel ran and stopped with an error of its own."""
