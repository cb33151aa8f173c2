"""Works under torch.inference_mode, so that its outputs are inference tensors."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "linear_chain"


class ModelNew(nn.Module):
    """A decorator that many put on forward."""

    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    @torch.inference_mode()
    def forward(self, x):
        with torch.profiler.record_function("chain"):
            return F.gelu(self.linear(x).mul_(self.scale).clamp_(-2.0, 2.0))
