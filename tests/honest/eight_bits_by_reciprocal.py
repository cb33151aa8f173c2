"""Values times the reciprocal of the scale: next to a tie they round the other way, as the original does on inputs moved by a little."""

import torch
from torch import nn

TASK = "to_eight_bits"


class ModelNew(nn.Module):
    def forward(self, x):
        largest = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-12)
        return (x * (448.0 / largest)).to(torch.float8_e4m3fn), largest / 448.0
