"""How a convolution's kernel ends: bias, what follows element by element, a pool, statistics for a norm, and the store, also into a part of a larger
tensor.

The sums are [CHANNELS, PLACES] in registers. A block has all places of its windows, so a pool over windows that do not overlap reduces what one
thread holds, and a quarter (of 2 x 2) of the result is written, none of it read again. A norm's statistics are the mean and the sum of squared
deviations of each channel in each block, which `norm_of_blocks` joins as Chan, Golub and LeVeque (1979) do: nothing cancels, and the norm itself is
then element by element.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.sound import _launched  # noqa: I001

# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _greater(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _place_of(
    start, i, PLACES: tl.constexpr, PLANES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    RD: tl.constexpr, RH: tl.constexpr, RW: tl.constexpr,
):  # fmt: skip
    """Return the sample, plane, row and column of the places i of a block that begins at `start`.

    With windows of RD x RH x RW a block has the first place of each of its windows, then the second of each: all of a window lie in one thread.
    """
    if RD * RH * RW == 1:
        return i // (PLANES * ROWS * COLUMNS), i // (ROWS * COLUMNS) % PLANES, i // COLUMNS % ROWS, i % COLUMNS
    else:
        v = start // (RD * RH * RW) + (i - start) % (PLACES // (RD * RH * RW))
        m = (i - start) // (PLACES // (RD * RH * RW))
        of_z: tl.constexpr = PLANES // RD
        of_y: tl.constexpr = ROWS // RH
        of_x: tl.constexpr = COLUMNS // RW
        return (
            v // (of_z * of_y * of_x), v // (of_y * of_x) % of_z * RD + m // (RH * RW), v // of_x % of_y * RH + m // RW % RH, v % of_x * RW + m % RW
        )  # fmt: skip


@triton.jit
def _targets(n, row, place, CHANNELS_OF_Y: tl.constexpr, PLACES_OF_Y: tl.constexpr):
    """Return where y [N, CHANNELS_OF_Y, PLACES_OF_Y] has each row at each place.

    Of an odd number of places the compiler sees no neighbours, and gives a warp's threads one place of 32 channels each: eight times the sectors.
    That two lie beside one another is said for the order's sake; each is aligned to one element, so that none are written together.
    """
    if PLACES_OF_Y % 2 == 0:
        return n.to(tl.int64)[None, :] * (CHANNELS_OF_Y * PLACES_OF_Y) + row.to(tl.int64)[:, None] * PLACES_OF_Y + place[None, :]
    else:
        along = n.to(tl.int64) * (CHANNELS_OF_Y * PLACES_OF_Y) + place
        along = tl.max_contiguous(tl.multiple_of(along, 1), 2)
        return along[None, :] + row.to(tl.int64)[:, None] * PLACES_OF_Y


@triton.jit
def _end_of_sums(
    sums, y, b, statistics, block, row, real, n, place, seen, wn, wplace, wseen, q0, q1, q2, q3,
    CO: tl.constexpr, PLACES_OF_Y: tl.constexpr, BEFORE_POOL: tl.constexpr, WHOLE: tl.constexpr, FIRST: tl.constexpr, BIAS: tl.constexpr,
    EPILOGUE: tl.constexpr, WINDOW: tl.constexpr, POOL: tl.constexpr, LATER: tl.constexpr, STATISTICS: tl.constexpr,
    CHANNELS: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """Write y [N, WHOLE, PLACES_OF_Y], of which this convolution's channels are FIRST and CO - 1 after it.

    n, place, seen say where each of PLACES sums lies among BEFORE_POOL places; wn, wplace, wseen the same of the PLACES // WINDOW windows.
    """
    if BIAS:
        sums += tl.load(b + row, mask=real, other=0.0)[:, None]
    kept = real[:, None] & seen[None, :]
    target = _targets(n, row, place, CO, BEFORE_POOL)
    if EPILOGUE is not None:
        sums = EPILOGUE(sums, row, real, target, kept, q0, q1, q2, q3)
    if WINDOW > 1:
        sums = tl.reshape(sums, (CHANNELS, WINDOW, PLACES // WINDOW))
        if POOL == "max":
            sums = tl.reduce(sums, 1, _greater)
        else:
            sums = tl.sum(sums, 1) * (1.0 / WINDOW)
        kept = real[:, None] & wseen[None, :]
        target = _targets(wn, row, wplace, CO, PLACES_OF_Y)
        if LATER is not None:
            sums = LATER(sums, row, real, target, kept, q0, q1, q2, q3)
        n, place = wn, wplace
    if STATISTICS:
        count = tl.sum(tl.where(kept, 1.0, 0.0), 1)
        mean = tl.sum(tl.where(kept, sums, 0.0), 1) / tl.maximum(count, 1.0)
        away = tl.where(kept, sums - mean[:, None], 0.0)
        at = statistics + (block.to(tl.int64) * CO + row) * 2
        tl.store(at, mean, mask=real)
        tl.store(at + 1, tl.sum(away * away, 1), mask=real)
    if WHOLE != CO:
        target = _targets(n, FIRST + row, place, WHOLE, PLACES_OF_Y)
    tl.store(y + target, sums, mask=kept)


@triton.jit
def _norm_of_blocks(
    statistics, mean, variance, blocks, per, channels, GROUP: tl.constexpr, PLACES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Join the blocks of one unit (a sample, or all of them) and GROUP channels: their mean and variance, written for each channel."""
    groups = channels // GROUP
    unit, first = tl.program_id(0) // groups, tl.program_id(0) % groups * GROUP
    items = blocks * GROUP
    sums, squares = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    for start in range(0, items, BLOCK):
        i = start + tl.arange(0, BLOCK)
        block, count = i // GROUP, tl.minimum(per - i // GROUP * PLACES, PLACES).to(tl.float64)
        at = statistics + ((unit * blocks + block).to(tl.int64) * channels + first + i % GROUP) * 2
        sums += tl.where(i < items, count * tl.load(at, mask=i < items, other=0.0), 0.0)
    of_all = tl.sum(sums, 0) / (per * GROUP)
    for start in range(0, items, BLOCK):
        i = start + tl.arange(0, BLOCK)
        block, count = i // GROUP, tl.minimum(per - i // GROUP * PLACES, PLACES).to(tl.float64)
        at = statistics + ((unit * blocks + block).to(tl.int64) * channels + first + i % GROUP) * 2
        away = tl.load(at, mask=i < items, other=0.0) - of_all
        squares += tl.where(i < items, tl.load(at + 1, mask=i < items, other=0.0) + count * away * away, 0.0)
    of_squares = tl.sum(squares, 0) / (per * GROUP)
    for start in range(0, GROUP, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at = unit * channels + first + i
        tl.store(mean + at, (of_all + i * 0).to(tl.float32), mask=i < GROUP)
        tl.store(variance + at, (of_squares + i * 0).to(tl.float32), mask=i < GROUP)


def norm_of_blocks(statistics, units, per, group, places, rank):
    """Return variance and mean [units, CO, 1, ...] of what blocks have found: statistics [units * blocks, CO, 2], of `places` of `per` each."""
    if statistics.is_cuda and statistics.get_device() != torch.cuda.current_device():
        with torch.cuda.device(statistics.device):
            return norm_of_blocks(statistics, units, per, group, places, rank)
    rows, channels = statistics.shape[:2]
    found = statistics.new_empty((2, units, channels, *[1] * (rank - 2)))
    numbers = (rows // units, per, channels, group, places, 512)
    _launched(_norm_of_blocks, (units * (channels // group),), (statistics, found[1], found[0], *numbers), 4, 1)
    return found[0], found[1]
