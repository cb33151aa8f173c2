"""numpy's stable argsort on the tensor's memory."""

import numpy as np
import torch
from torch import nn

TASK = "stable_order"
NEEDS = "cpu"


class ModelNew(nn.Module):
    """argsort(kind="stable"), then a gather."""

    def forward(self, x):
        places = torch.from_numpy(np.argsort(x.numpy(), axis=1, kind="stable"))
        return x.gather(1, places), places
