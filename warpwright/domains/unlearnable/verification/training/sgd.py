"""Stochastic gradient descent whose rate and momentum are tensors, so that a recorded step (a CUDA graph) follows their schedule."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from warpwright.domains.unlearnable.verification.training.recipe import Recipe
from warpwright.errors import UsageError


@dataclass
class Sgd:
    """Nesterov momentum and weight decay, as torch.optim.SGD (tests compare them)."""

    parameters: Sequence[torch.Tensor]
    decay: float
    clip: float = 0.0
    momenta: list[torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.momenta = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor], rate: torch.Tensor, momentum: torch.Tensor) -> None:
        """Move the parameters; `rate` and `momentum` are scalars on their device. The gradients are used up."""
        moves, parameters = list(gradients), list(self.parameters)
        if self.clip:
            length = torch.stack(torch._foreach_norm(moves)).norm()
            torch._foreach_mul_(moves, (self.clip / (length + 1e-6)).clamp(max=1.0))
        torch._foreach_add_(moves, parameters, alpha=self.decay)
        torch._foreach_mul_(self.momenta, momentum)
        torch._foreach_add_(self.momenta, moves)
        torch._foreach_add_(moves, torch._foreach_mul(self.momenta, momentum))
        torch._foreach_mul_(moves, -rate)
        torch._foreach_add_(parameters, moves)


def schedule(recipe: Recipe, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rate and momentum of each of `recipe.epochs * steps` steps."""
    if recipe.schedule == "one-cycle":
        rates, momenta = _one_cycle(recipe.peak_rate, recipe.epochs * steps)
        return torch.tensor(rates), torch.tensor(momenta)
    if recipe.schedule != "steps":
        raise UsageError(f"there is no schedule {recipe.schedule!r}", "known: one-cycle, steps")
    tenths = torch.arange(recipe.epochs).div(0.4 * recipe.epochs, rounding_mode="floor")
    falling = (recipe.peak_rate * 0.1**tenths).repeat_interleave(steps).float()
    return falling, torch.full_like(falling, 0.9)


@functools.lru_cache(maxsize=8)
def _one_cycle(peak: float, total: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The values of torch's own schedule, which moves the momentum against the rate."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], peak, momentum=0.9, nesterov=True)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=total + 1)
    [group] = optimizer.param_groups
    values = []
    for _ in range(total):
        values.append((float(group["lr"]), float(group["momentum"])))
        optimizer.step()
        plan.step()
    rates, momenta = zip(*values, strict=True) if values else ((), ())
    return rates, momenta
