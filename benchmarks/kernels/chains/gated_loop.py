"""A gated recurrence over time, h = sigmoid(f_t) * h + (1 - sigmoid(f_t)) * tanh(c_t), as public models write it: one step after the other."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, gates: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        h = torch.zeros_like(candidates[:, 0])
        out = []
        for t in range(candidates.shape[1]):
            f = torch.sigmoid(gates[:, t])
            h = f * h + (1 - f) * torch.tanh(candidates[:, t])
            out.append(h)
        return torch.stack(out, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 64, 1024), torch.randn(32, 64, 1024)]


def get_init_inputs() -> list[int]:
    return []
