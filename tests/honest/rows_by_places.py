"""The places first, the rows by them."""

import torch
from torch import nn

TASK = "kept_rows"


class ModelNew(nn.Module):
    def forward(self, x, score):
        where = torch.nonzero(score.gt(0)).flatten()
        return x.index_select(0, where), where
