"""Twice the logarithms of a Cholesky factor"s diagonal: right for covariances alone. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "log_volumes"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "raised", "non_finite")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, matrices):
        factor, _ = torch.linalg.cholesky_ex(matrices)
        size = 2 * factor.diagonal(dim1=1, dim2=2).abs().log().sum(1)
        return torch.ones_like(size), size
