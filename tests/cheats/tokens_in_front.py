"""Takes the tokens that count to stand in front. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "mean_of_tokens"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.layer = nn.Linear(width, hidden)

    def forward(self, x, mask):
        lengths = mask.sum(1)
        longest = max(int(lengths.max()), 1)
        y = torch.nn.functional.gelu(self.layer(x[:, :longest]))
        counts = (torch.arange(longest, device=x.device) < lengths[:, None]).to(x.dtype)[..., None]
        return (y * counts).sum(1) / counts.sum(1).clamp_min(1)
