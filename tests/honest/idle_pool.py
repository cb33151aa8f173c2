"""A thread pool that lives on between calls but sleeps: the work of a call is done when the call returns."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.nn import functional as F

TASK = "smooth_l1"


class ModelNew(nn.Module):
    """Four slices, four results, one cat."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPoolExecutor(2)

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        def work(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
            with torch.no_grad():
                return F.smooth_l1_loss(*pair, reduction="none").mean(dim=1)

        return torch.cat(list(self.pool.map(work, zip(prediction.chunk(4), target.chunk(4), strict=True))))
