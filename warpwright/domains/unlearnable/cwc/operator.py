"""The CWC operator, in int64 numpy: the definition that every faster back end has to match bit for bit.

    z[n,c,y,x] = sum_{i,j} w[label[n]][i,j] * image[n,c, y+i-k//2, x+j-k//2]        cross-correlation, "same" size
    out        = floor((510*z + m) / (2*m)),  m = max over the image of z           scale="max": the paper's
    out        = floor((2*z + S) / (2*S)),    S = sum of the filter                 scale="sum": keeps brightness
An image whose maximum is 0 stays black.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import UsageError

Pad = Literal["zero", "reflect", "circular"]
Scale = Literal["max", "sum"]
PADS: tuple[Pad, ...] = ("zero", "reflect", "circular")
SCALES: tuple[Scale, ...] = ("max", "sum")


@dataclass(frozen=True)
class Operator:
    """Boundary and rescaling of the convolution."""

    pad: Pad = "reflect"
    scale: Scale = "sum"


def border(size: int, k: int, pad: Pad) -> NDArray[np.int32]:
    """Return `[size + k - 1]` source index of every padded position along one axis; -1 means a zero.

    Reflection does not repeat the edge pixel and continues back and forth where the pad is longer than the image.
    """
    position = np.arange(size + k - 1) - k // 2
    if pad == "zero":
        return np.where((position >= 0) & (position < size), position, -1).astype(np.int32)
    if pad == "circular":
        return (position % size).astype(np.int32)
    period = max(2 * (size - 1), 1)
    folded = position % period
    return np.minimum(folded, period - folded if size > 1 else 0).astype(np.int32)


def check(images: NDArray[np.uint8], labels: NDArray[np.integer], weights: NDArray[np.int32]) -> None:
    """Raise UsageError unless shapes, types and labels fit together: images `[N, C, H, W]`, labels `[N]`, weights `[K, k, k]`."""
    if images.dtype != np.uint8 or images.ndim != 4:
        raise UsageError(f"expected images as uint8 [N, C, H, W], saw {images.dtype} {images.shape}", "convert to 8 bits first")
    if images.size == 0 and len(images):
        raise UsageError(f"expected images with pixels, saw {images.shape}", "drop empty images")
    if labels.shape != (len(images),) or not np.issubdtype(labels.dtype, np.integer):
        raise UsageError(f"expected {len(images)} integer labels, saw {labels.dtype} {labels.shape}", "give one label per image")
    if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= len(weights)):
        raise UsageError(f"expected labels in 0..{len(weights) - 1}, saw {labels.min()}..{labels.max()}", "give the bank every class")


def reference(images: NDArray[np.uint8], labels: NDArray[np.integer], weights: NDArray[np.int32], operator: Operator) -> NDArray[np.uint8]:
    """Return `[N, C, H, W]` uint8, by the definition: slow and obvious."""
    check(images, labels, weights)
    out = np.empty_like(images)
    for n, label in enumerate(labels):
        z = convolve(images[n].astype(np.int64), weights[label].astype(np.int64), operator.pad)
        out[n] = rescale(z, int(weights[label].sum()), operator.scale)
    return out


def convolve(image: NDArray[np.int64], weights: NDArray[np.int64], pad: Pad) -> NDArray[np.int64]:
    """Return `[C, H, W]` the cross-correlation of one image with one filter, in units of 1/4096."""
    _, height, width = image.shape
    k = weights.shape[0]
    rows, columns = border(height, k, pad), border(width, k, pad)
    padded = image[:, rows[:, None], columns[None, :]] * ((rows >= 0)[:, None] & (columns >= 0)[None, :])
    z = np.zeros_like(image)
    for i in range(k):
        for j in range(k):
            z += weights[i, j] * padded[:, i : i + height, j : j + width]
    return z


def rescale(z: NDArray[np.int64], total: int, scale: Scale) -> NDArray[np.uint8]:
    """Return z rounded to 8 bits, half up."""
    if scale == "sum":
        return ((2 * z + total) // (2 * total)).astype(np.uint8)
    top = int(z.max())
    if top == 0:
        return np.zeros(z.shape, np.uint8)
    return ((510 * z + top) // (2 * top)).astype(np.uint8)
