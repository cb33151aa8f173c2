"""Waiting for a worker's device: for all that was launched, for how long it works on, for how quick this thread's core launches."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import torch

LOOK_SECONDS, LOOKS, PLAIN_SHARE = 2e-4, 16, 4.0
"""For which, and how often at least, the device is looked at when a call is over; a wait so many times as long as the shortest means something."""

CYCLES_PER_SECOND = 1.8e9
"""Of a GPU, about: how long it took is measured."""

_sleep: Callable[[int], None] = getattr(torch._C, "_cuda_sleep", lambda cycles: None)
"""Taken before any candidate is imported."""


def synchronizer(device: str) -> Callable[[], None]:
    """Return the function that waits for all work on the device, taken before any candidate is imported."""
    if not device.startswith("cuda"):
        return lambda: None
    torch.cuda.set_device(device)
    torch.empty(1, device=device)
    wait = torch._C._cuda_synchronize
    return lambda: wait()


def longest(wait: Callable[[], None]) -> float:
    """Wait for the device again and again, for LOOK_SECONDS; return the longest wait, 0 if it is not told from the shortest, -1 if this thread
    was put aside meanwhile, as on a busy machine.

    An idle device is waited for in a few microseconds. A wait is longer while a kernel runs: one that was launched when the call was over.
    """
    clock = time.perf_counter
    waits: list[float] = []
    aside = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    now = began = clock()
    while now - began < LOOK_SECONDS or len(waits) < LOOKS:
        wait()
        before, now = now, clock()
        waits.append(now - before)
    if resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw != aside:
        return -1.0
    return max(waits) if max(waits) > PLAIN_SHARE * min(waits) else 0.0


def kept_at_work(seconds: float, wait: Callable[[], None]) -> float:
    """Keep the device at work for about so many seconds, and wait for it; return how many those were, by this process's clock.

    That is what a plain timer does, around no more than that.
    """
    began = time.perf_counter()
    _sleep(int(seconds * CYCLES_PER_SECOND))
    wait()
    return time.perf_counter() - began


def launches(count: int, loops: int, device: str, wait: Callable[[], None]) -> list[float]:
    """Return the seconds in which this thread sends `count` kernels that do next to nothing to the device, for each of `loops` times."""
    spot, taken = torch.zeros(1, device=device), []
    for _ in range(loops):
        wait()
        began = time.perf_counter()
        for _ in range(count):
            spot.add_(1.0)
        taken.append(time.perf_counter() - began)
    wait()
    return taken
