"""Answers with a million empty tensors beside the right one. Own invention."""

import torch
from torch import nn

ROW = "layout"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("structure", "resources", "timeout")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.nn.functional.gelu(x + self.bias), [torch.empty(0, device=x.device)] * 1_000_000
