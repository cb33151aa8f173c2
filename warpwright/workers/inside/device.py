"""Asks a device whether it is in error."""

from __future__ import annotations

from collections.abc import Callable


def device_failure(synchronize: Callable[[], None]) -> str:
    """Return what the device is in error for, or "": an error of a kernel stays, and every later use of the device raises it again."""
    try:
        synchronize()
    except Exception as error:
        return (str(error).strip().splitlines() or [type(error).__name__])[0]
    return ""
