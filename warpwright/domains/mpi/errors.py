"""The errors of the mpi domain.

    WarpwrightError
     +-- DeviceError    the GPU could not be used for a copy
"""

from __future__ import annotations

from warpwright.errors import WarpwrightError


class DeviceError(WarpwrightError):
    """The GPU could not be used for a copy."""
