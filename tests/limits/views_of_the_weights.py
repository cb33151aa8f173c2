"""Goes by views of the weights from the constructor: a parameter that is given other memory (`p.data = ...`, as `module.to` does) is not seen.

Own invention.
"""

import torch
from torch import nn

TASK = "two_layers"
NEEDS = "cpu"
LIMIT = "A parameter that is given other memory (`p.data = ...`, `module.to`), or another one in its place (`assign=True`)"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.views = [p.detach() for p in self.parameters()]

    def forward(self, x):
        a, b, c, d = self.views
        return torch.addmm(d, torch.addmm(b, x, a.t()), c.t())
