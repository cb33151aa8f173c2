"""Two threads, each over half of the rows, joined before the call returns."""

import threading

import torch
from torch import nn

TASK = "mse_loss"


class ModelNew(nn.Module):
    """Nothing goes on working after the call."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        halves = prediction.shape[0] // 2
        sums = torch.empty(2, device=prediction.device)

        def work(k: int, rows: slice) -> None:
            with torch.no_grad():
                sums[k] = ((prediction[rows] - target[rows]) ** 2).sum()

        threads = [threading.Thread(target=work, args=(k, rows)) for k, rows in enumerate((slice(0, halves), slice(halves, None)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sums.sum() / prediction.numel()
