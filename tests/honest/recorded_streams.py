"""Works on a stream of its own and tells the allocator who uses what.

Own invention.
"""

import torch
from torch import nn

TASK = "relu_chain"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """record_stream on all that crosses."""

    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)
        self.side = None

    def forward(self, x):
        self.side = self.side or torch.cuda.Stream()
        here = torch.cuda.current_stream()
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            x.record_stream(self.side)
            out = torch.relu(x @ self.first) @ self.second
        here.wait_stream(self.side)
        out.record_stream(here)
        return out
