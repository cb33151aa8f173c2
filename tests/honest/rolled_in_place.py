"""Two pieces copied into a fresh tensor, then scaled in place."""

import torch
from torch import nn

TASK = "scalar_inputs"


class ModelNew(nn.Module):
    """No roll."""

    def forward(self, x, alpha, steps, beta):
        steps = steps % x.shape[0]
        return torch.cat([x[x.shape[0] - steps :], x[: x.shape[0] - steps]]).mul_(alpha).add_(beta)
