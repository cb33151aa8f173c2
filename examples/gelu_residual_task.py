"""Task: bias, GELU, factor and residual: a chain of element-wise operations that needs one pass over memory."""

import torch

import warpwright

ROWS, COLUMNS = 512, 2048


def make_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS), torch.randn(ROWS, COLUMNS)


@warpwright.task(inputs=make_inputs)
def gelu_residual(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x + bias) * 0.5 + residual
