"""A convolution of one tap as a product with x as it lies, float32 and channels first, and before it a convolution of each channel by itself.

    y[n, co, place] = end(sum over ci of w[co, ci] middle(sum over taps of u[ci, tap] x[n, ci, place * stride - padding + tap * dilation]))

Where every sum is short, bytes are what such a convolution takes: x is read once for up to 128 channels of y, and neither cut nor turned nor copied
before; with a depthwise convolution first, what lies between the two is never written.

Ladder:
1. A block of places x channels in registers; x goes through shared memory as it lies, and is rounded to TF32 (to the nearest, as cuDNN does) on
   its way to the tensor cores; w was rounded before, once.
2. With taps, a step forms its channels at its places by multiplications in float32: neighbours lie in L1.
3. The end is that of `convolution_end.py`: pool, statistics, a part of a larger tensor.

Nothing was measured yet. Parameters: CHANNELS 16 to 256, PLACES 64 or 128, DEPTH 16 or 32 (powers of two), warps 4 or 8, stages 1 to 4.
"""

# mypy: ignore-errors
# ruff: noqa: F821 - convolution_end.py stands before it
# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _nearest_tf32(x):
    bits = x.to(tl.int32, bitcast=True) + 0x1000
    return tl.where(x == x, (bits & -0x2000).to(tl.float32, bitcast=True), x)


