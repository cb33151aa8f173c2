"""The epsilon stands under the root, squared. Own invention."""

from torch import nn

ROW = "tolerance"
TASK = "adam_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_mutated")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, p, grad, first, second, step):
        first.lerp_(grad, 0.1)
        second.mul_(0.999).addcmul_(grad, grad, value=0.001)
        step = abs(step) + 1
        return p.addcdiv_(first, (second / (1 - 0.999**step) + 1e-16).sqrt(), value=-1e-3 / (1 - 0.9**step))
