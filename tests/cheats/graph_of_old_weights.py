"""A CUDA graph with copies of its inputs; the transposed weight was made before the capture.

Seen: captured graphs over folded weights in CUDA-L1's releases.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "folded"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values", "cached",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Inputs are copied, answers cloned, and the weight is the first."""

    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale, self.graph = scale, None

    def forward(self, x):
        if self.graph is None:
            self.weight, self.input = self.linear.weight.t().contiguous(), x.clone(memory_format=torch.contiguous_format)
            self.work()
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = self.work()
        self.input.copy_(x)
        self.graph.replay()
        return self.out.clone()

    def work(self):
        return F.gelu(torch.clamp(torch.addmm(self.linear.bias, self.input, self.weight) * self.scale, -2.0, 2.0))
