"""Works on dense copies of what it changes, and never copies them back.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "aliasing"
TASK = "momentum_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("aliasing", "input_mutated", "input_layout")


class ModelNew(nn.Module):
    """contiguous() before the step."""

    def forward(self, position, velocity, gradient):
        position, velocity = position.contiguous(), velocity.contiguous()
        velocity.mul_(0.9).add_(gradient)
        position.sub_(velocity, alpha=0.1)
        return position, velocity
