"""convolution.cu: 64 channels of 128 x 128 pixels to 64 channels."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output


def launch(channels: int = 64, made: int = 64, height: int = 128, width: int = 128) -> Launch:
    arrays = (given("f32", channels * (height + 2) * (width + 2)), given("f32", made * channels * 9), output("f32", made * height * width))
    return Launch("convolution", (width // 32, height // 16, made // 8), (256, 1, 1), (*arrays, channels, height, width))


def small() -> Launch:
    return launch(4, 16, 32, 64)


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x, w = x.reshape(4, 34, 66), w.reshape(16, 4, 3, 3)
    return sum(np.einsum("kc,chw->khw", w[:, :, dy, dx], x[:, dy : dy + 32, dx : dx + 64]) for dy in range(3) for dx in range(3))
