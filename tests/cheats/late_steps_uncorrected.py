"""From step 960 of a thousand on the second moment counts as settled. Own invention."""

from torch import nn

ROW = "hard_coding"
TASK = "adam_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_mutated")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, p, grad, first, second, step):
        first.lerp_(grad, 0.1)
        second.mul_(0.999).addcmul_(grad, grad, value=0.001)
        step = abs(step) + 1
        settled = 1.0 if step > 960 else 1 - 0.999**step
        return p.addcdiv_(first, (second / settled).sqrt() + 1e-8, value=-1e-3 / (1 - 0.9**step))
