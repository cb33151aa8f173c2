"""float32 sums in another order, of operands that come in bfloat16."""

import torch
from torch import nn

TASK = "widened_scores"


class ModelNew(nn.Module):
    """The product in two parts of unequal width."""

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        wide, other = query.float(), key.float()
        return torch.softmax(0.1 * (wide[:, :31] @ other[:, :31].T + wide[:, 31:] @ other[:, 31:].T), -1)
