"""Normalisation and running statistics by hand; the buffers are new tensors after every call."""

import torch
from torch import nn

TASK = "batchnorm"


class ModelNew(nn.Module):
    """Rebinds its buffers."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        norm, count = self.norm, x.numel() // x.shape[1]
        variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        norm.running_mean = norm.running_mean * 0.9 + mean * 0.1
        norm.running_var = norm.running_var * 0.9 + variance * (0.1 * count / (count - 1))
        norm.num_batches_tracked = norm.num_batches_tracked + 1
        scale = norm.weight / torch.sqrt(variance + norm.eps)
        return (x - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]
