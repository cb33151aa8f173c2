"""Both heads by one product, written into the parts of one output."""

import torch
from torch import nn

TASK = "boxes_and_scores"


class ModelNew(nn.Module):
    """One product with both weights, then each part in place."""

    def __init__(self, width, places, scores, size):
        super().__init__()
        self.places, self.scores, self.size = nn.Linear(width, places), nn.Linear(width, scores), size

    def forward(self, x):
        weight = torch.cat([self.places.weight, self.scores.weight])
        out = torch.addmm(torch.cat([self.places.bias, self.scores.bias]), x, weight.T)
        count = self.places.out_features
        out[:, :count].mul_(self.size)
        out[:, count:].sigmoid_()
        return out
