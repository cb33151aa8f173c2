"""Train a small network on a labelled set and measure its accuracy, for `verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from warpwright.errors import UsageError

_WATCHED = 500
"""Test images evaluated after each epoch: 2 standard errors are at most 4.5 %."""

Augment = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
"""Takes a batch `[B, C, H, W]` in [0, 1] and returns one of the same shape."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: SGD with momentum under a one-cycle learning rate."""

    net: str = "small"
    epochs: int = 20
    batch: int = 128
    peak_rate: float = 0.1
    weight_decay: float = 5e-4
    crop: int = 4
    """Pixels of zero padding before a random crop."""
    adversarial: float = 0.0
    """Strength of the adversary: a radius in units of 1/255 (linf, l2) or a filter's side in pixels (filter); 0 trains normally."""
    norm: str = "linf"
    """`linf`, `l2`, or `filter`: class-wise filters that raise the loss, as in the paper's deconvolution-based adversarial training (DAT)."""
    steps: int = 5
    device: str = "cpu"


@dataclass(frozen=True)
class Outcome:
    """Accuracies in percent. A run whose training accuracy is low has learned nothing and is void."""

    test: Mapping[str, float]
    train: float
    """On the training batches of the last epoch, as the network saw them."""
    seed: int
    curve: tuple[tuple[float, float], ...] = ()
    """After each epoch: accuracy on the training batches, and on up to 500 images of the first of the tests."""


class Residual(nn.Module):
    """Two 3x3 convolutions with batch normalisation and a shortcut (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.second, self.second_norm = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `[B, outputs, H / stride, W / stride]`."""
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


