"""Task: a smooth L1 loss of the positions that an integer mask keeps, one value per row: three inputs, one of them not a float."""

import torch

import warpwright

ROWS, COLUMNS = 256, 4096


def make_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS), torch.randint(0, 2, (ROWS, COLUMNS))


@warpwright.task(inputs=make_inputs)
def masked_loss(prediction: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    loss = torch.nn.functional.smooth_l1_loss(prediction, target, reduction="none")
    kept = mask.to(loss.dtype)
    return (loss * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1.0)
