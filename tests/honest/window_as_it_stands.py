"""Reads the window that no state_dict shows at each call."""

import torch
from torch import nn

TASK = "window_not_saved"


class ModelNew(nn.Module):
    """mul, then tanh in place."""

    def __init__(self, columns):
        super().__init__()
        self.register_buffer("window", torch.hann_window(columns), persistent=False)

    def forward(self, x):
        return torch.mul(x, self.window).tanh_()
