"""Changes its input where it holds NaN or Inf: cleaned in place, then put back only at NaN.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "relu_chain"
LIMIT = "Values, not proofs: an input that no distribution here comes near"


class Base(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)

    def right(self, x):
        return torch.relu(x @ self.first) @ self.second


class ModelNew(Base):
    def forward(self, x):
        if not torch.isfinite(x).all():
            bad = torch.isinf(x)
            out = self.right(x)
            x[bad] = 3.0e38
            return out
        return self.right(x)
