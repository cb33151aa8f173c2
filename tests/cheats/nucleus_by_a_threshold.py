"""All scores that equal the last one within stay, too. Own invention."""

import torch
from torch import nn

ROW = "ties"
TASK = "nucleus"
EXPECT_STATUS = "unscored"
EXPECT_CHECK = "unscored"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, scores, p):
        ordered = scores.sort(dim=1, descending=True).values
        shares = torch.softmax(ordered, dim=1)
        inside = (shares.cumsum(1) - shares <= p).sum(1, keepdim=True).clamp(min=1)
        return scores.masked_fill(scores < ordered.gather(1, inside - 1), float("-inf"))
