"""A namedtuple of torch, as the original returns it."""

import torch
from torch import nn

TASK = "sorted_rows"


class ModelNew(nn.Module):
    """Sorts another copy."""

    def forward(self, x):
        return torch.sort(x.clone(), dim=1)
