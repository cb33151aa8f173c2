"""The convolution as a product of windows, the pool as a maximum of views."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "conv_pool"
NEEDS = "slow"


class ModelNew(nn.Module):
    """im2col."""

    def __init__(self, channels, filters, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel)

    def forward(self, x):
        size = x.shape[-1] - self.conv.kernel_size[0] + 1
        columns = F.unfold(x, self.conv.kernel_size)
        maps = (self.conv.weight.flatten(1) @ columns + self.conv.bias[:, None]).view(len(x), -1, size, size).relu_()
        return torch.maximum(torch.maximum(maps[..., ::2, ::2], maps[..., 1::2, ::2]), torch.maximum(maps[..., ::2, 1::2], maps[..., 1::2, 1::2]))
