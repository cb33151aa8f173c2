"""A convolution in one kernel, with a reduction over its channels where one follows: what the technique of that name puts in.

The sums are formed as a product of matrices, patches [BLOCK, depth] times weights [depth, channels], on tensor cores: of a block of output
places all channels are in registers at once, and only the reduced ones go to memory. In TF32 a float32 number is rounded to 10 bits of mantissa;
"tf32x3" splits both operands in two such numbers and forms the three products that matter.
"""

# mypy: ignore-errors
# ruff: noqa: F821 - sound.py, extrema.py and tf32.py stand before it
# --- generated programs hold what follows

import triton
import triton.language as tl


@triton.jit
def _direct_convolution(
    x, w, b, y, total, zero,  # `zero` is 0, which no compiler knows: an index of 32 bits stays one
    CI: tl.constexpr, ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr,  # x [N, CI, ID, IH, IW]
    OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,  # places of the output; `total` is N times as many
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,  # w [OUTER * INNER, CI, KD, KH, KW]
    SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,  # stride
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,  # zeros before each axis of x
    LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr,  # dilation
    OUTER: tl.constexpr, INNER: tl.constexpr, OUTER_P: tl.constexpr, INNER_P: tl.constexpr,  # channels, and the next powers of two
    AXIS: tl.constexpr, OP: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr,
    q0, q1, q2, q3, EPILOGUE: tl.constexpr,  # what follows element by element: a function of the sums, and its tensors of numbers a channel
    BLOCK: tl.constexpr, GROUP: tl.constexpr, STEP: tl.constexpr,  # places of a block; input channels and terms of a step
):  # fmt: skip
    taps: tl.constexpr = KD * KH * KW
    depth: tl.constexpr = CI * taps
    places: tl.constexpr = OD * OH * OW
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n, place = i // places, i % places
    z0 = place // (OH * OW) * SD + (zero - PD)
    y0 = place // OW % OH * SH + (zero - PH)
    x0 = place % OW * SW + (zero - PW)
    corner = n.to(tl.int64) * (CI * ID * IH * IW) + z0 * (IH * IW) + y0 * IW + x0
    if taps > 1 or SD * SH * SW > 1:  # the order of places is said, not seen: Triton 3.6 takes that axis anyway, 3.8 the terms'
        corner = tl.max_contiguous(tl.multiple_of(corner, 1), 2)
    m = tl.arange(0, OUTER_P * INNER_P)
    outer, inner = m // INNER_P, m % INNER_P
    row, real = outer * INNER + inner, (outer < OUTER) & (inner < INNER)
    sums = tl.zeros((BLOCK, OUTER_P * INNER_P), tl.float32)
    for first in range(0, CI, GROUP):  # what depends on k alone is the same for each group of input channels: it is computed once
        for start in tl.static_range(0, GROUP * taps, STEP):
            k = start + tl.arange(0, STEP)
            dz, dy, dx = k // (KH * KW) % KD * LD, k // KW % KH * LH, k % KW * LW
            inside = (i < total)[:, None] & (k < GROUP * taps)[None, :]
            if PD > 0 or (OD - 1) * SD - PD + (KD - 1) * LD >= ID:
                at_z = z0[:, None] + dz[None, :]
                inside &= (at_z >= 0) & (at_z < ID)
            if PH > 0 or (OH - 1) * SH - PH + (KH - 1) * LH >= IH:
                at_y = y0[:, None] + dy[None, :]
                inside &= (at_y >= 0) & (at_y < IH)
            if PW > 0 or (OW - 1) * SW - PW + (KW - 1) * LW >= IW:
                at_x = x0[:, None] + dx[None, :]
                inside &= (at_x >= 0) & (at_x < IW)
            tap = k // taps * (ID * IH * IW) + dz * (IH * IW) + dy * IW + dx
            patch = tl.load(x + first * (ID * IH * IW) + (corner[:, None] + tap[None, :]), mask=inside, other=0.0)
            known = real[None, :] & (k < GROUP * taps)[:, None]
            weight = tl.load(w + first * taps + (row[None, :] * depth + k[:, None]), mask=known, other=0.0)
            if PRECISION == "tf32":
                patch, weight = _to_tf32(patch), _to_tf32(weight)
            sums = tl.dot(patch, weight, sums, input_precision=PRECISION)
    if BIAS:
        sums += tl.load(b + row, mask=real, other=0.0)[None, :]
    if AXIS == 0:
        if EPILOGUE is not None:
            sums = EPILOGUE(sums, row, real, q0, q1, q2, q3)
        target = n.to(tl.int64) * (OUTER * INNER * places) + place
        if places % 2 == 1:
            target = tl.max_contiguous(tl.multiple_of(target, 1), 2)
        tl.store(y + target[:, None] + row[None, :] * places, sums, mask=(i < total)[:, None] & real[None, :])
    else:
        if OUTER_P != OUTER or INNER_P != INNER:
            sums = tl.where(real[None, :], sums, float("inf") if OP == "amin" else float("-inf"))
        sums = tl.reshape(sums, (BLOCK, OUTER_P, INNER_P))
        found = tl.reduce(sums, AXIS, _smaller if OP == "amin" else _larger)
        if OP == "logsumexp":
            shift = tl.where(tl.abs(found) == float("inf"), 0.0, found)
            found = shift + tl.log(tl.sum(tl.exp(sums - tl.expand_dims(shift, AXIS)), AXIS))
        kept: tl.constexpr = INNER if AXIS == 1 else OUTER
        kept_p: tl.constexpr = INNER_P if AXIS == 1 else OUTER_P
        q = tl.arange(0, kept_p)
        target = n.to(tl.int64) * (kept * places) + place
        if places % 2 == 1:
            target = tl.max_contiguous(tl.multiple_of(target, 1), 2)
        tl.store(y + target[:, None] + q[None, :] * places, found, mask=(i < total)[:, None] & (q < kept)[None, :])


