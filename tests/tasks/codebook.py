"""Task: vector quantisation in training: the nearest code of each row, and moving averages of the codes."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """The codes that are nearest, their numbers; sizes and sums decay by 0.9 a call."""

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("sizes", torch.ones(codes))
        self.register_buffer("sums", torch.randn(codes, width))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        near = torch.cdist(x, self.codes).argmin(1)
        taken = F.one_hot(near, self.codes.shape[0]).to(x.dtype)
        self.sizes.mul_(0.9).add_(taken.sum(0), alpha=0.1)
        self.sums.mul_(0.9).add_(taken.t() @ x, alpha=0.1)
        return self.codes[near], near


mode = "train"


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 16)]


def get_init_inputs() -> list[object]:
    return [32, 16]
