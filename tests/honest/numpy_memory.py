"""The output lies in numpy's memory."""

import torch
from torch import nn

TASK = "relu"
NEEDS = "cpu"


class ModelNew(nn.Module):
    """torch.from_numpy."""

    def forward(self, x):
        import numpy as np

        return torch.from_numpy(np.maximum(x.numpy(), np.float32(0)))
