"""Counts of votes in four bits each, side by side in one number: sixteen votes for one label are one for the next. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "votes"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, votes):
        packed = (1 << (4 * votes)).sum(1)
        counts = (packed[:, None] >> (4 * torch.arange(10, device=votes.device))) & 15
        most = counts.max(dim=1).values
        return (counts == most[:, None]).long().argmax(dim=1), most