def direct_convolution(x, weight, bias, stride, padding, places, dilation, precision, outer=1, axis=0, op="", epilogue=None, operands=()):
    """Return convolution(x, weight) + bias [N, channels, *places]; with `op`, that as [N, outer, channels / outer, *places] reduced over `axis`.

    `padding` zeros stand before each spatial axis of x, and as many after it as `places` ask for. `epilogue` is what the kernel ends with.
    """
    lead, d = [1] * (5 - x.dim()), x.dim() - 2
    (n, ci), sizes, kernel = x.shape[:2], (*lead, *x.shape[2:]), (*lead, *weight.shape[2:])
    out, stride, dilation, before = (*lead, *places), (*lead, *stride), (*lead, *dilation), (*[0] * (3 - d), *padding)
    inner = weight.shape[0] // outer
    y = x.new_empty((n, (weight.shape[0], inner, outer)[axis], *places))
    total = n * out[0] * out[1] * out[2]
    outer_p, inner_p = triton.next_power_of_2(outer), max(triton.next_power_of_2(inner), 16 // triton.next_power_of_2(outer))
    wide, taps = outer_p * inner_p, kernel[0] * kernel[1] * kernel[2]
    deep = wide == 64 and ci * taps > 64  # blocks: the fastest of six on an H200, for L1-54, 60 and L2-25, 90; and for L2-27, 58, 89
    light = deep and precision == "tf32"  # a third of the products: 1.5 times faster than the former in four warps (2.24 ms for L2-25, 2.80 for 90)
    block, step, warps = (128, 32, 4) if light else (128, 16, 8) if deep else (64, 32 if 16 < ci * taps <= 32 else 16, 8 if wide > 128 else 4)
    group, steps = 1, ci * -(-taps // step)
    for more in range(2, ci + 1):  # as many input channels at once as leave the fewest terms that are zero
        if ci % more == 0 and more * taps <= 128 and ci // more * -(-more * taps // step) <= steps:
            group, steps = more, ci // more * -(-more * taps // step)
    stages = 1 if group * taps > 128 else 3 if deep and not light else 2  # each holds a group's operands in shared memory
    _launched(_direct_convolution, (triton.cdiv(total, block),), (
        x.contiguous(), weight.contiguous(), weight if bias is None else bias.contiguous(), y, total, 0,
        ci, *sizes, *out, *kernel, *stride, *before, *dilation,
        outer, inner, outer_p, inner_p, axis, op, bias is not None, precision,
        *(q.contiguous() for q in (*operands, *[weight] * 4)[:4]), epilogue, block, group, step,
    ), warps, stages)  # fmt: skip
    return y
