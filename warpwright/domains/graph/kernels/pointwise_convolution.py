"""A convolution of one tap as a product with x as it lies, float32 and channels first.

    y[n, co, place] = end(sum over ci of w[co, ci] x[n, ci, place * stride])

Where sums are short, bytes are what such a convolution takes: x is read once for up to 128 channels of y, and neither cut nor turned nor copied
before.

Ladder:
1. A block of places x channels in registers; x goes through shared memory as it lies, and is rounded to TF32 (to the nearest, as cuDNN does) on
   its way to the tensor cores; w was rounded before, once.
2. Addresses of x say that places lie beside one another where the compiler does not see it: an odd number of places, strides, windows of a pool.
3. The end is that of `convolution_end.py`: pool, statistics, a part of a larger tensor.

Achieved on an H200 (results/convolution_ends_h200): 267 TFLOP/s of 1,024 channels to 512. A depthwise convolution formed on the way to the tensor
cores took 1.4 ms where its own pass and a product take 0.4: 96 channels of 64 x 112 x 112 are 700 million taps, each of them an address and a mask.

Parameters: CHANNELS 16 to 128, PLACES 128, DEPTH 16 or 32 (powers of two), warps 4 or 8, stages 2 to 4.
"""

# mypy: ignore-errors
# ruff: noqa: F821 - convolution_end.py and tf32.py stand before it
# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _pointwise_convolution(
    x, w, b, y, statistics, q0, q1, q2, q3, total,
    CI: tl.constexpr, GROUPS: tl.constexpr, ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr,  # x [N, GROUPS * CI, ID, IH, IW]
    CO: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,  # the result is [N, CO, OD, OH, OW], w [CO, CI]
    SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,  # stride
    RD: tl.constexpr, RH: tl.constexpr, RW: tl.constexpr, POOL: tl.constexpr,  # windows of a pool, which do not overlap
    WHOLE: tl.constexpr, FIRST: tl.constexpr, EACH: tl.constexpr, STATISTICS: tl.constexpr,
    PRECISION: tl.constexpr, BIAS: tl.constexpr, EPILOGUE: tl.constexpr, LATER: tl.constexpr,
    CHANNELS: tl.constexpr, PLACES: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    of_group: tl.constexpr = CO // GROUPS
    each_group: tl.constexpr = (of_group + CHANNELS - 1) // CHANNELS
    window: tl.constexpr = RD * RH * RW
    beside: tl.constexpr = SD * SH * SW == 1 and RD * RH * RW == 1 and ID * IH * IW % 4 == 0
    planes: tl.constexpr = OD // RD * RD
    rows: tl.constexpr = OH // RH * RH
    columns: tl.constexpr = OW // RW * RW
    inside: tl.constexpr = ID * IH * IW
    block, group = tl.program_id(0) // (each_group * GROUPS), tl.program_id(0) % (each_group * GROUPS) // each_group
    if EACH == 0:
        start, end = block * PLACES, total
    else:
        start, end = block // EACH * (planes * rows * columns) + block % EACH * PLACES, (block // EACH + 1) * (planes * rows * columns)
    i = start + tl.arange(0, PLACES)
    within = tl.program_id(0) % each_group * CHANNELS + tl.arange(0, CHANNELS)
    row, real, seen = group * of_group + within, within < of_group, i < end
    n, qz, qy, qx = _place_of(start, i, PLACES, planes, rows, columns, RD, RH, RW)
    if window > 1:
        seen = start // window + (i - start) % (PLACES // window) < end // window
    elif EACH != 0:
        n = block // EACH + tl.zeros_like(i)  # one number, as the compiler sees
    if SD * SH * SW == 1 and window == 1:
        of_x = i % inside  # which says how many lie beside one another
    else:
        of_x = qz * SD * (IH * IW) + qy * SH * IW + qx * SW
    along = n.to(tl.int64) * (GROUPS * CI * inside) + group * (CI * inside) + of_x
    if SD * SH * SW > 1 or window > 1 or inside % 2 == 1:  # for the order's sake, as in `_targets`
        along = tl.max_contiguous(tl.multiple_of(along, 1), 2)
    corner = x + along
    sums = tl.zeros((PLACES, CHANNELS), tl.float32)
    for first in range(0, CI, DEPTH):
        k = first + tl.arange(0, DEPTH)
        known = seen[:, None]
        if CI % DEPTH != 0:
            known = known & (k < CI)[None, :]
        if beside:
            patch = tl.load(corner[:, None] + (k * inside)[None, :], mask=known, other=0.0)
        else:
            known = seen[None, :]
            if CI % DEPTH != 0:
                known = known & (k < CI)[:, None]
            patch = tl.trans(tl.load(corner[None, :] + (k * inside)[:, None], mask=known, other=0.0))
        known_w = real[None, :]
        if CI % DEPTH != 0:
            known_w = known_w & (k < CI)[:, None]
        weight = tl.load(w + row[None, :] * CI + k[:, None], mask=known_w, other=0.0)
        if PRECISION == "tf32":
            patch = _to_tf32(patch)
        sums = tl.dot(patch, weight, sums, input_precision=PRECISION)
    if window > 1:
        place = (qz * OH + qy) * OW + qx
    elif EACH != 0:
        place = block % EACH * PLACES + tl.arange(0, PLACES)
    else:
        place = i % (OD * OH * OW)
    windows: tl.constexpr = (OD // RD) * (OH // RH) * (OW // RW)
    v = start // window + tl.arange(0, PLACES // window)
    _end_of_sums(
        tl.trans(sums), y, b, statistics, block, row, real, n, place, seen, v // windows, v % windows, v < end // window, q0, q1, q2, q3,
        CO, windows if window > 1 else OD * OH * OW, OD * OH * OW, WHOLE, FIRST, BIAS, EPILOGUE, window, POOL, LATER, STATISTICS, CHANNELS, PLACES,
    )  # fmt: skip


def pointwise_convolution(
    x, w, bias, precision, stride, places, shape, groups=1, pool=(), pooled="", into=None, within=(), epilogue=None, later=None, operands=(),
    statistics="",
):
    """Return convolution(x, w) + bias [N, CO, *places] in float32 for w [CO, CI / groups], and what `epilogue` makes of it.

    The others are those of `implicit_convolution`.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            rest = (groups, pool, pooled, into, within, epilogue, later, operands, statistics)
            return pointwise_convolution(x, w, bias, precision, stride, places, shape, *rest)
    lead, d, n, (co, ci) = [1] * (5 - x.dim()), x.dim() - 2, x.shape[0], w.shape
    out, pool = (*lead, *places), (*lead, *(pool or [1] * d))
    kept = [o // r for o, r in zip(out, pool, strict=True)]  # windows of each axis
    one = kept[0] * kept[1] * kept[2] * pool[0] * pool[1] * pool[2]
    channels, many, depth, warps, stages, *apart = shape
    each = triton.cdiv(one, many) if statistics == "each" or (any(apart) and not statistics) else 0
    blocks = n * each or triton.cdiv(n * one, many)
    y = x.new_empty((n, within[0] if within else co, *(kept[3 - d :] if pooled else places))) if into is None else into
    found = x.new_empty((blocks, co, 2)) if statistics else y
    more = (q.contiguous() for q in (*operands, *[w] * 4)[:4])
    tensors = (x.contiguous(), w.contiguous(), w if bias is None else bias.contiguous(), y, found, *more)
    numbers = (
        n * one, ci, groups, *lead, *x.shape[2:], co, *out, *lead, *stride, *pool, pooled, *(within or (co, 0)), each, bool(statistics),
        precision, bias is not None, epilogue, later, channels, many, depth,
    )  # fmt: skip
    _launched(_pointwise_convolution, (blocks * triton.cdiv(co // groups, channels) * groups,), (*tensors, *numbers), warps, stages)
    return (y, found) if statistics else y
