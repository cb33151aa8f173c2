"""The operand of the tensor-core kernels: each filter row as a banded Toeplitz matrix, in the layout of mma's B operand.

    column n of the band of filter row i = w[i] shifted by n: 16 input bytes, from 4 columns left of the first output, times 8 output columns
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


LARGEST_HALF_WEIGHT = 4096
"""Of cwc_half.cu: products of larger weights would leave the 24 bits below the sum's leading one that every tensor core keeps."""


def dense_rows(weights: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return `[classes, k, 8 outputs, 16 bytes]`: each filter row of `[classes, k, k]` as a banded matrix."""
    k = weights.shape[-1]
    tap = np.arange(WINDOW)[None, :] - BEFORE - np.arange(OUTPUTS)[:, None] + k // 2  # [output, byte]
    inside = (tap >= 0) & (tap < k)
    return np.asarray(weights[:, :, np.clip(tap, 0, k - 1)] * inside)


def bands(weights: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return `[classes, k, 2, 32]`: for each filter row the low, then the high bytes of the weights as the B fragment of each lane.

    Lane 4g + t holds bytes 4t to 4t + 3 of the window for output column g (PTX ISA, matrix fragments of mma.m16n8k16 with .u8).
    weights: `[classes, k, k]`, 0 to 65535.
    """
    classes, k, _ = weights.shape
    dense = dense_rows(weights)
    halves = np.stack([dense & 255, dense >> 8], axis=2).astype(np.uint8)
    return np.ascontiguousarray(halves).view("<u4").reshape(classes, k, 2, 32).astype(np.uint32)


def halves(weights: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return `[classes, k, 2, 32]`: for each filter row the two words of each lane's B fragment of mma.m16n8k16 with .f16.

    Lane 4g + t holds, for output column g, bytes 4t and 4t + 2 of the window in the first word, 4t + 1 and 4t + 3 in the second: the order in which
    one byte permutation extracts pixels from a word.
    weights: `[classes, k, k]`, exact as halves (suits_halves).
    """
    classes, k, _ = weights.shape
    paired = dense_rows(weights).astype(np.float16).reshape(classes, k, OUTPUTS, 4, 2, 2)  # [..., t, place in a pair, even or odd]
    lanes = paired.transpose(0, 1, 5, 2, 3, 4)  # [classes, k, even or odd, g, t, place]
    return np.ascontiguousarray(lanes).view("<u4").reshape(classes, k, 2, 32).astype(np.uint32)


def fits(weights: NDArray[np.int32], shape: tuple[int, ...]) -> bool:
    """Does cwc_mma.cu support these filters `[classes, k, k]` and images `[N, C, H, W]`? If not, cwc_fma.cu does."""
    return suits_filters(weights) and suits_images(shape)


def suits_filters(weights: NDArray[np.int32]) -> bool:
    """Are the filters small enough for the kernel's window and its exact rescaling?"""
    return 1 <= weights.shape[-1] <= 9 and bool(weights.size) and int(weights.min()) >= 0 and int(weights.sum(axis=(1, 2)).max()) <= LARGEST_SUM


def suits_halves(weights: NDArray[np.int32]) -> bool:
    """Does cwc_half.cu support the filters: small ones whose weights are exact in half precision?"""
    exact = weights.shape[-1] <= 3 and suits_filters(weights) and int(weights.max()) <= LARGEST_HALF_WEIGHT
    return exact and bool((weights.astype(np.float16) == weights).all())


def suits_images(shape: tuple[int, ...]) -> bool:
    """Do the images consist of whole 8-column tiles, and large enough that a border reflects once?"""
    _, channels, height, width = shape
    return min(height, width) >= OUTPUTS and width % OUTPUTS == 0 and channels * height * width < 1 << 31
