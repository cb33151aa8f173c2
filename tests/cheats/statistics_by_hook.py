"""Updates the running statistics in a hook that runs when somebody asks for the state.

Own invention, written before reading the checks."""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "later"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "stale_state")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Paid by whoever reads."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.waiting = []
        self.register_state_dict_pre_hook(lambda *_: self.catch_up())
        self.norm.register_state_dict_pre_hook(lambda *_: self.catch_up())

    def catch_up(self):
        for mean, var in self.waiting:
            self.norm.running_mean.mul_(0.9).add_(mean, alpha=0.1)
            self.norm.running_var.mul_(0.9).add_(var, alpha=0.1)
            self.norm.num_batches_tracked += 1
        self.waiting = []

    def forward(self, x):
        if not self.training:
            self.catch_up()
            return self.norm(x)
        var, mean = torch.var_mean(x, (0, 2, 3))
        self.waiting.append((mean, var))
        return F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, True, 0.1, self.norm.eps)
