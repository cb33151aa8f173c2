"""Equal values come in the order that a quicker sort leaves them in. Own invention."""

import torch
from torch import nn

ROW = "ties"
TASK = "order_of_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.sort(x.flip(1), dim=1, stable=True)
        return torch.return_types.sort((values, x.shape[1] - 1 - indices))
