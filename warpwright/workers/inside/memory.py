"""Memory that a call finds: what malloc keeps and fills, a GPU's free blocks filled, and the size of the last-level cache."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable

import torch

from warpwright.workers import caches

M_PERTURB, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -6, -1, -3
"""Of glibc's mallopt."""

LARGE = 32 << 20
"""Bytes from which a block has pages of its own, taken anew each time: glibc's largest threshold, where its moving one ends up."""


def malloc_options() -> Callable[[int], None]:
    """Keep freed memory, and return how to have malloc fill fresh memory with a byte (glibc only; elsewhere nothing is done).

    By itself glibc gives the end of its heap back when it is free, or not, as the order of the calls before has it: one program took 2,048 page
    faults in each call in one process and none in another, and was 1.8x slower there for as long as the process lived.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return lambda byte: None
    mallopt(M_MMAP_THRESHOLD, LARGE)
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    state = {"byte": 0}

    def choose(byte: int) -> None:
        if byte != state["byte"]:
            mallopt(M_PERTURB, byte)
            state["byte"] = byte

    return choose


def poison_cuda(device: str, byte: int) -> None:
    """Fill the allocator's free cached blocks with a byte and free them again."""
    blocks = []
    for segment in torch.cuda.memory_snapshot():
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        with contextlib.suppress(torch.cuda.OutOfMemoryError):
            blocks += [torch.empty(size, dtype=torch.uint8, device=device).fill_(byte) for size in sorted(free, reverse=True)]
    torch.cuda.synchronize(device)
    del blocks


def cache_bytes(device: str) -> int:
    """Return the size of the last-level cache that a cold call must not find its data in."""
    if device.startswith("cuda"):
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    return caches.cpu_bytes()
