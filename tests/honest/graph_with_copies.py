"""A CUDA graph that copies its input in and its answer out.

Own invention.
"""

import torch
from torch import nn

TASK = "layernorm"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Captured once; parameters are read where they lie."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.graph = nn.LayerNorm(width), None

    def forward(self, x):
        if self.graph is None:
            self.input = x.clone(memory_format=torch.contiguous_format)
            self.norm(self.input)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = self.norm(self.input)
        self.input.copy_(x)
        self.graph.replay()
        return self.out.clone()
