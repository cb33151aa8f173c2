"""Answers rightly with as many threads as there were when it was made.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

TASK = "two_layers"
LIMIT = "Another number of threads than the program was built with"


class ModelNew(nn.Module):
    """Rows are dealt out to the threads; who changes their number leaves rows out."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.threads = torch.get_num_threads()

    def forward(self, x):
        out = x.new_zeros(x.shape[0], self.second.out_features)
        for turn in range(torch.get_num_threads()):
            rows = slice(turn, None, self.threads)
            out[rows] = self.second(self.first(x[rows]))
        return out
