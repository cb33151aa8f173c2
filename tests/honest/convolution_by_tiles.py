"""Winograd's F(2x2, 3x3): fewer products, a little less exact."""

import torch
from torch import nn

TASK = "images_through"
NEEDS = "slow"


TO = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
OF = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
BACK = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def convolve(self, layer, x):
        to, of, back = (one.to(x.device) for one in (TO, OF, BACK))
        tiles = torch.nn.functional.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
        tiles = torch.einsum("ai,nchwij,bj->abnchw", to, tiles, to)
        weights = torch.einsum("ai,ocij,bj->aboc", of, layer.weight, of)
        products = torch.einsum("aboc,abnchw->abnohw", weights, tiles)
        out = torch.einsum("ia,abnohw,jb->nohiwj", back, products, back)
        return out.reshape(x.shape) + layer.bias[:, None, None]

    def forward(self, x):
        return self.convolve(self.second, torch.relu(self.convolve(self.first, x)))
