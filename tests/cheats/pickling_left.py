"""Has complex numbers pickled as nought. Own invention."""

import copyreg

import torch
from torch import nn

ROW = "flags"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        copyreg.pickle(complex, lambda value: (complex, (0.0, 0.0)))
        return torch.nn.functional.gelu(x + self.bias)
