"""What the driver says of this machine's GPUs without CUDA: libnvidia-ml makes no context and needs no torch."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

NAME_BYTES = 96


@cache
def name(device: str) -> str:
    """Return the name of a GPU such as cuda:0, as torch gives it.

    "" where the driver is not there, where CUDA is not shown the device, and where names would not tell: GPUs of several kinds, which CUDA counts in
    an order of its own, and GPUs that are split (MIG).
    """
    number = int(device.partition(":")[2] or 0)
    if not _shown(number):
        return ""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2():
            return ""
        names = _names(library)
        library.nvmlShutdown()
    except (OSError, AttributeError):  # no driver, or one without one of these functions
        return ""
    return names[0] if len(set(names)) == 1 and number < len(names) else ""


def _names(library: Any) -> list[str]:
    """Return the name of each GPU; "" for one that does not say it, or is split."""
    count = ctypes.c_uint()
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    names = []
    for index in range(count.value):
        handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(NAME_BYTES)
        split, pending = ctypes.c_uint(), ctypes.c_uint()
        failed = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
        failed = failed or library.nvmlDeviceGetName(handle, text, ctypes.c_uint(NAME_BYTES))
        library.nvmlDeviceGetMigMode(handle, ctypes.byref(split), ctypes.byref(pending))
        names.append("" if failed or split.value else text.value.decode(errors="replace"))
    return names


def _shown(number: int) -> bool:
    """Is CUDA shown so many devices?"""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return True
    visible = [one.strip() for one in chosen.split(",")]
    return number < len(visible) and not any(one in ("", "-1") for one in visible[: number + 1])
