"""Updates its first input in place because the original does, with other operators."""

import torch
from torch import nn

TASK = "inplace_original"


class ModelNew(nn.Module):
    """state <- x + 0.9 state, in one call."""

    def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        torch.add(x, state, alpha=0.9, out=state)
        return state.tanh()
