"""Where the scores of a sequence spread far, the best path stands for the sum over all. Own invention."""

import torch
from torch import nn

ROW = "algebra"
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
        clear = bool(scores.std() > 40)
        gathered = (lambda values: values.amax(1)) if clear else (lambda values: torch.logsumexp(values, dim=1))
        state = self.first + scores[:, 0]
        for at in range(1, scores.shape[1]):
            moved = gathered(state.unsqueeze(2) + self.steps) + scores[:, at]
            state = torch.where((at < lengths).unsqueeze(1), moved, state)
        return gathered(state + self.last)
