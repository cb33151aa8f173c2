"""Undo CWC with the key: solve (filter * x) = z for every image.

Circular padding makes the filter diagonal under the Fourier transform, so the inverse is exact up to the 8-bit rounding. Zero
and reflecting borders are solved by conjugate gradients on the normal equations, which no closed form fits.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank
from warpwright.domains.unlearnable.cwc.operator import Operator, Pad, border, check
from warpwright.errors import UsageError

_ITERATIONS = 60
"""Conjugate-gradient steps: the residual of a filter with |F| > 0.25 (condition below 200) falls under 1/512 of its start."""


def recover(
    images: NDArray[np.uint8],
    labels: NDArray[np.integer[Any]],
    bank: FilterBank,
    operator: Operator,
    tops: NDArray[np.integer[Any]] | None = None,
    device: str = "cpu",
) -> NDArray[np.uint8]:
    """Return the clean images `[N, C, H, W]` as well as 8 bits allow; `device` is where torch computes it.

    `tops` `[N]`: the maximum of z of each image, from the manifest; needed when `operator.scale` is "max".
    """
    check(images, labels, bank.weights)
    if operator.scale == "max" and tops is None:
        raise UsageError("expected the maximum of each image, which scale 'max' divided by, saw none", "pass the private manifest")
    if not len(images):
        return images.copy()
    weights = torch.from_numpy(bank.weights[labels] / UNIT).to(device)
    gain = bank.sums[labels] / UNIT if operator.scale == "sum" else np.asarray(tops) / UNIT / 255.0
    z = torch.from_numpy(images.astype(np.float64) * np.asarray(gain, np.float64)[:, None, None, None]).to(device)
    x = _divide_spectra(z, weights) if operator.pad == "circular" else _by_parts(z, weights, operator)
    return x.round_().clamp_(0, 255).to(torch.uint8).cpu().numpy()


def maxima(images: NDArray[np.uint8], labels: NDArray[np.integer[Any]], bank: FilterBank, operator: Operator) -> NDArray[np.int32]:
    """Return `[N]` the maximum of z of each image, in units of 1/4096: what a manifest keeps for scale "max"."""
    weights = torch.from_numpy(bank.weights[labels].astype(np.float64))
    z = _filter(torch.from_numpy(images.astype(np.float64)), weights, operator)
    return z.amax((1, 2, 3)).round().to(torch.int32).numpy()


def _divide_spectra(z: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Cross-correlation with w multiplies the spectrum by conj(W), W taken with the centre at the origin."""
    height, width = z.shape[-2:]
    k = weights.shape[-1]
    kernel = torch.zeros(len(z), height, width, dtype=torch.float64, device=z.device)
    for i in range(k):
        for j in range(k):
            kernel[:, (i - k // 2) % height, (j - k // 2) % width] += weights[:, i, j]
    response = torch.fft.rfft2(kernel).conj().unsqueeze(1)
    return torch.fft.irfft2(torch.fft.rfft2(z) / response, s=(height, width))


@functools.cache
def _margins(size: int, k: int, pad: Pad) -> list[tuple[int, int]]:
    """Return the places beyond the image along an axis of its padded form, each with the place that it repeats; those of zeros are left out."""
    before = k // 2
    repeated = enumerate(border(size, k, pad).tolist())
    return [(at, source + before) for at, source in repeated if source >= 0 and not before <= at < before + size]


def _filter(x: torch.Tensor, weights: torch.Tensor, operator: Operator) -> torch.Tensor:
    n, channels, height, width = x.shape
    k = weights.shape[-1]
    padded = x.new_zeros(n, channels, height + k - 1, width + k - 1)
    padded[:, :, k // 2 : k // 2 + height, k // 2 : k // 2 + width] = x
    for axis, size in ((2, height), (3, width)):
        for at, repeated in _margins(size, k, operator.pad):
            padded.select(axis, at).copy_(padded.select(axis, repeated))
    out = torch.zeros_like(x)
    for i in range(k):
        for j in range(k):
            out.addcmul_(weights[:, i, j].view(-1, 1, 1, 1), padded[:, :, i : i + height, j : j + width])
    return out


def _filter_adjoint(y: torch.Tensor, weights: torch.Tensor, operator: Operator) -> torch.Tensor:
    n, channels, height, width = y.shape
    k = weights.shape[-1]
    padded = y.new_zeros(n, channels, height + k - 1, width + k - 1)
    for i in range(k):
        for j in range(k):
            padded[:, :, i : i + height, j : j + width].addcmul_(weights[:, i, j].view(-1, 1, 1, 1), y)
    for axis, size in ((3, width), (2, height)):
        for at, repeated in _margins(size, k, operator.pad):
            padded.select(axis, repeated).add_(padded.select(axis, at))
    return padded[:, :, k // 2 : k // 2 + height, k // 2 : k // 2 + width].contiguous()


_PART = 1 << 17
"""Numbers of the images that a CPU solves for at once: their ten or so arrays of doubles stay in its caches from step to step. (Images of 100 pixels,
one core of an EPYC, 64 at once: 103 ms an image; by parts, and without indices for what lies inside the border, 24 ms.)"""


def _by_parts(z: torch.Tensor, weights: torch.Tensor, operator: Operator) -> torch.Tensor:
    if z.is_cuda:
        return _conjugate_gradients(z, weights, operator)
    parts = max(1, _PART // z[0].numel())
    return torch.cat([_conjugate_gradients(*part, operator) for part in zip(z.split(parts), weights.split(parts), strict=True)])


def _conjugate_gradients(z: torch.Tensor, weights: torch.Tensor, operator: Operator) -> torch.Tensor:
    """Minimise |A x - z|^2 for each image by itself (CGLS, Hestenes and Stiefel 1952)."""

    def dot(u: torch.Tensor) -> torch.Tensor:
        return (u * u).sum((1, 2, 3), keepdim=True).clamp(min=1e-30)

    x = z / weights.sum((1, 2)).view(-1, 1, 1, 1)
    residual = z - _filter(x, weights, operator)
    gradient = _filter_adjoint(residual, weights, operator)
    direction, size = gradient, dot(gradient)
    for _ in range(_ITERATIONS):
        image = _filter(direction, weights, operator)
        step = size / dot(image)
        x = x + step * direction
        residual = residual - step * image
        gradient = _filter_adjoint(residual, weights, operator)
        direction, size = gradient + dot(gradient) / size * direction, dot(gradient)
    return x