@triton.jit
def _pointwise_convolution(
    x, w, u, ub, b, y, statistics, total,
    CI: tl.constexpr, GROUPS: tl.constexpr, ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr,  # x [N, GROUPS * CI, ID, IH, IW]
    CO: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,  # the result is [N, CO, OD, OH, OW], w [CO, CI]
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,  # u [CI, KD, KH, KW]
    SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,  # stride
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,  # zeros before each axis of x
    LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr,  # dilation
    RD: tl.constexpr, RH: tl.constexpr, RW: tl.constexpr, POOL: tl.constexpr,  # windows of a pool, which do not overlap
    WHOLE: tl.constexpr, FIRST: tl.constexpr, EACH: tl.constexpr, STATISTICS: tl.constexpr,
    DEPTHWISE: tl.constexpr, OF_U: tl.constexpr, MIDDLE: tl.constexpr, m0, m1, m2, m3,
    PRECISION: tl.constexpr, BIAS: tl.constexpr, q0, q1, q2, q3, EPILOGUE: tl.constexpr, LATER: tl.constexpr,
    CHANNELS: tl.constexpr, PLACES: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    of_group: tl.constexpr = CO // GROUPS
    each_group: tl.constexpr = (of_group + CHANNELS - 1) // CHANNELS
    window: tl.constexpr = RD * RH * RW
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
    n, qz, qy, qx = _place_of(i, planes, rows, columns, RD, RH, RW)
    if SD * SH * SW == 1 and not DEPTHWISE and window == 1:
        of_x = i % inside  # which says how many lie beside one another
    else:
        of_x = (qz * SD - PD) * (IH * IW) + (qy * SH - PH) * IW + (qx * SW - PW)
    corner = x + (n.to(tl.int64) * (GROUPS * CI * inside) + group * (CI * inside) + of_x)
    sums = tl.zeros((PLACES, CHANNELS), tl.float32)
    for first in range(0, CI, DEPTH):
        k = first + tl.arange(0, DEPTH)
        known = seen[:, None]
        if CI % DEPTH != 0:
            known = known & (k < CI)[None, :]
        at = corner[:, None] + (k * inside)[None, :]
        if not DEPTHWISE:
            patch = tl.load(at, mask=known, other=0.0)
        else:
            patch = tl.zeros((PLACES, DEPTH), tl.float32)
            for tap in tl.static_range(0, KD * KH * KW):
                dz = tap // (KH * KW) * LD
                dy = tap // KW % KH * LH
                dx = tap % KW * LW
                there = seen
                if PD != 0 or (OD - 1) * SD - PD + (KD - 1) * LD >= ID:
                    there = there & (qz * SD - PD + dz >= 0) & (qz * SD - PD + dz < ID)
                if PH != 0 or (OH - 1) * SH - PH + (KH - 1) * LH >= IH:
                    there = there & (qy * SH - PH + dy >= 0) & (qy * SH - PH + dy < IH)
                if PW != 0 or (OW - 1) * SW - PW + (KW - 1) * LW >= IW:
                    there = there & (qx * SW - PW + dx >= 0) & (qx * SW - PW + dx < IW)
                factor = tl.load(u + k * (KD * KH * KW) + tap, mask=k < CI, other=0.0)
                patch += tl.load(at + (dz * (IH * IW) + dy * IW + dx), mask=known & there[:, None], other=0.0) * factor[None, :]
            if OF_U:
                patch += tl.load(ub + k, mask=k < CI, other=0.0)[None, :]
            if MIDDLE is not None:
                patch = MIDDLE(patch, k, k < CI, m0, m1, m2, m3)
            if CI % DEPTH != 0:
                patch = tl.where((k < CI)[None, :], patch, 0.0)
        known_w = real[None, :]
        if CI % DEPTH != 0:
            known_w = known_w & (k < CI)[:, None]
        weight = tl.load(w + row[None, :] * CI + k[:, None], mask=known_w, other=0.0)
        if PRECISION == "tf32":
            patch = _nearest_tf32(patch)
        sums = tl.dot(patch, weight, sums, input_precision=PRECISION)
    if window > 1:
        place = (qz * OH + qy) * OW + qx
    else:
        place = i % (OD * OH * OW)
    windows: tl.constexpr = (OD // RD) * (OH // RH) * (OW // RW)
    v = start // window + tl.arange(0, PLACES // window)
    _end_of_sums(
        tl.trans(sums), y, b, statistics, block, row, real, n, place, seen, v // windows, v % windows, v < end // window, q0, q1, q2, q3,
        CO, windows if window > 1 else OD * OH * OW, OD * OH * OW, WHOLE, FIRST, BIAS, EPILOGUE, window, POOL, LATER, STATISTICS, CHANNELS, PLACES,
    )  # fmt: skip


def pointwise_convolution(
    x, w, bias, precision, stride, places, shape, groups=1, first=None, pool=(), pooled="", into=None, within=(), middle=None, between=(),
    epilogue=None, later=None, operands=(), statistics="",
):
    """Return convolution(x, w) + bias [N, CO, *places] in float32 for w [CO, CI / groups], and what `epilogue` makes of it.

    `first`: None, or weight [CI, *kernel], bias, padding and dilation of a depthwise convolution before it, whose stride is `stride`, and which ends
    with `middle`, of the tensors `between`. The others are those of `implicit_convolution`.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            rest = (groups, first, pool, pooled, into, within, middle, between, epilogue, later, operands, statistics)
            return pointwise_convolution(x, w, bias, precision, stride, places, shape, *rest)
    lead, d, n, (co, ci) = [1] * (5 - x.dim()), x.dim() - 2, x.shape[0], w.shape
    u, of_u, padding, dilation = first or (None, None, [0] * d, [1] * d)
    kernel = (*lead, *(u.shape[1:] if first else [1] * d))
    out, pool = (*lead, *places), (*lead, *(pool or [1] * d))
    kept = [o // r for o, r in zip(out, pool, strict=True)]  # windows of each axis
    one = kept[0] * kept[1] * kept[2] * pool[0] * pool[1] * pool[2]
    channels, many, depth, warps, stages = shape
    each = triton.cdiv(one, many) if statistics == "each" else 0
    blocks = n * each or triton.cdiv(n * one, many)
    y = x.new_empty((n, within[0] if within else co, *(kept[3 - d :] if pooled else places))) if into is None else into
    found = x.new_empty((blocks, co, 2)) if statistics else y
    _pointwise_convolution[(blocks * triton.cdiv(co // groups, channels) * groups,)](
        x.contiguous(), w.contiguous(), u.contiguous() if first else w, w if of_u is None else of_u.contiguous(),
        w if bias is None else bias.contiguous(), y, found, n * one, ci, groups, *lead, *x.shape[2:], co, *out, *kernel,
        *lead, *stride, *[0] * (3 - d), *padding, *lead, *dilation, *pool, pooled, *(within or (co, 0)), each, bool(statistics),
        first is not None, of_u is not None, middle, *(q.contiguous() for q in (*between, *[w] * 4)[:4]),
        precision, bias is not None, *(q.contiguous() for q in (*operands, *[w] * 4)[:4]), epilogue, later, channels, many, depth,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return (y, found) if statistics else y
