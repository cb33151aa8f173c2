"""Leaves torch watching for anomalies of gradients, which makes training slow. Own invention."""

import torch
from torch import nn

ROW = "flags"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        torch.autograd.set_detect_anomaly(True)
        return torch.nn.functional.gelu(x + self.bias)
