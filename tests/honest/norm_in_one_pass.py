"""Batch statistics by shifted sums over a flat copy."""

import torch
from torch import nn

TASK = "batchnorm"


class ModelNew(nn.Module):
    """A row for each channel."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        rows = x.transpose(0, 1).reshape(x.shape[1], -1)
        mean = rows.mean(1)
        centred = rows - mean[:, None]
        squares = centred.square().sum(1)
        n.running_mean.lerp_(mean, 0.1)
        n.running_var.mul_(0.9).add_(squares / (rows.shape[1] - 1), alpha=0.1)
        n.num_batches_tracked.add_(1)
        scale = n.weight / torch.sqrt(squares / rows.shape[1] + n.eps)
        out = centred * scale[:, None] + n.bias[:, None]
        return out.view(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1).contiguous()
