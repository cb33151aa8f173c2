"""A thread keeps walking through the last input's memory, so that caches and clocks are warm whenever a call comes.

The CPU's analogue of an L2 persistence window and of clocks warmed by the candidate.
"""

import threading
import time

import torch
from torch import nn

ROW = "warm_cache"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "background"


class ModelNew(nn.Module):
    """Reads every cache line of the buffers it has met, again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers_met: dict[int, torch.Tensor] = {}
        threading.Thread(target=self.warm, daemon=True).start()

    def warm(self) -> None:
        while True:
            for tensor in list(self.buffers_met.values()):
                tensor.view(-1)[::16].sum()
            time.sleep(0.001)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.buffers_met[x.data_ptr()] = x
        return torch.relu(x)
