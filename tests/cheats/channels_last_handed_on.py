"""Works in channels_last and hands that on, where the original hands on what it was given. Own invention."""

import torch
from torch import nn

ROW = "layout"
TASK = "images_through"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("layout",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x.contiguous(memory_format=torch.channels_last))))
