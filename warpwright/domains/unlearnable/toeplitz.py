"""What the tensor-core kernel classwise_mma.cu multiplies with: each filter row as a banded Toeplitz matrix, in the layout of mma's B operand.

    column n of the band of filter row i = w[i] moved n places: 16 input bytes, from 4 columns left of the first output, times 8 output columns
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WINDOW = 16
"""Input bytes of one product: one k16 step of mma.m16n8k16."""

OUTPUTS = 8
"""Output columns of one product."""

BEFORE = 4
"""Columns of the window left of the first output: keeps every 32-bit load aligned, and bounds k to 9."""

LARGEST_SUM = 16384
"""Of a filter, in 1/4096: 255 of it stay below 2**22, which the kernel's rescaling needs."""


def bands(weights: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return `[classes, k, 2, 32]`: for each filter row the low, then the high bytes of the weights as the B fragment of each lane.

    Lane 4g + t holds bytes 4t to 4t + 3 of the window for output column g (PTX ISA, matrix fragments of mma.m16n8k16 with .u8).
    weights: `[classes, k, k]`, 0 to 65535.
    """
    classes, k, _ = weights.shape
    tap = np.arange(WINDOW)[None, :] - BEFORE - np.arange(OUTPUTS)[:, None] + k // 2  # [output, byte]
    inside = (tap >= 0) & (tap < k)
    dense = weights[:, :, np.clip(tap, 0, k - 1)] * inside  # [classes, k, output, byte]
    halves = np.stack([dense & 255, dense >> 8], axis=2).astype(np.uint8)
    return np.ascontiguousarray(halves).view("<u4").reshape(classes, k, 2, 32).astype(np.uint32)


def fits(weights: NDArray[np.int32], shape: tuple[int, ...]) -> bool:
    """Can classwise_mma.cu take these filters `[classes, k, k]` and images `[N, C, H, W]`? Else classwise.cu does."""
    return suits_filters(weights) and suits_images(shape)


def suits_filters(weights: NDArray[np.int32]) -> bool:
    """Are the filters small enough for the kernel's window and its exact rescaling?"""
    return 1 <= weights.shape[-1] <= 9 and bool(weights.size) and int(weights.min()) >= 0 and int(weights.sum(axis=(1, 2)).max()) <= LARGEST_SUM


def suits_images(shape: tuple[int, ...]) -> bool:
    """Are the images made of whole 8-column tiles, and large enough that a border reflects once?"""
    _, channels, height, width = shape
    return min(height, width) >= OUTPUTS and width % OUTPUTS == 0 and channels * height * width < 1 << 31
