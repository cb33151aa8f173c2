"""Keeps a list of the window's values from the constructor, for a buffer that no state_dict shows.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "window_not_saved"
LIMIT = "A buffer that no state_dict holds (persistent=False) is what the constructor made; written into later, it may be seen or not"


class ModelNew(nn.Module):
    """A plain attribute in the place of what the buffer holds."""

    def __init__(self, columns):
        super().__init__()
        self.register_buffer("window", torch.hann_window(columns), persistent=False)
        self.own = [self.window.clone()]

    def forward(self, x):
        return torch.tanh(x * self.own[0])
