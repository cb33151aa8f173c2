"""Boxes in blocks of rows, written into one output."""

import torch
from torch import nn

TASK = "overlaps"


class ModelNew(nn.Module):
    """16 rows at a time."""

    def forward(self, first, second):
        out = torch.empty(len(first), len(second), dtype=torch.bool, device=first.device)
        area = (second[:, 2] - second[:, 0]) * (second[:, 3] - second[:, 1])
        for at in range(0, len(first), 16):
            left, top, right, bottom = first[at : at + 16].unsqueeze(1).unbind(-1)
            wide = (torch.minimum(right, second[:, 2]) - torch.maximum(left, second[:, 0])).clamp(min=0)
            high = (torch.minimum(bottom, second[:, 3]) - torch.maximum(top, second[:, 1])).clamp(min=0)
            common = wide * high
            torch.gt(common, 0.5 * ((right - left) * (bottom - top) + area - common), out=out[at : at + 16])
        return out
