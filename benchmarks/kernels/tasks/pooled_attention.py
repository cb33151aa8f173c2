"""Attention of one learned query over a sequence: scores become weights along the time axis."""

import torch
from torch import nn

SEQUENCES, LENGTH, WIDTH = 256, 512, 512


class Model(nn.Module):
    def forward(self, scores, values):
        return (torch.softmax(scores, dim=1) * values).sum(dim=1)


def get_inputs():
    return [torch.randn(SEQUENCES, LENGTH, WIDTH), torch.randn(SEQUENCES, LENGTH, WIDTH)]


def get_init_inputs():
    return []
