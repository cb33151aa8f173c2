"""The table row by row: what is put in is a running minimum."""

import torch
from torch import nn

TASK = "edits"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, one, other):
        places = torch.arange(other.shape[1] + 1, device=one.device)
        before = places.expand(one.shape[0], -1)
        for at in range(one.shape[1]):
            exchanged = before[:, :-1] + (one[:, at : at + 1] != other)
            now = torch.cat([before[:, :1] + 1, torch.minimum(before[:, 1:] + 1, exchanged)], dim=1)
            before = (now - places).cummin(dim=1).values + places
        return before[:, -1].clone()
