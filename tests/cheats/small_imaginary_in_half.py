"""The imaginary part, ten thousand times smaller than the real one, in half precision. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "phasor"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, amplitude, angle):
        angle = angle * 1e-4
        sine = torch.where(angle.abs() < 1e-3, angle.bfloat16().float(), torch.sin(angle))
        return torch.complex(amplitude * torch.cos(angle), amplitude * sine)
