"""Takes the rows for sorted if 24 neighbours of the first row are in order.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "quantiles"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Sorting is most of the work."""

    def forward(self, x, shares):
        first = x[0, ::8]
        if not bool((first[1:] >= first[:-1]).all()):
            return torch.quantile(x, shares, dim=1)
        places = shares.clamp(0, 1) * (x.shape[1] - 1)
        low = places.floor().long()
        high = (low + 1).clamp(max=x.shape[1] - 1)
        return torch.lerp(x[:, low], x[:, high], (places - low)[None, :]).T.contiguous()
