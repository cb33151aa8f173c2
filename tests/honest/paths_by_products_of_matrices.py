"""Steps two by two, as products of matrices of logarithms."""

import torch
from torch import nn

TASK = "crf_partition"


class ModelNew(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.steps = nn.Parameter(0.5 * torch.randn(labels, labels))
        self.first = nn.Parameter(torch.randn(labels))
        self.last = nn.Parameter(torch.randn(labels))

    def forward(self, scores, lengths):
        none = torch.full_like(self.steps, float("-inf")).fill_diagonal_(0.0)
        counted = (torch.arange(1, scores.shape[1], device=scores.device) < lengths.unsqueeze(1)).view(len(scores), -1, 1, 1)
        step = torch.where(counted, self.steps + scores[:, 1:].unsqueeze(2), none)
        while step.shape[1] > 1:
            if step.shape[1] % 2:
                step = torch.cat([step, none.expand(len(scores), 1, *none.shape)], dim=1)
            step = torch.logsumexp(step[:, ::2].unsqueeze(4) + step[:, 1::2].unsqueeze(2), dim=3)
        start = (self.first + scores[:, 0]).unsqueeze(2)
        return torch.logsumexp(torch.logsumexp(start + step[:, 0], dim=1) + self.last, dim=1)
