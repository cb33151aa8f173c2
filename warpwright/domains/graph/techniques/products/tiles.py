"""How long the tiles of a product in 16 bits take on an H200, wave after wave, and which blocks and pieces fill its multiprocessors.

    seconds = waves * (steps * step + end)                                                    as many tiles a wave as multiprocessors
    seconds = whole waves * (steps * step + end) + rounds * steps / pieces * step + end + join      where what is left is cut in pieces

A step is 64 terms of a tile. 192 tiles of 128 x 256 take 132 multiprocessors two waves; cut in two, the 60 that are left over take half of one. What
that costs: the pieces' float32 sums are written, and read by whichever of a tile's comes last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS

STEP = {(128, 256): 0.74e-6, (128, 128): 0.42e-6, (128, 64): 0.33e-6}
"""Seconds by rows and columns of a tile, in 8, 8 and 4 warps: those of nine cases of results/fused_product_h200, less `END`. The last is slow for its
size."""
END = 1.2e-10
"""Seconds that the end of a tile takes for each of its numbers: 4 us of 128 x 256, by the cases with 768 and 3,072 terms."""
WRITTEN, READ, JOIN = 3.5e12, 7e10, 4e-6
"""Bytes of sums of pieces a second, of the whole GPU to L2 and of a multiprocessor from it; and what zeros for the counts, a barrier and an atomic
operation take together. Predicted, not measured: two thirds and six tenths of what an H200's L2 is said to do."""
MOST_PIECES, LEAST_STEPS = {64: 8, 128: 8, 256: 4}, 4
"""By columns of a tile its pieces at most (eight of 128 x 256 spill registers), and steps of one at least: fewer than the stages would wait for the
first operands alone."""
WORTH = 0.9
"""Of the time by the blocks that are chosen by size, that others have to take at most."""
BLOCKS = ([128, 256, 64, 8, 8, 3], [128, 128, 64, 8, 8, 4], [128, 64, 64, 8, 4, 4])


def sums_seconds(m: int, n: int, k: int, shape: Sequence[int]) -> float:
    """Return the estimate of a product's sums, [m, k] times [k, n], without what ends its tiles; `shape` as `fused_product` takes it."""
    rows, columns, depth, *_ = shape
    together, pieces = (*shape[7:], *(1, 1)[max(len(shape) - 7, 0) :])
    step, steps, slots = _step(rows, columns) * depth / 64 * together, math.ceil(k / depth), MULTIPROCESSORS * together
    count = math.ceil(m / rows) * math.ceil(n / columns)
    if pieces == 1 or count % slots == 0:
        return math.ceil(count / slots) * steps * step
    cut = count % slots
    rounds = math.ceil(cut * pieces / slots)
    moved = 4.0 * rows * columns * pieces
    return count // slots * steps * step + rounds * math.ceil(steps / pieces) * step + JOIN + cut * moved / WRITTEN + moved / READ


def seconds(m: int, n: int, k: int, shape: Sequence[int]) -> float:
    """Return the same with a plain end of each wave."""
    rows, columns, *_ = shape
    together = shape[7] if len(shape) > 7 else 1
    waves = math.ceil(math.ceil(m / rows) * math.ceil(n / columns) / (MULTIPROCESSORS * together))
    return sums_seconds(m, n, k, shape) + waves * together * rows * columns * END


def filling(m: int, n: int, k: int, blocks: Sequence[int]) -> list[int] | None:
    """Return other blocks [rows, columns, depth, group, warps, stages] and pieces that fill the multiprocessors better than `blocks`; None where none
    are worth it."""
    best = min(([*one, 2, 1, pieces] for one in BLOCKS for pieces in _pieces(k, one)), key=lambda shape: seconds(m, n, k, shape))
    if seconds(m, n, k, best) > WORTH * seconds(m, n, k, blocks):
        return None
    return [*best[:6], best[8]]


def _pieces(k: int, blocks: Sequence[int]) -> range:
    _, columns, depth, *_ = blocks
    return range(1, max(min(MOST_PIECES[columns], math.ceil(k / depth) // LEAST_STEPS), 1) + 1)


def _step(rows: int, columns: int) -> float:
    return STEP.get((rows, columns), STEP[128, 256] * rows * columns / (128 * 256))
