"""Leaves saved tensors packed in half precision. Own invention."""

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
        torch._C._autograd._push_saved_tensors_default_hooks(torch.Tensor.half, torch.Tensor.float)
        return torch.nn.functional.gelu(x + self.bias)
