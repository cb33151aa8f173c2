"""Codes and zero points apart: two products."""

import torch
from torch import nn

TASK = "group_dequantise"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("codes", torch.randint(-128, 128, (rows, columns), dtype=torch.int8))
        self.register_buffer("zeros", torch.randint(-8, 8, (rows, columns // 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(rows, columns // 32) * 0.01 + 0.001)

    def forward(self, x):
        groups = x.view(len(x), -1, 32)
        scaled = (self.codes.view(len(self.codes), -1, 32).float() * self.scales[..., None]).view(len(self.codes), -1)
        return x @ scaled.T - groups.sum(2) @ (self.zeros.float() * self.scales).T
