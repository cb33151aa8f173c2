"""How much protected images differ from clean ones: PSNR and SSIM, image by image, and a distance as a network sees it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

_WINDOW, _SIGMA = 11, 1.5
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def psnr(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return `[N]` peak signal-to-noise ratios in dB of images `[N, C, H, W]`; 99 where they are equal."""
    error = ((a.astype(np.float64) - b) ** 2).mean((1, 2, 3))
    return 10 * np.log10(255.0**2 / np.maximum(error, 255.0**2 / 10**9.9))


def ssim(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return `[N]` structural similarities, mean over channels (Wang et al. 2004: Gaussian window of 11, sigma 1.5, no padding).

    Images narrower than 11 pixels get a window of their own size.
    """
    size = min(_WINDOW, *a.shape[2:])
    taps = torch.exp(-((torch.arange(size, dtype=torch.float64) - (size - 1) / 2) ** 2) / (2 * _SIGMA**2))
    taps /= taps.sum()

    def smooth(x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, 1, *x.shape[2:])
        return F.conv2d(F.conv2d(flat, taps.view(1, 1, -1, 1)), taps.view(1, 1, 1, -1)).view(len(x), -1)

    scores = []
    for start in range(0, len(a), 256):
        x, y = (torch.from_numpy(images[start : start + 256].astype(np.float64)) for images in (a, b))
        mean_x, mean_y = smooth(x), smooth(y)
        var_x, var_y, both = smooth(x * x) - mean_x**2, smooth(y * y) - mean_y**2, smooth(x * y) - mean_x * mean_y
        score = (2 * mean_x * mean_y + _C1) * (2 * both + _C2) / ((mean_x**2 + mean_y**2 + _C1) * (var_x + var_y + _C2))
        scores.append(score.mean(1).numpy())
    return np.concatenate(scores) if scores else np.zeros(0)


def perceptual(net: nn.Module, a: NDArray[np.uint8], b: NDArray[np.uint8], device: str = "cpu") -> float:
    """Return the mean distance of images in the feature maps of `net`: LPIPS-like (Zhang et al. 2018), without its learnt weights.

    Each part of the network that gives maps `[N, C, h, w]` counts alike; at each place the features are scaled to length 1, and the squared
    difference is averaged over places. 0 for equal images. Figures of different networks cannot be compared.
    """
    net.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(a), 256):
            x, y = (torch.from_numpy(images[start : start + 256]).to(device).float() / 255 for images in (a, b))
            pairs = zip(_maps(net, x), _maps(net, y), strict=True)
            distances = torch.stack([(F.normalize(one) - F.normalize(other)).square().sum(1).mean((1, 2)) for one, other in pairs])
            total, count = total + float(distances.mean(0).sum()), count + len(x)
    return total / max(count, 1)


def _maps(net: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Return what each part of the network gives that is a map of features."""
    seen: list[torch.Tensor] = []
    hooks = [part.register_forward_hook(lambda _, __, out: seen.append(out)) for part in net.children()]
    try:
        net((x - 0.5) / 0.25)
    finally:
        for hook in hooks:
            hook.remove()
    return [one for one in seen if one.ndim == 4]
