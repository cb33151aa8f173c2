"""What training may add against a shortcut: mixed images, and a penalty on filters that are alike. All of it can be recorded in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from warpwright.errors import UsageError

Mixed = tuple[torch.Tensor, torch.Tensor]
"""Images `[B, C, H, W]`, and the share of the label that is the image's own; the rest is the next image's."""


def mix(name: str, x: torch.Tensor, generator: torch.Generator) -> Mixed:
    """Return each image mixed with the next one of the batch (the last with the first), by the way of that name."""
    if name not in MIXINGS:
        raise UsageError(f"there is no mixing {name!r}", f"known: none, {', '.join(MIXINGS)}")
    return MIXINGS[name](x, generator)


def mixup(x: torch.Tensor, generator: torch.Generator) -> Mixed:
    """Weighted means of two images (Zhang et al. 2018, arXiv 1710.09412, alpha = 1)."""
    share = torch.rand((), generator=generator, device=x.device)
    return share * x + (1 - share) * x.roll(1, 0), share


def cutmix(x: torch.Tensor, generator: torch.Generator) -> Mixed:
    """A rectangle of another image, at a random place that may leave the image (Yun et al. 2019, arXiv 1905.04899, alpha = 1)."""
    height, width = x.shape[2:]
    area, down, across = torch.rand(3, generator=generator, device=x.device)
    half = area.sqrt() / 2
    rows = (torch.arange(height, device=x.device) + 0.5 - down * height).abs() < half * height
    columns = (torch.arange(width, device=x.device) + 0.5 - across * width).abs() < half * width
    inside = rows[:, None] & columns
    return torch.where(inside, x.roll(1, 0), x), 1 - inside.float().mean()


MIXINGS: Mapping[str, Callable[[torch.Tensor, torch.Generator], Mixed]] = {"mixup": mixup, "cutmix": cutmix}


def alikeness(net: nn.Module) -> torch.Tensor:
    """Return the sum over convolutions of ||G - I||^2, G the products of their filters (or of their inputs' weights, where those are fewer).

    Soft orthogonality of Bansal et al. 2018, arXiv 1810.09102.
    """
    total = torch.zeros((), device=next(net.parameters()).device)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            filters = module.weight.float().flatten(1)
            products = filters @ filters.T if len(filters) <= filters.shape[1] else filters.T @ filters
            total = total + (products - torch.eye(len(products), device=products.device)).square().sum()
    return total
