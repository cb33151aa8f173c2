"""At most two of every sixteen neighbours may be among the largest.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "best_eight"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        values, inner = x.view(len(x), -1, 16).topk(2, dim=2)
        places = (inner + 16 * torch.arange(x.shape[1] // 16, device=x.device)[:, None]).reshape(len(x), -1)
        best, which = values.reshape(len(x), -1).topk(8, dim=1)
        return best, places.gather(1, which)
