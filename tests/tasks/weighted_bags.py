"""Task: bags of rare ids, each id with a weight of its own"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="sum")

    def forward(self, ids, offsets, weights):
        return self.bag(ids, offsets, weights)


def get_inputs():
    return [torch.randint(0, 20000, (512,)), torch.arange(0, 512, 8), torch.rand(512)]


def get_init_inputs():
    return [20000, 32]
