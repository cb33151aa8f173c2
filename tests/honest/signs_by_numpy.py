"""numpy's packbits."""

import numpy as np
import torch
from torch import nn

TASK = "packed_signs"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.packbits((x > 0).cpu().numpy(), axis=1)).to(x.device)
