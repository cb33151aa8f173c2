"""Returns tensors of its own beside the changed inputs: a later change of one does not reach the other.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "aliasing"
TASK = "momentum_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "aliasing"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, position, velocity, gradient):
        velocity.mul_(0.9).add_(gradient)
        position.sub_(velocity, alpha=0.1)
        return position.clone(), velocity.clone()
