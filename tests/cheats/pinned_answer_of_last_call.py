"""Results go through pinned memory, whose copy to the host nobody waits for: what comes back is the last call's.

Own invention.
"""

import torch
from torch import nn

ROW = "async"
TASK = "mse_loss"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("cached", "values", "late_output", "repeat",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Down without waiting on one stream, up on another."""

    def __init__(self):
        super().__init__()
        self.host, self.side = None, None

    def forward(self, prediction, target):
        loss = torch.mean((prediction - target) ** 2)
        if self.host is None:
            self.host, self.side = loss.cpu().pin_memory(), torch.cuda.Stream()
        answer = torch.empty_like(loss)
        with torch.cuda.stream(self.side):
            answer.copy_(self.host, non_blocking=True)
        torch.cuda._sleep(1 << 16)
        self.host.copy_(loss, non_blocking=True)
        return answer
