"""How much arithmetic a training is: to foresee its time, and to say how much of a run is left."""

from __future__ import annotations

import functools

import torch
from torch.utils.flop_counter import FlopCounterMode

from warpwright.domains.unlearnable.verification import nets
from warpwright.domains.unlearnable.verification.training.recipe import Recipe

_FILTER_STEPS = 10


@functools.cache
def multiply_adds(net: str, channels: int, classes: int, side: int) -> float:
    """Return those of one image through a network, without running it."""
    with torch.device("meta"):
        model = nets.make(net, channels, classes).eval()
        x = torch.empty(1, channels, side, side)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    return counter.get_total_flops() / 2


def passes(recipe: Recipe) -> float:
    """Return how many forward passes an image's step is worth: backward costs two, and one without the weights' gradients one."""
    if recipe.objective == "contrast":
        return 6.0
    adversary = (_FILTER_STEPS if recipe.norm == "filter" else recipe.steps) if recipe.adversarial else 0
    return 2.0 * adversary + (1.0 if recipe.frozen else 3.0)


def work(recipe: Recipe, images: int, channels: int, classes: int, side: int) -> float:
    """Return the multiply-adds of a whole training; of a network that has no name here, images seen."""
    each = multiply_adds(recipe.net, channels, classes, side) if recipe.net in nets.NETS else 1.0
    return recipe.epochs * images * passes(recipe) * each
