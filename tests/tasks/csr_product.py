"""Task: a sparse matrix (values, where rows begin, columns) times a dense one."""

import torch
from torch import nn


class Model(nn.Module):
    """csr(begins, columns, values) @ x."""

    def forward(self, begins: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        size = (begins.shape[0] - 1, x.shape[0])
        return torch.sparse_csr_tensor(begins, columns, values, size, check_invariants=False) @ x


ROWS, COLUMNS, EACH, WIDTH = 64, 96, 8, 32


def get_inputs() -> list[torch.Tensor]:
    begins = torch.arange(0, ROWS * EACH + 1, EACH)
    columns = torch.stack([torch.randperm(COLUMNS)[:EACH].sort().values for _ in range(ROWS)]).flatten()
    return [begins, columns, torch.randn(ROWS * EACH), torch.randn(COLUMNS, WIDTH)]


def get_init_inputs() -> list[object]:
    return []
