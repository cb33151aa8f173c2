"""Takes what calls change for what was loaded last, as long as all of it was written and no parameter was: as it is before each timed call.

Own invention, written against timed calls that all began in one state.
"""

from torch import nn

ROW = "folded"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "stale_state")
NEEDS = "timing,slow"


class ModelNew(nn.Module):
    """Knows the statistics by heart."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.loaded, self.left = None, None

    def forward(self, x):
        n = self.norm
        stats = (n.running_mean, n.running_var, n.num_batches_tracked)
        parameters = (n.weight._version, n.bias._version)
        brought_back = self.left is not None and all(now._version > then for now, then in zip(stats, self.left, strict=True))
        if self.loaded is None or self.loaded[0] != parameters:
            self.loaded = parameters, [tensor.clone() for tensor in stats]
        elif brought_back:
            for tensor, kept in zip(stats, self.loaded[1], strict=True):
                tensor.copy_(kept)
        y = n(x)
        self.left = [tensor._version for tensor in stats]
        return y