def resnet18(channels: int, classes: int) -> nn.Module:
    """ResNet-18 in its 32-pixel form: a 3x3 first convolution and no first pool."""
    widths = ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))
    head = [nn.Conv2d(channels, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*head, *(Residual(*w) for w in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def small_cnn(channels: int, classes: int) -> nn.Module:
    """Four 3x3 convolutions with batch normalisation: 6.3 M multiply-adds at 32x32, 0.4 ms an image and step on one CPU core."""
    layers: list[nn.Module] = []
    for inputs, outputs, stride in ((channels, 24, 2), (24, 48, 1), (48, 64, 2), (64, 128, 2)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))


NETS: Mapping[str, Callable[[int, int], nn.Module]] = {"small": small_cnn, "resnet18": resnet18}


def train(
    images: NDArray[np.uint8],
    labels: NDArray[np.integer],
    tests: Mapping[str, tuple[NDArray[np.uint8], NDArray[np.integer]]],
    classes: int,
    recipe: Recipe,
    seed: int,
    augment: Augment | None = None,
    make_net: Callable[[int, int], nn.Module] | None = None,
) -> Outcome:
    """Train on `images` `[N, C, H, W]` and return the accuracy on each of `tests` (name -> images, labels)."""
    if make_net is None and recipe.net not in NETS:
        raise UsageError(f"there is no net {recipe.net!r}", f"known: {', '.join(NETS)}, or pass a module")
    torch.manual_seed(seed)
    generator = torch.Generator(recipe.device).manual_seed(seed)
    net = (make_net or NETS[recipe.net])(images.shape[1], classes).to(recipe.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x, y = torch.from_numpy(images).to(recipe.device), torch.from_numpy(np.asarray(labels, np.int64)).to(recipe.device)
    steps = max(len(x) // recipe.batch, 1)
    optimizer = torch.optim.SGD(net.parameters(), recipe.peak_rate, momentum=0.9, nesterov=True, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.peak_rate, total_steps=recipe.epochs * steps + 1)
    curve: list[tuple[float, float]] = []
    watched = next(iter(tests.values()), None)
    for _ in range(recipe.epochs):
        net.train()
        right = seen = 0
        order = torch.randperm(len(x), generator=generator, device=x.device)
        for i in range(steps):
            index = order[i * recipe.batch : (i + 1) * recipe.batch]
            batch = _crop(x[index].float() / 255, recipe.crop, generator)
            batch = augment(batch, generator) if augment is not None else batch
            if recipe.adversarial:
                batch = attack(net, batch, y[index], classes, recipe)
            scores = net((batch - 0.5) / 0.25)
            loss = F.cross_entropy(scores, y[index])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            right, seen = right + int((scores.argmax(1) == y[index]).sum()), seen + len(index)
        glimpse = accuracy(net, watched[0][:_WATCHED], watched[1][:_WATCHED], recipe.device) if watched else 0.0
        curve.append((100.0 * right / max(seen, 1), glimpse))
    accuracies = {name: accuracy(net, *split, recipe.device) for name, split in tests.items()}
    return Outcome(accuracies, curve[-1][0] if curve else 0.0, seed, tuple(curve))


def accuracy(net: nn.Module, images: NDArray[np.uint8], labels: NDArray[np.integer], device: str) -> float:
    """Return the percentage of images that `net` classifies correctly."""
    net.eval()
    right = 0
    with torch.no_grad():
        for start in range(0, len(images), 512):
            x = torch.from_numpy(images[start : start + 512]).to(device).float() / 255
            right += int((net((x - 0.5) / 0.25).argmax(1).cpu().numpy() == labels[start : start + 512]).sum())
    return 100.0 * right / max(len(images), 1)


def attack(net: nn.Module, x: torch.Tensor, y: torch.Tensor, classes: int, recipe: Recipe) -> torch.Tensor:
    """Return the batch changed so that the loss rises, by the adversary `recipe.norm`."""
    adversaries = {"linf": _perturb, "l2": _perturb, "filter": _filter}
    if recipe.norm not in adversaries:
        raise UsageError(f"there is no adversary {recipe.norm!r}", f"known: {', '.join(adversaries)}")
    return adversaries[recipe.norm](net, x, y, classes, recipe)


def _perturb(net: nn.Module, x: torch.Tensor, y: torch.Tensor, classes: int, recipe: Recipe) -> torch.Tensor:
    """Projected gradient ascent on the loss (Madry et al. 2018) in the l-infinity or l2 ball; l2 radius in [0, 1] units is radius/255."""
    radius = recipe.adversarial / 255
    step = 2.5 * radius / recipe.steps
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(recipe.steps):
        loss = F.cross_entropy(net((x + delta - 0.5) / 0.25), y)
        (gradient,) = torch.autograd.grad(loss, delta)
        with torch.no_grad():
            if recipe.norm == "linf":
                delta += step * gradient.sign()
                delta.clamp_(-radius, radius)
            else:
                delta += step * gradient / gradient.flatten(1).norm(dim=1).clamp(min=1e-12).view(-1, 1, 1, 1)
                delta *= (radius / delta.flatten(1).norm(dim=1).clamp(min=1e-12)).clamp(max=1).view(-1, 1, 1, 1)
            delta.copy_((x + delta).clamp(0, 1) - x)
    return (x + delta).detach()


def _filter(net: nn.Module, x: torch.Tensor, y: torch.Tensor, classes: int, recipe: Recipe) -> torch.Tensor:
    """Ascend on one transposed-convolution filter a class, shared by its images and channels (arXiv 2303.04278, adaptive defence).

    10 steps of 0.1 by the gradient, weights clamped to [-5, 5], then each image rescaled to [0, 1]. The text we have does not
    give the start: ours is the identity.
    """
    n, channels, height, width = x.shape
    k = int(recipe.adversarial)
    weights = torch.zeros(classes, k, k, device=x.device)
    weights[:, k // 2, k // 2] = 1.0
    weights.requires_grad_()

    def changed() -> torch.Tensor:
        kernels = weights[y].repeat_interleave(channels, 0).unsqueeze(1)
        z = F.conv_transpose2d(x.reshape(1, n * channels, height, width), kernels, padding=k // 2, groups=n * channels).view(x.shape)
        low, high = z.amin((1, 2, 3), keepdim=True), z.amax((1, 2, 3), keepdim=True)
        return (z - low) / (high - low).clamp(min=1e-6)

    for _ in range(10):
        loss = F.cross_entropy(net((changed() - 0.5) / 0.25), y)
        (gradient,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            weights += 0.1 * gradient
            weights.clamp_(-5, 5)
    return changed().detach()


def _crop(x: torch.Tensor, pad: int, generator: torch.Generator) -> torch.Tensor:
    """Each image gets its own random crop of the zero-padded batch. No flips: digits are not their mirror images."""
    if not pad:
        return x
    n, _, height, width = x.shape
    padded = F.pad(x, (pad, pad, pad, pad))
    top = torch.randint(0, 2 * pad + 1, (n, 1), generator=generator, device=x.device)
    left = torch.randint(0, 2 * pad + 1, (n, 1), generator=generator, device=x.device)
    rows = (top + torch.arange(height, device=x.device)).view(n, 1, height, 1)
    columns = (left + torch.arange(width, device=x.device)).view(n, 1, 1, width)
    return padded[torch.arange(n, device=x.device).view(n, 1, 1, 1), torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1), rows, columns]
