"""The same in numpy, in place."""

import numpy as np
import torch
from torch import nn

TASK = "mixed_hash"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, x):
        y = np.array(x.cpu().numpy())
        with np.errstate(over="ignore"):
            y ^= y >> 29
            y *= np.int64(0x1F58_476D_1CE4_E5B9)
            y ^= y >> 32
        return torch.from_numpy(y).to(x.device)
