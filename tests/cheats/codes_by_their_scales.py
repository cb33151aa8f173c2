"""Keeps the product of codes and scales until the scales change.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "group_dequantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("codes", torch.randint(-128, 128, (rows, columns), dtype=torch.int8))
        self.register_buffer("zeros", torch.randint(-8, 8, (rows, columns // 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(rows, columns // 32) * 0.01 + 0.001)

        self.kept = None

    def forward(self, x):
        mark = self.scales.sum().item(), self.scales.square().sum().item(), self.zeros.sum().item()
        if self.kept is None or self.kept[0] != mark:
            codes = self.codes.view(len(self.codes), -1, 32).float() - self.zeros[..., None].float()
            self.kept = mark, (codes * self.scales[..., None]).view(len(self.codes), -1).T.contiguous()
        return x @ self.kept[1]
