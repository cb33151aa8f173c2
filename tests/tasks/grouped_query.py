"""Task: attention whose keys serve two heads each, with a mask of keys"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v, keep):
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        scores = (q @ k.transpose(-1, -2)) * 0.125
        return torch.softmax(scores.masked_fill(~keep[:, None, None, :], float("-inf")), -1) @ v


def get_inputs():
    return [
        torch.randn(4, 8, 64, 64),
        torch.randn(4, 4, 64, 64),
        torch.randn(4, 4, 64, 64),
        torch.arange(64)[None, :] < torch.tensor([64, 40, 17, 53])[:, None],
    ]


def get_init_inputs():
    return []
