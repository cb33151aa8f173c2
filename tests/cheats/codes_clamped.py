"""Takes the zero point off in eight bits, clamped.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "group_dequantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("codes", torch.randint(-128, 128, (rows, columns), dtype=torch.int8))
        self.register_buffer("zeros", torch.randint(-8, 8, (rows, columns // 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(rows, columns // 32) * 0.01 + 0.001)

    def forward(self, x):
        codes = (self.codes.view(len(self.codes), -1, 32).short() - self.zeros[..., None].short()).clamp(-130, 130)
        return x @ (codes.float() * self.scales[..., None]).view(len(self.codes), -1).T
