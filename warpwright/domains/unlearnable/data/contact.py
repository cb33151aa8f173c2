"""Contact sheet: clean and protected images side by side, for a look before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.data.images import Format, Picture, encode

CELL = 96
"""Pixels a side of one picture on the sheet."""

_GAP = 4
_BACKGROUND = 128


def contact_sheet(pairs: Sequence[tuple[NDArray[np.uint8], NDArray[np.uint8]]], columns: int = 5) -> bytes:
    """Return a PNG of clean/protected pairs (each image `[C, H, W]`), `columns` pairs a row, enlarged or thinned to CELL pixels."""
    rows = -(-len(pairs) // columns) if pairs else 0
    used = min(columns, len(pairs))
    height, width = rows * (CELL + _GAP) + _GAP, used * (2 * CELL + 2 * _GAP) + _GAP
    sheet = np.full((3, max(height, 1), max(width, 1)), _BACKGROUND, np.uint8)
    for number, pair in enumerate(pairs):
        top = _GAP + number // columns * (CELL + _GAP)
        left = _GAP + number % columns * (2 * CELL + 2 * _GAP)
        for side, image in enumerate(pair):
            start = left + side * CELL
            sheet[:, top : top + CELL, start : start + CELL] = _cell(image)
    return encode(Picture(sheet), Format("png"))


def _cell(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Nearest-neighbour copy of `[C, H, W]` to `[3, CELL, CELL]`, the longer side filling it: single pixels stay visible."""
    channels, height, width = image.shape
    longest = max(height, width)
    index = np.arange(CELL) * longest // CELL
    out = np.full((3, CELL, CELL), _BACKGROUND, np.uint8)
    rows, columns = index[index < height], index[index < width]
    part = image[:, rows][:, :, columns]
    out[:, : len(rows), : len(columns)] = part if channels == 3 else np.broadcast_to(part[:1], (3, len(rows), len(columns)))
    return out
