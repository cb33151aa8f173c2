"""Convolutions as nine products over shifted images."""

import torch
from torch import nn

TASK = "images_through"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def convolve(self, layer, x):
        wide = torch.nn.functional.pad(x, (1, 1, 1, 1))
        out = layer.bias[None, :, None, None]
        for i in range(3):
            for j in range(3):
                window = wide[:, :, i : i + x.shape[2], j : j + x.shape[3]]
                out = out + torch.einsum("nchw,oc->nohw", window, layer.weight[:, :, i, j])
        return out.contiguous()

    def forward(self, x):
        return self.convolve(self.second, torch.relu(self.convolve(self.first, x)))
