"""The squared norms of the rows of the difference over its size."""

import torch
from torch import nn

TASK = "mse_loss"


class ModelNew(nn.Module):
    """A norm for each row."""

    def forward(self, prediction, target):
        difference = prediction - target
        rows = torch.linalg.vector_norm(difference, dim=1)
        return rows.square().sum() / difference.numel()
