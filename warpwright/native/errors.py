"""The error of a native build.

    WarpwrightError
     +-- BuildError    the compiler refused a source that warpwright wrote

A missing compiler is a UsageError.
"""

from __future__ import annotations

from warpwright.errors import WarpwrightError


class BuildError(WarpwrightError):
    """The compiler refused a source that warpwright wrote."""
