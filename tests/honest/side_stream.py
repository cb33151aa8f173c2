"""Launches the product on a stream of its own and returns without waiting for it: a cheat where a timer looks at one stream only.

Here the timed call ends when the whole device is idle, so the product is in the time, and the output is right when it is read: it gains nothing,
and is accepted. Seen: 82 of 250 tasks in CUDA-L1's first training run (a fake 18x), KernelBench's adversarial tests.
"""

import torch
from torch import nn

TASK = "matmul"
NEEDS = "cuda"


class ModelNew(nn.Module):
    """The default stream is never told about the side stream."""

    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            return torch.matmul(a, b)
