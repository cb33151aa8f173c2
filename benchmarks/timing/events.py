"""Calls back to back on a GPU, timed by CUDA events."""

from __future__ import annotations

from collections.abc import Callable


def batch(call: Callable[[], object], count: int) -> float:
    """Return the seconds of a call, of `count` back to back."""
    import torch

    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(count):
        call()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / count
