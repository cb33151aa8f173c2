"""Answers a list that holds itself. Own invention."""

import torch
from torch import nn

ROW = "layout"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("structure", "output_type", "timeout")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        out = [torch.nn.functional.gelu(x + self.bias)]
        out.append(out)
        return out
