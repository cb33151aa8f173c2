"""What a network is trained for: the classes of its images, or (self-supervised) to tell views of one image from those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from warpwright.domains.unlearnable.verification import nets
from warpwright.domains.unlearnable.verification.training.adversaries import attack
from warpwright.domains.unlearnable.verification.training.augmentation import crop_and_flip
from warpwright.domains.unlearnable.verification.training.recipe import Plan, Recipe, Split
from warpwright.domains.unlearnable.verification.training.regularisers import alikeness, mix
from warpwright.domains.unlearnable.verification.training.views import view

Call = Callable[[torch.Tensor], torch.Tensor]


class Objective(Protocol):
    """A network and its loss."""

    net: nn.Module

    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that are trained."""
        ...

    def loss(self, call: Call, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of uint8 images `[B, C, H, W]`, and how many were answered rightly; `call` runs the network."""
        ...

    def glimpse(self, split: Split) -> float:
        """Return the accuracy on some test images after an epoch."""
        ...

    def measure(self, train: float) -> tuple[dict[str, float], float]:
        """Return the accuracy on each test, and on the training images, of which `train` is the last epoch's."""
        ...


def scores(call: Call, x: torch.Tensor) -> torch.Tensor:
    """Return the network's answer to images in [0, 1]."""
    return call((x - 0.5) / 0.25)


class Classes:
    """Cross entropy, perhaps on images that an adversary changed."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.recipe = plan, plan.recipe
        self.net = new_net(plan)

    def trained(self) -> list[nn.Parameter]:
        """Return all parameters, or the last layer's."""
        if not self.recipe.frozen:
            return list(self.net.parameters())
        self.net.requires_grad_(False)
        return list(nets.last_layer(self.net).requires_grad_(True).parameters())

    def loss(self, call: Call, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss, and how many images were named rightly."""
        self.net.train(not self.recipe.frozen)
        batch = self._batch(x, generator)
        if self.recipe.adversarial:
            batch = attack(call, batch, y, self.plan.classes, self.recipe)
        return self._mixed_loss(call, batch, y, generator)

    def _mixed_loss(self, call: Call, batch: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        recipe, smoothing = self.recipe, self.recipe.smoothing
        share = None
        if recipe.mixing != "none":
            batch, share = mix(recipe.mixing, batch, generator)
        answer = scores(call, batch)
        loss = F.cross_entropy(answer, y, label_smoothing=smoothing)
        if share is not None:
            loss = share * loss + (1 - share) * F.cross_entropy(answer, y.roll(1), label_smoothing=smoothing)
        if recipe.orthogonal:
            loss = loss + recipe.orthogonal * alikeness(self.net)
        return loss, (answer.argmax(1) == y).sum()

    def _batch(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the images as the network sees them, in [0, 1]."""
        recipe, before, after = self.recipe, self.plan.before_crop, self.plan.augment
        if before is not None:
            batch = crop_and_flip(before(x.float() / 255, generator), recipe.crop, recipe.flip, generator, (x.shape[2], x.shape[3]))
        else:
            batch = crop_and_flip(x, recipe.crop, recipe.flip, generator).float() / 255
        return after(batch, generator) if after is not None else batch

    def glimpse(self, split: Split) -> float:
        """Return the accuracy on these images."""
        return accuracy(self.net, *split, self.recipe)

    def measure(self, train: float) -> tuple[dict[str, float], float]:
        """Return the accuracy on each test; the training accuracy is that of the last epoch."""
        return {name: self.glimpse(split) for name, split in self.plan.tests.items()}, train


class Contrast:
    """SimCLR-like (Chen et al. 2020, arXiv 2002.05709): two views of each image, NT-Xent at temperature 0.5; labels are used by the probe alone.

    Differs from the paper in SGD instead of LARS, no change of hue, and far fewer epochs.
    """

    TEMPERATURE = 0.5
    PROJECTION = 128

    def __init__(self, plan: Plan) -> None:
        self.plan, self.recipe = plan, plan.recipe
        self.net = new_net(plan)
        last = nets.last_layer(self.net)
        width = last.in_features
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, self.PROJECTION))
        nets.replace(self.net, last, self.head)

    def trained(self) -> list[nn.Parameter]:
        """Return all parameters."""
        return list(self.net.parameters())

    def loss(self, call: Call, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss, and how many images found their other view."""
        self.net.train()
        images = x.float() / 255
        both = torch.cat([view(images, generator), view(images, generator)])
        z = F.normalize(scores(call, both), dim=1)
        alike = z @ z.T / self.TEMPERATURE
        alike = alike.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), float("-inf"))
        partner = torch.arange(len(z), device=z.device).roll(len(x))
        return F.cross_entropy(alike, partner), (alike.argmax(1) == partner)[: len(x)].sum()

    def glimpse(self, split: Split) -> float:
        """Return 0: there is no accuracy before the probe."""
        return 0.0

    def measure(self, train: float) -> tuple[dict[str, float], float]:
        """Train a linear probe on the features of the labelled training images; return its accuracies."""
        probe = self._probe()
        tests = {name: 100.0 * self._right(probe, *split) for name, split in self.plan.tests.items()}
        return tests, 100.0 * self._right(probe, self.plan.images, self.plan.labels)

    def _features(self, images: np.ndarray) -> torch.Tensor:
        bare = nn.Identity()
        nets.replace(self.net, self.head, bare)
        try:
            return answers(self.net, images, self.recipe)
        finally:
            nets.replace(self.net, bare, self.head)

    def _probe(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return centre and spread of the features, and the weights of multinomial logistic regression on them."""
        x, y = self._features(self.plan.images), torch.from_numpy(np.asarray(self.plan.labels, np.int64)).to(self.recipe.device)
        centre, spread = x.mean(0), x.std(0) + 1e-5
        x = (x - centre) / spread
        weights = torch.zeros(x.shape[1] + 1, self.plan.classes, device=x.device, requires_grad=True)
        optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(x @ weights[:-1] + weights[-1], y) + 1e-4 * weights.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        return centre, spread, weights.detach()

    def _right(self, probe: tuple[torch.Tensor, torch.Tensor, torch.Tensor], images: np.ndarray, labels: np.ndarray) -> float:
        centre, spread, weights = probe
        x = (self._features(images) - centre) / spread
        named = (x @ weights[:-1] + weights[-1]).argmax(1).cpu().numpy()
        return float((named == labels).mean())


OBJECTIVES: Mapping[str, Callable[[Plan], Objective]] = {"classes": Classes, "contrast": Contrast}


def new_net(plan: Plan) -> nn.Module:
    """Return the plan's network: new, or with the weights that it is given."""
    channels = plan.images.shape[1]
    net = plan.make_net(channels, plan.classes) if plan.make_net is not None else nets.make(plan.recipe.net, channels, plan.classes)
    if plan.weights is not None:
        nets.load_weights(net, plan.weights)
    return net


def answers(net: nn.Module, images: np.ndarray, recipe: Recipe) -> torch.Tensor:
    """Return the network's answers to uint8 images `[N, C, H, W]` in evaluation, float32."""
    device = torch.device(recipe.device)
    size = 512 if device.type == "cpu" else 2000
    net.eval()
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=recipe.reduced):
        parts = [scores(net, torch.from_numpy(images[i : i + size]).to(device).float() / 255).float() for i in range(0, len(images), size)]
    return torch.cat(parts) if parts else torch.zeros(0, 1, device=device)


def accuracy(net: nn.Module, images: np.ndarray, labels: np.ndarray, recipe: Recipe) -> float:
    """Return the percentage of images that `net` classifies correctly."""
    right = answers(net, images, recipe).argmax(1).cpu().numpy() == labels
    return 100.0 * float(right.sum()) / max(len(images), 1)
