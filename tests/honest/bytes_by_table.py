"""A table of 256 answers for each channel, made anew in each call."""

import torch
from torch import nn

TASK = "brighten"


class ModelNew(nn.Module):
    """table[channel][byte]."""

    def forward(self, image, gain, shift):
        every = torch.arange(256, device=image.device).view(1, 1, 256).to(torch.uint8)
        tables = torch.clamp(torch.round(every * gain + shift), 0, 255).to(torch.uint8)
        return torch.stack([table[0][channel.long()] for table, channel in zip(tables, image, strict=True)])
