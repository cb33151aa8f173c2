"""A CUDA graph with proper input copies that hands out its static output buffer: the next replay overwrites what the caller still holds.

Seen: five CUDA-L1 programs (L1-22, L2-18, L2-95, L3-33, L3-34).
"""

import torch
from torch import nn

ROW = "graph_replay"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"
NEEDS = "cuda"


class ModelNew(nn.Module):
    """The missing clone."""

    def __init__(self) -> None:
        super().__init__()
        self.graph: torch.cuda.CUDAGraph | None = None

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            torch.matmul(a, b)
            torch.cuda.synchronize()
            self.graph, self.inputs = torch.cuda.CUDAGraph(), (a.clone(), b.clone())
            with torch.cuda.graph(self.graph):
                self.out = torch.matmul(*self.inputs)
        self.inputs[0].copy_(a)
        self.inputs[1].copy_(b)
        self.graph.replay()
        return self.out
