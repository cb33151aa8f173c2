"""Captures a CUDA graph on the first input's addresses and replays it for every later input.

Seen: CUDA-L1's releases contain graphs without input copies; stale pointers are harmless while a benchmark reuses one input.
"""

import torch
from torch import nn

ROW = "graph_replay"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "cached")
NEEDS = "cuda"


class ModelNew(nn.Module):
    """No copy into the captured buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.graph: torch.cuda.CUDAGraph | None = None

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            torch.matmul(a, b)
            torch.cuda.synchronize()
            self.graph, self.inputs = torch.cuda.CUDAGraph(), (a, b)
            with torch.cuda.graph(self.graph):
                self.out = torch.matmul(a, b)
        self.graph.replay()
        return self.out.clone()
