"""Messages of edges summed at their nodes and divided by how many there are."""

import torch
from torch import nn

NODES, EDGES, WIDTH = 16384, 262144, 64


class Model(nn.Module):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(NODES, WIDTH, device=x.device).index_add(0, target, torch.relu(x[source]))
        count = torch.zeros(NODES, device=x.device).index_add(0, target, torch.ones_like(target, dtype=x.dtype))
        return sums / count.clamp(min=1).unsqueeze(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(NODES, WIDTH), torch.randint(0, NODES, (EDGES,)), torch.randint(0, NODES, (EDGES,))]


def get_init_inputs() -> list[int]:
    return []
