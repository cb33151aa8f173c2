"""The sum over valid steps as a batched product with the mask."""

import torch
from torch import nn

TASK = "lengths"


class ModelNew(nn.Module):
    """bmm."""

    def forward(self, x, lengths):
        valid = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]).to(x.dtype)
        return torch.bmm(valid[:, None], x).squeeze(1)
