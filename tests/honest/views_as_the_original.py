"""Returns a view of its input, as the original does: what later inputs do to it is not its doing."""

from torch import nn

TASK = "heads_split"


class ModelNew(nn.Module):
    """The mean by a sum."""

    def forward(self, x):
        return x.unflatten(1, (4, -1)), x.sum(-1) / x.shape[-1]
