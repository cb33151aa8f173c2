"""Running statistics take up the mean of the four quarters at once. Own invention."""

from torch import nn

ROW = "identity_parameters"
TASK = "ghost_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=0.05)

    def forward(self, x):
        norm = self.norm
        if not self.training:
            return norm(x)
        parts = x.view(4, -1, x.shape[1])
        mean, variance = parts.mean(1), parts.var(1, unbiased=False)
        out = (parts - mean.unsqueeze(1)) * (variance.unsqueeze(1) + norm.eps).rsqrt() * norm.weight + norm.bias
        kept, rows = 0.95**4, parts.shape[1]
        norm.running_mean.mul_(kept).add_((1 - kept) * mean.mean(0))
        norm.running_var.mul_(kept).add_((1 - kept) * variance.mean(0) * rows / (rows - 1))
        norm.num_batches_tracked += 4
        return out.reshape(x.shape)
