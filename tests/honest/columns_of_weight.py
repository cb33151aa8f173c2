"""The product in blocks of columns, each finished before the next."""

import torch
from torch import nn

TASK = "linear_chain"


class ModelNew(nn.Module):
    """Stays in the cache."""

    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x):
        out = torch.empty(len(x), self.linear.out_features, device=x.device)
        for at in range(0, out.shape[1], 128):
            part = torch.addmm(self.linear.bias[at : at + 128], x, self.linear.weight[at : at + 128].t(), beta=self.scale, alpha=self.scale)
            part.clamp_(-2.0, 2.0)
            out[:, at : at + 128] = 0.5 * part * (1 + torch.erf(part * 0.7071067811865476))
        return out
