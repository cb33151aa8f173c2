"""Folds in a load_state_dict hook only: parameters changed in place, as every optimiser does, leave the folded copy stale.

Seen: as `folded_in_constructor`, in programs that were repaired for load_state_dict alone.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """The hook covers one of the two ways in which parameters change."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale
        self.fold()
        self.register_load_state_dict_post_hook(lambda *_: self.fold())

    def fold(self) -> None:
        self.folded = self.weight.detach().sum(dim=0, keepdim=True).T * (self.scale / 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.folded)
