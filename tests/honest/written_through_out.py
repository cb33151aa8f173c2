"""The state written by out=, the answer from it."""

import torch
from torch import nn

TASK = "inplace_original"


class ModelNew(nn.Module):
    """One fused update."""

    def forward(self, state, x):
        torch.add(x, state, alpha=0.9, out=state)
        return state.tanh()
