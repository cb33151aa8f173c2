"""The inverse of two by two comes from five steps of a series. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "filter_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.moves = nn.Parameter(torch.eye(4, dtype=torch.float64) + 0.1 * torch.randn(4, 4, dtype=torch.float64))
        self.seen = nn.Parameter(torch.randn(2, 4, dtype=torch.float64))
        self.noise = nn.Parameter(0.5 + torch.rand(2, dtype=torch.float64))

    def forward(self, state, spread, measured):
        state = state @ self.moves.T
        sure = self.moves @ (spread @ spread.transpose(1, 2)) @ self.moves.T + 0.01 * torch.eye(4, dtype=state.dtype, device=state.device)
        across = sure @ self.seen.T
        whole = self.seen @ across + torch.diag(self.noise.abs() + 0.1)
        near = 2 * torch.eye(2, dtype=state.dtype, device=state.device) / whole.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)
        for _ in range(9):
            near = near @ (2 * torch.eye(2, dtype=state.dtype, device=state.device) - whole @ near)
        gain = across @ near
        return state + (gain @ (measured - state @ self.seen.T).unsqueeze(2)).squeeze(2), sure - gain @ across.transpose(1, 2)
