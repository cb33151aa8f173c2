"""Four gathers with their weights, zeros outside."""

import torch
from torch import nn

TASK = "sampled_grid"


class ModelNew(nn.Module):
    """Bilinear by hand."""

    def forward(self, image, grid):
        batch, channels, high, wide = image.shape
        x, y = ((grid[..., 0] + 1) * wide - 1) / 2, ((grid[..., 1] + 1) * high - 1) / 2
        left, top = torch.floor(x), torch.floor(y)
        flat, total = image.reshape(batch, channels, -1), 0
        for column, row in ((left, top), (left + 1, top), (left, top + 1), (left + 1, top + 1)):
            inside = (column >= 0) & (column < wide) & (row >= 0) & (row < high)
            share = torch.where(inside, (1 - (x - column).abs()) * (1 - (y - row).abs()), 0)
            place = torch.where(inside, row * wide + column, 0).long().view(batch, 1, -1).expand(-1, channels, -1)
            total = total + flat.gather(2, place).view(batch, channels, *x.shape[1:]) * share[:, None]
        return total
