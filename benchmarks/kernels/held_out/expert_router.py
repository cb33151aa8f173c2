"""The router of a mixture of experts: logits, softmax, the two best, their weights to a sum of one."""

import torch
from torch import nn

TOKENS, WIDTH, EXPERTS = 8192, 2048, 64


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, _ = torch.topk(torch.softmax(self.gate(x), -1), 2)
        return weights / weights.sum(-1, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
