"""What a block of `flash_attention` and of `flash_wide` takes at once: as measured on an H200, and as it fits a multiprocessor."""

from __future__ import annotations

from collections.abc import Sequence

WIDEST, MOST_WIDE = 256, 1024
"""Numbers of a head that the registers of a block hold sums of; of one whose scores are kept in memory."""
MOST_SHARED = 225 * 1024
"""Bytes of shared memory that a block may ask for on a Hopper GPU, less two KB."""


def block_shape(d: int, rows: int, whole: bool, more: int = 0, hides: bool = False) -> list[int]:
    """Return rows and keys of a block, warps, stages and whether halves are cut before (1).

    `d`: the wider of a head's sizes. `rows`: queries that share a key head. `whole`: are the operands of 16 bits? `more`: bytes of mask and bias
    for each score. `hides`: is a row hidden keys by their place? The fastest of two to four on an H200 (benchmarks/results/attention_h200);
    those of wide heads are what spills no registers.
    """
    if d > WIDEST:
        return [16, 64, 4, 2, 0] if rows <= 16 else [32 if rows <= 32 else 64, 64, 4, 2, 0] if rows <= 64 else [128, 64, 8, 2, int(not whole)]
    if rows <= 64 and d > 128 and not whole:  # of 16 rows and 32 keys 64 bytes a thread are spilled, of 64 keys 1,056
        return [16 if rows <= 16 else 32, 32, 4, 1, 0]
    if rows <= 16:
        return [16, 128 if whole and d <= 128 else 64, 4, 2, 0]
    if rows <= 64:
        return [32 if rows <= 32 else 64, 64, 4, 1, 0]  # 49 keys are one tile: a second stage took 0.24 ms where one took 0.13
    if whole:
        blocks = [128, 64, 4, 3, 0] if d <= 64 else [128, 64, 8, 3 if d <= 128 else 2, 0]
        if d <= 128 and (hides or more):
            blocks = [64, 64, 4, 3, 0]  # with padding, ALiBi and a window 5 to 8 % faster, causal alone 2 % slower
    elif d <= 64 and rows <= 256:  # 197 rows took 0.200 ms, 0.218 and more where halves are cut before
        blocks = [128, 64, 8, 2, 0]
    else:
        blocks = [64, 64, 4, 2, 1] if d <= 64 else [128, 64, 8, 2, int(rows > 128)] if d <= 128 else [64, 32, 8, 2, 1]
    while blocks[1] > 16 and shared_bytes(d, blocks, whole, more) > MOST_SHARED:
        blocks[1] //= 2
    return blocks


def shared_bytes(d: int, blocks: Sequence[int], whole: bool, more: int) -> int:
    """Return about how much shared memory a block takes: q, the tiles of k and v of each stage, and those of mask and bias."""
    rows, keys, _, stages, _ = blocks
    each = (1 << max(d - 1, 15).bit_length()) * 2 * (1 if whole else 2)
    return rows * each + stages * keys * 2 * each + max(stages - 1, 1) * more * rows * keys


def backward_shape(d: int, whole: bool) -> list[int]:
    """Return rows or keys of a block of `flash_backward`, the others of a tile, warps, stages and whether halves are cut before (1).

    The fastest of two or three on an H200 (benchmarks/results/attention_h200), or within 4 % of it: in float32 of 64 numbers four warps and one stage
    are 1.6 to 1.8 times as fast as eight and two, in 16 bits of 128 numbers four warps 1.75 to 1.78 times as fast as eight.
    """
    if whole:
        return [64, 64, 4, 2, 0] if d <= 128 else [32, 32, 4, 2, 0]
    return [64, 64, 4, 1, 1] if d <= 64 else [32, 32, 4, 1, 1] if d <= 128 else [32, 32, 8, 1, 1]
