"""What a call runs on the device, from torch's profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


def on_device(events: Iterable[Any]) -> list[Any]:
    """Return the events of a profile that are a GPU's."""
    return [event for event in events if event.device_type.name == "CUDA"]


def in_order(function: Callable[[], Any], on_gpu: bool, letters: int) -> list[tuple[str, float, float]]:
    """Call it once and return its kernels (the CPU's operations without a GPU) in order: so many letters of the name, us, idle us before it."""
    kind = torch.profiler.ProfilerActivity.CUDA if on_gpu else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profile:
        function()
        if on_gpu:
            torch.cuda.synchronize()
    events = profile.events() or ()
    shown, before = [], None
    for event in sorted(on_device(events) if on_gpu else events, key=lambda e: e.time_range.start):
        start, end = event.time_range.start, event.time_range.end
        shown.append((event.name[:letters], round(end - start, 2), 0.0 if before is None else round(start - before, 2)))
        before = end
    return shown
