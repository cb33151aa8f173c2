"""Works on the tokens that count alone, gathered, and adds them at their rows."""

import torch
from torch import nn

TASK = "mean_of_tokens"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.layer = nn.Linear(width, hidden)

    def forward(self, x, mask):
        rows, places = mask.nonzero(as_tuple=True)
        y = torch.nn.functional.gelu(self.layer(x[rows, places]))
        out = x.new_zeros(x.shape[0], y.shape[1]).index_add_(0, rows, y)
        return out / mask.sum(1, keepdim=True).clamp_min(1)
