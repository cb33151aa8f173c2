"""Four pieces of the inner dimension on threads, added in the order in which they finish."""

from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from torch import nn

TASK = "matmul"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(4)

    def forward(self, a, b):
        step = a.shape[1] // 4
        parts = [self.pool.submit(torch.mm, a[:, i : i + step], b[i : i + step]) for i in range(0, step * 4, step)]
        total = a.new_zeros(a.shape[0], b.shape[1])
        for part in as_completed(parts):
            total += part.result()
        return total
