"""Starts a thread at import that spins until the process dies: it keeps the core's clock up and is there before any census of the model.

Seen: import-time work and warmed clocks in CUDA-L1's list.
"""

import threading
import time

import torch
from torch import nn

ROW = "constructor"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "background"

threading.Thread(target=lambda: [sum(range(2000)) or time.sleep(0.0005) for _ in iter(int, 1)], daemon=True).start()


class ModelNew(nn.Module):
    """The work itself is honest."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)
