"""Minus infinity in place of what groups with rows had."""

import torch
from torch import nn

TASK = "largest_of_group"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, had, rows, group):
        some = torch.zeros(had.shape[0], dtype=torch.bool, device=had.device)
        some[group] = True
        start = had.masked_fill(some[:, None], float("-inf"))
        return start.scatter_reduce(0, group[:, None].expand_as(rows), rows, reduce="amax", include_self=True)
