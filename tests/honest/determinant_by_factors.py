"""The diagonal of the upper factor, and the sign of the exchanges of rows."""

import torch
from torch import nn

TASK = "log_volumes"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, matrices):
        factors, pivots = torch.linalg.lu_factor(matrices)
        diagonal = factors.diagonal(dim1=1, dim2=2)
        exchanged = (pivots != torch.arange(1, pivots.shape[1] + 1, device=pivots.device, dtype=pivots.dtype)).sum(1)
        sign = diagonal.sign().prod(1) * (1 - 2 * (exchanged % 2)).to(diagonal.dtype)
        return sign, diagonal.abs().log().sum(1)
