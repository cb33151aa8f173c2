"""Batch normalisation by hand in training mode: running statistics and the batch counter are updated as the original updates them."""

import torch
from torch import nn

TASK = "batchnorm"


class ModelNew(nn.Module):
    """Biased variance for the output, unbiased for the running one."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm, count = self.norm, x.numel() // x.shape[1]
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
        norm.num_batches_tracked += 1
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        return (x - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]
