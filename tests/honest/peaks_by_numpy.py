"""The same with numpy: the results' memory is numpy's.

Own invention, written before reading the checks.
"""

import numpy
import torch
from torch import nn

TASK = "running_peaks"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, x):
        total = numpy.cumsum(x.numpy(), axis=1)
        return torch.from_numpy(total), torch.from_numpy(numpy.maximum.accumulate(total, axis=1) - total)
