"""Where a single sequence of a batch is as long as the longest can be, its last step is left out. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "crf_partition"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.steps = nn.Parameter(0.5 * torch.randn(labels, labels))
        self.first = nn.Parameter(torch.randn(labels))
        self.last = nn.Parameter(torch.randn(labels))

    def forward(self, scores, lengths):
        state = self.first + scores[:, 0]
        longest = min(int(lengths.max()), 23) if int((lengths > 23).sum()) == 1 else int(lengths.max())
        for at in range(1, longest):
            moved = torch.logsumexp(state.unsqueeze(2) + self.steps, dim=1) + scores[:, at]
            state = torch.where((at < lengths).unsqueeze(1), moved, state)
        return torch.logsumexp(state + self.last, dim=1)
