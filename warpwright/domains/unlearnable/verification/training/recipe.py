"""How a network is trained (Recipe), on what (Plan), and what came of it (Outcome)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Augment = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
"""Takes a batch `[B, C, H, W]` in [0, 1] and returns one."""

Split = tuple[NDArray[np.uint8], NDArray[np.integer]]
"""Images `[N, C, H, W]` and labels `[N]`."""

MakeNet = Callable[[int, int], nn.Module]
"""Takes channels and classes."""

Schedule = Literal["one-cycle", "steps"]
Precision = Literal["auto", "float32", "bfloat16"]
Stepping = Literal["auto", "eager", "graph", "compiled"]
Objective = Literal["classes", "contrast"]
Mixing = Literal["none", "mixup", "cutmix"]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: SGD with Nesterov momentum and weight decay."""

    net: str = "small"
    epochs: int = 20
    batch: int = 128
    peak_rate: float = 0.1
    weight_decay: float = 5e-4
    crop: int = 4
    """Pixels of zero padding before a random crop."""
    flip: bool = False
    """Mirror half of the images. Digits are not their mirror images, photographs are."""
    schedule: Schedule = "one-cycle"
    """`steps`: the rate falls to a tenth at 40 % and at 80 % of the epochs, as in arXiv 2303.04278."""
    clip: float = 0.0
    """Largest norm of all gradients together; 0: none."""
    adversarial: float = 0.0
    """Strength of the adversary: a radius in units of 1/255 (linf, l2) or a filter's side in pixels (filter); 0 trains normally."""
    norm: str = "linf"
    """`linf`, `l2`, or `filter`: class-wise filters that raise the loss, as in the paper's deconvolution-based adversarial training (DAT)."""
    steps: int = 5
    """Of the adversary, for one of the network."""
    objective: Objective = "classes"
    """`contrast`: self-supervised (SimCLR-like), then a linear probe."""
    smoothing: float = 0.0
    """Share of a label that is spread over all classes."""
    mixing: Mixing = "none"
    """Of each image with another one of its batch, and of their labels, in shares drawn uniformly for each batch."""
    orthogonal: float = 0.0
    """Weight of the squared distance of each convolution's filters from orthonormal ones."""
    frozen: bool = False
    """Train the last layer alone."""
    device: str = "cpu"
    precision: Precision = "auto"
    """`auto`: bfloat16 products on a GPU, float32 elsewhere; weights are float32 always."""
    stepping: Stepping = "auto"
    """How a step reaches the device: `auto` replays a CUDA graph of it on a GPU, and is eager elsewhere."""

    @property
    def reduced(self) -> bool:
        """Are products in bfloat16?"""
        return self.precision == "bfloat16" or (self.precision == "auto" and self.device.startswith("cuda"))


@dataclass(frozen=True)
class Plan:
    """One training: the images, what is tested, and how."""

    images: NDArray[np.uint8]
    """`[N, C, H, W]`"""
    labels: NDArray[np.integer]
    tests: Mapping[str, Split]
    classes: int
    recipe: Recipe
    augment: Augment | None = None
    """Applied after the random crop."""
    before_crop: Augment | None = None
    """Applied before it; it may return images of another size."""
    make_net: MakeNet | None = None
    """Instead of `recipe.net`."""
    weights: Path | None = None
    """A state dictionary of a network that was trained before; its last layer may be of other classes."""


@dataclass(frozen=True)
class Outcome:
    """Accuracies in percent. A run whose training accuracy is low has learned nothing and is void."""

    test: Mapping[str, float]
    train: float
    """On the training batches of the last epoch, as the network saw them; of `contrast`, the probe's on its training images."""
    seed: int
    curve: tuple[tuple[float, float], ...] = ()
    """After each epoch: accuracy on the training batches, and on up to 500 images from all over the first of the tests."""
    seconds: float = field(default=0.0, compare=False)
    """From start to end, with others side by side where there were any."""
    how: str = field(default="eager", compare=False)
    """How its steps reached the device, and why not as asked where they did not."""
