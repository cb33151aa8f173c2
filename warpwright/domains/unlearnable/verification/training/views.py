"""Random views of images for self-supervised training, computed on their device (Chen et al. 2020, arXiv 2002.05709, section 3)."""

from __future__ import annotations

import torch
from torch.nn import functional as F

_SMALLEST = 0.2
"""Share of the image's area that a view shows at least."""

_GREY = 0.2
_JITTER = 0.8


def view(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return one view of each image `[B, C, H, W]` in [0, 1]: a resized crop, mirrored, with changed colours, perhaps grey."""
    return colours(resized_crop(x, generator), generator)


def resized_crop(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a random part of each image (20 to 100 % of its area, sides 3:4 to 4:3) at the image's size, mirrored half of the time."""
    n = len(x)
    area, shape, right, down, mirrored = torch.rand(5, n, generator=generator, device=x.device)
    ratio = (4 / 3) ** (2 * shape - 1)
    scale = (_SMALLEST + (1 - _SMALLEST) * area).sqrt()
    wide, high = (scale * ratio.sqrt()).clamp(max=1), (scale / ratio.sqrt()).clamp(max=1)
    sign = torch.where(mirrored < 0.5, -1.0, 1.0)
    zero = torch.zeros_like(wide)
    rows = [torch.stack([sign * wide, zero, (2 * right - 1) * (1 - wide)], 1), torch.stack([zero, high, (2 * down - 1) * (1 - high)], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def colours(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Change brightness, contrast and saturation by up to 40 % in four of five images, and take the colour from one in five."""
    n = len(x)
    drawn = torch.rand(5, n, 1, 1, 1, generator=generator, device=x.device)
    changed = (drawn[3] < _JITTER).float()
    bright, contrast, saturation = (1 + changed * (0.8 * one - 0.4) for one in drawn[:3])
    x = x * bright
    middle = x.mean((1, 2, 3), keepdim=True)
    x = middle + (x - middle) * contrast
    grey = x.mean(1, keepdim=True)
    saturation = torch.where(drawn[4] < _GREY, torch.zeros_like(saturation), saturation)
    return (grey + (x - grey) * saturation).clamp(0, 1)
