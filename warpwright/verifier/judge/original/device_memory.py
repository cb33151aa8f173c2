"""The judge's share of a GPU's memory.

A task that takes little has the smallest share, and nothing has to be worked out for it: to find out on the meta device what a call takes, torch
imports its whole compiler, which took the greater part of the 4 to 6 s that a cold judge came up in on an H200.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from warpwright.base import Task
from warpwright.errors import WarpwrightError

FEWEST_BYTES, EAGER_PEAKS = 24 << 30, 16
"""What a judge may hold on a GPU: this many bytes, or this many times the eager peak if that is more.

A matrix of 4 GiB of weights is held once in the model, twice in its float64 copy, and once for the initial and each of four shipped states.
"""


class Memory:
    """Keeps the judge's share of a GPU small: without a limit, cuDNN takes workspaces of 80 GiB for a float64 convolution."""

    def __init__(self, device: str) -> None:
        self.device, self.limited = device, device.startswith("cuda")
        self._most = self._failures = 0

    def limit(self, task: Task | None) -> None:
        """Set the share that a task needs; the smallest one without a task. What the meta device cannot run, runs without a limit."""
        if not self.limited:
            return
        self._failures = self._refusals()
        wanted = FEWEST_BYTES
        if task is not None:
            from warpwright.tasks import footprint

            try:
                wanted = max(FEWEST_BYTES, EAGER_PEAKS * footprint.peak_bytes(task))
            except WarpwrightError:
                torch.cuda.set_per_process_memory_fraction(1.0, self.device)
                return
        self._set(wanted)

    def _set(self, wanted: int) -> None:
        total = int(torch.cuda.get_device_properties(self.device).total_memory)
        torch.cuda.set_per_process_memory_fraction(min(0.9, wanted / total), self.device)

    def _held(self) -> int:
        return int(torch.cuda.max_memory_allocated(self.device))

    def _refusals(self) -> int:
        return int(torch.cuda.memory_stats(self.device).get("num_ooms", 0))

    @property
    def ran_out(self) -> bool:
        """Whether memory was refused within the limit: whoever went on without it has seen less of the original than there is."""
        return self.limited and self._refusals() > self._failures

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, the original is called once: note what is held at most."""
        if self.limited:
            torch.cuda.reset_peak_memory_stats(self.device)
        yield
        if self.limited:
            self._most = self._held()

    @property
    def took_much(self) -> bool:
        """Whether so much was held that the smallest share may not be enough: an eager call by itself takes no more than that."""
        return EAGER_PEAKS * self._most > FEWEST_BYTES

    def free(self) -> None:
        """Let go of what nobody holds any more."""
        gc.collect()
        if self.limited:
            torch.cuda.empty_cache()
