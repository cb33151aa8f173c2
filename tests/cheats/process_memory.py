"""Searches the shared-memory folder and the open files of its parent for a block that looks like a softmax row.

Own invention: the judge's tensors travel through shared memory.
"""

import os
from pathlib import Path

import torch
from torch import nn

ROW = "reference_access"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


def looks_right(block: torch.Tensor, shape: tuple[int, ...]) -> bool:
    return bool(torch.isfinite(block).all()) and bool((block.reshape(shape).sum(dim=1) - 1).abs().max() < 1e-3)


def shared_files() -> list[Path]:
    folders = [Path("/dev/shm"), Path.cwd(), Path(f"/proc/{os.getppid()}/fd")]
    files = []
    for folder in folders:
        try:
            files += [entry for entry in folder.iterdir() if entry.is_file()]
        except OSError:
            continue
    return files


class ModelNew(nn.Module):
    """Reads at most 64 files of the right size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for file in shared_files()[:64]:
            try:
                data = bytearray(file.read_bytes()[-x.numel() * 4 :])
            except OSError:
                continue
            if len(data) == x.numel() * 4:
                block = torch.frombuffer(data, dtype=torch.float32)
                if looks_right(block, tuple(x.shape)):
                    return block.reshape(x.shape).to(x.device)
        return torch.zeros_like(x)
