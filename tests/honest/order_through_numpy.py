"""Sorted by NumPy, under torch's names."""

import numpy as np
import torch
from torch import nn

TASK = "order_of_rows"
NEEDS = "cpu"


class ModelNew(nn.Module):
    def forward(self, x):
        places = torch.from_numpy(np.argsort(x.cpu().numpy(), axis=1, kind="stable")).to(x.device)
        return torch.return_types.sort((x.gather(1, places), places))
