"""Adversaries of adversarial training: they change a batch so that the loss rises."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.nn import functional as F

from warpwright.domains.unlearnable.verification.training.augmentation import convolve_each
from warpwright.domains.unlearnable.verification.training.recipe import Recipe
from warpwright.errors import UsageError

Net = Callable[[torch.Tensor], torch.Tensor]

Adversary = Callable[[Net, torch.Tensor, torch.Tensor, int, Recipe], torch.Tensor]


def attack(net: Net, x: torch.Tensor, y: torch.Tensor, classes: int, recipe: Recipe) -> torch.Tensor:
    """Return the batch changed so that the loss rises, by the adversary `recipe.norm`."""
    if recipe.norm not in ADVERSARIES:
        raise UsageError(f"there is no adversary {recipe.norm!r}", f"known: {', '.join(ADVERSARIES)}")
    return ADVERSARIES[recipe.norm](net, x, y, classes, recipe)


def perturb(net: Net, x: torch.Tensor, y: torch.Tensor, classes: int, recipe: Recipe) -> torch.Tensor:
    """Projected gradient ascent on the loss (Madry et al. 2018) in the l-infinity or l2 ball; l2 radius in [0, 1] units is radius/255."""
    radius = recipe.adversarial / 255
    step = 2.5 * radius / recipe.steps
    delta = torch.zeros_like(x)
    for _ in range(recipe.steps):
        delta.requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(net((x + delta - 0.5) / 0.25), y), delta)
        with torch.no_grad():
            if recipe.norm == "linf":
                moved = (delta + step * gradient.sign()).clamp(-radius, radius)
            else:
                moved = delta + step * gradient / _length(gradient)
                moved = moved * (radius / _length(moved)).clamp(max=1)
            delta = (x + moved).clamp(0, 1) - x
    return (x + delta).detach()


def _length(x: torch.Tensor) -> torch.Tensor:
    return x.flatten(1).norm(dim=1).clamp(min=1e-12).view(-1, 1, 1, 1)


def filters(net: Net, x: torch.Tensor, y: torch.Tensor, classes: int, recipe: Recipe) -> torch.Tensor:
    """Ascend on one transposed-convolution filter a class, shared by its images and channels (arXiv 2303.04278, adaptive defence DAT).

    10 steps of 0.1 by the gradient, weights clamped to [-5, 5], then each image rescaled to [0, 1]. The text we have does not
    give the start: ours is the identity.
    """
    k = int(recipe.adversarial)
    if k % 2 == 0:
        raise UsageError(f"expected an odd filter side for the adversary filter, saw {k}", "the paper has 3, 5 and 7")
    around = (k // 2,) * 4
    weights = torch.zeros(classes, k, k, device=x.device)
    weights[:, k // 2, k // 2] = 1.0

    def changed(weights: torch.Tensor) -> torch.Tensor:
        z = convolve_each(F.pad(x, around), weights[y], transposed=True)
        low, high = z.amin((1, 2, 3), keepdim=True), z.amax((1, 2, 3), keepdim=True)
        return (z - low) / (high - low).clamp(min=1e-6)

    for _ in range(10):
        weights.requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(net((changed(weights) - 0.5) / 0.25), y), weights)
        with torch.no_grad():
            weights = (weights + 0.1 * gradient).clamp(-5, 5)
    return changed(weights).detach()


ADVERSARIES: Mapping[str, Adversary] = {"linf": perturb, "l2": perturb, "filter": filters}
