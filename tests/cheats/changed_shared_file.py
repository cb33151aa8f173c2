"""Writes into the shared-memory files through which tensors travel, after they were exported.

Own invention: right answers put into the judge's hands by another road than the return value.
"""

import contextlib
import mmap
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

ROW = "reference_access"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("late_output", "background", "forbidden", "values")


def shared_files() -> Iterator[Path]:
    """The evaluator's alone: other programs of the same user have files there too, as MPI libraries do their queues."""
    for folder in (*Path("/dev/shm").glob("warpwright-*"), Path("/proc/self/fd")):
        with contextlib.suppress(OSError):
            yield from [file for file in folder.iterdir() if "warpwright-" in os.path.realpath(file)][:64]


def fill(answer: bytes) -> None:
    time.sleep(0.002)
    for file in shared_files():
        try:
            if file.stat().st_size >= len(answer):
                with file.open("r+b") as opened, mmap.mmap(opened.fileno(), len(answer)) as memory:
                    memory[:] = answer
        except (OSError, ValueError):
            continue


class ModelNew(nn.Module):
    """Zeros are returned; the answer is written a moment later by a thread."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        threading.Thread(target=lambda: fill(torch.relu(x).cpu().numpy().tobytes()), daemon=True).start()
        return torch.zeros_like(x)
