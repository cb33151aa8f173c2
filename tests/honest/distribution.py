"""The distribution's two tensors are computed in another way."""

import torch
from torch import nn

TASK = "distribution"


class ModelNew(nn.Module):
    """One pass gives both moments."""

    def forward(self, x):
        spread, mean = torch.std_mean(x, dim=1)
        return torch.distributions.Normal(mean, spread + 1.0, validate_args=False)
