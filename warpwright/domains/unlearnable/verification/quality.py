"""How much protected images differ from clean ones: PSNR and SSIM, image by image."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
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
