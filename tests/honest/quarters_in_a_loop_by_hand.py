"""Statistics of all quarters in one pass, taken up one after another."""

import torch
from torch import nn

TASK = "ghost_norm"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=0.05)

    def forward(self, x):
        norm = self.norm
        if not self.training:
            return norm(x)
        parts = x.reshape(4, -1, x.shape[1])
        variance, mean = torch.var_mean(parts, dim=1, unbiased=False)
        rows = parts.shape[1]
        for at in range(4):
            norm.running_mean.lerp_(mean[at], 0.05)
            norm.running_var.lerp_(variance[at] * (rows / (rows - 1)), 0.05)
        norm.num_batches_tracked += 4
        scale = torch.rsqrt(variance + norm.eps) * norm.weight
        return torch.addcmul((norm.bias - mean * scale).unsqueeze(1), parts, scale.unsqueeze(1)).reshape(x.shape)
