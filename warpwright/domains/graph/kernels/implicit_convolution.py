"""A convolution of many channels as a product of matrices that is never laid out (implicit GEMM), with what follows it as its end.

    y[n, co, place] = end(sum over taps and ci of w[co, tap, ci] x[n, ci, place * stride - padding + tap * dilation])
    transposed        end(the same of              x[n, ci, (place + padding - tap * dilation) / stride], where that is a whole number)

The operands of the tensor cores are float16 numbers. A float32 number times a power of two is cut into one of them, whose 10 bits of mantissa are
TF32's, or into two, whose 22 bits and three products (high x high, high x low, low x high) err as float32 does. x is cut by a pass that also turns
it to channels last; the result is float32 and channels first at once.

Ladder:
1. A block of channels x places in registers; operands through shared memory, 16 bytes a copy, as the loop runs ahead (`num_stages`).
2. A step of DEPTH terms lies in one tap where DEPTH divides the channels: then places and zeros around x are worked out once a step, not an element.
3. x is cut by 2^9 while each sample's largest element is looked for; a second pass cuts those samples again whose element says so (the host never
   waits). So what a small sample, or a channel of small weights, loses is relative to its own largest element.
4. A transposed convolution's places are taken in phases, whose places see the same taps; nothing is multiplied by zeros between x's elements.
5. Of an image, and of few channels over three axes, a step is a row of the window: RUN places of PITCH numbers, one behind the other in x.
6. Groups are blocks of channels; places of a pool's window are neighbours in a block (`convolution_end.py`).
7. Addresses say that places lie beside one another where their number is odd (`_targets`): the compiler sees no order there, and stored one place
   of 32 channels a warp (results/implicit_convolution_h200). Blocks of one sample alone (EACH), where it does see it, have norms' statistics.
8. Two halves: sums of a step are added outside of the tensor cores, whose own additions cut off, which adds up in terms of one sign.

Achieved on an H200, with the pass that cuts x and what follows (results/implicit_convolution_h200): one number an operand 544 TFLOP/s of 512
channels to 512 (989 is float16's peak; cuDNN's float16 kernel alone 549), 317 of 64 to 128; two 148 and 122. Two phases of a row written together
(a transposed convolution with stride 2) have not run on a GPU.

Parameters: CHANNELS 64 or 128, PLACES 64 to 256, DEPTH 16 to 128 (powers of two), warps 4 or 8, stages 2 to 5.
"""

# mypy: ignore-errors
# ruff: noqa: F821 - convolution_end.py stands before it
# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _cut_power(bits):
    """Return the power of two for a sample of x, of the bits of its largest element: 9, where that leaves it in [2^8, 2^15)."""
    e = (bits >> 23) - 127
    return tl.where(((e >= -1) & (e <= 5)) | (bits == 0), 9, tl.minimum(14 - e, 120))


@triton.jit
def _two_to(power):
    return ((power + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _cut(
    x, cut, largest, apart, samples, tiles, channels, places,
    WIDE: tl.constexpr, PARTS: tl.constexpr, AGAIN: tl.constexpr, CHANNELS: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    blocks, across = tl.cdiv(places, PLACES), tl.cdiv(WIDE, CHANNELS)
    factor, others = 512.0, 1
    if AGAIN:
        others = 0
        for first in range(0, samples, 128):
            sample = first + tl.arange(0, 128)
            found = _cut_power(tl.load(largest + sample, mask=sample < samples, other=0))
            others += tl.max(tl.where(found == 9, 0, 1), 0)
    if others > 0:
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            sample = tile // (blocks * across)
            n = sample.to(tl.int64)
            if AGAIN:
                factor = _two_to(_cut_power(tl.load(largest + sample)))
            if not AGAIN or factor != 512.0:
                c, p = tile // blocks % across * CHANNELS + tl.arange(0, CHANNELS), tile % blocks * PLACES + tl.arange(0, PLACES)
                inside = (c < channels)[:, None] & (p < places)[None, :]
                seen = tl.load(x + n * channels * places + c.to(tl.int64)[:, None] * places + p[None, :], mask=inside, other=0.0)
                if not AGAIN:
                    bits = seen.to(tl.int32, bitcast=True) & 0x7FFFFFFF
                    bits = tl.where(bits < 0x7F800000, bits, 0)  # Inf and NaN stay what they are, whatever the power
                    tl.atomic_max(largest + sample, tl.max(tl.max(bits, 1), 0), sem="relaxed")
                scaled = seen * factor
                high = scaled.to(tl.float16)
                at = cut + (n * places + p.to(tl.int64)[None, :]) * WIDE + c[:, None]
                kept = (c < WIDE)[:, None] & (p < places)[None, :]
                tl.store(at, high, mask=kept)
                if PARTS == 2:
                    tl.store(at + apart, (scaled - high.to(tl.float32)).to(tl.float16), mask=kept)


@triton.jit
def _of_tap(
    tap, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr, TRANSPOSED: tl.constexpr, kz, ky, kx, ny, nx,
):  # fmt: skip
    """Return where a tap stands in x, beside a place's first one, and in w. Of a transposed convolution taps are every S-th from kz, ky, kx."""
    if TRANSPOSED:
        jz, jy, jx = tap // (ny * nx), tap // nx % ny, tap % nx
        return -jz * LD, -jy * LH, -jx * LW, ((kz + jz * SD) * KH + ky + jy * SH) * KW + kx + jx * SW
    else:
        return tap // (KH * KW) * LD, tap // KW % KH * LH, tap % KW * LW, tap


@triton.jit
def _sums(
    x, w, corner, z0, y0, x0, seen, row, real, kz, ky, kx, ny, nx, taps, x_apart, w_apart, CI: tl.constexpr, PITCH: tl.constexpr, RUN: tl.constexpr,
    ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr,
    TRANSPOSED: tl.constexpr, PARTS: tl.constexpr, CHANNELS: tl.constexpr, PLACES: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Return the sums of CHANNELS rows of w at PLACES places, whose first tap stands at `corner` of x, at z0, y0, x0 of its axes.

    RUN: a tap is so many places of a row with PITCH numbers each; 0: it is one place.
    """
    tl.static_assert(RUN == 0 or CI % DEPTH == 0)
    width: tl.constexpr = KD * KH * KW * CI
    sums = tl.zeros((CHANNELS, PLACES), tl.float32)
    for step in range((taps * CI + DEPTH - 1) // DEPTH):
        if CI % DEPTH == 0:
            dz, dy, dx, in_w = _of_tap(step * DEPTH // CI, KH, KW, SD, SH, SW, LD, LH, LW, TRANSPOSED, kz, ky, kx, ny, nx)
            inside = seen
            if TRANSPOSED or PD != 0 or (OD - 1) * SD - PD + (KD - 1) * LD >= ID:
                inside &= (z0 + dz >= 0) & (z0 + dz < ID)
            if TRANSPOSED or PH != 0 or (OH - 1) * SH - PH + (KH - 1) * LH >= IH:
                inside &= (y0 + dy >= 0) & (y0 + dy < IH)
            if RUN == 0 and (TRANSPOSED or PW != 0 or (OW - 1) * SW - PW + (KW - 1) * LW >= IW):
                inside &= (x0 + dx >= 0) & (x0 + dx < IW)
            first = step * DEPTH % CI
            if RUN == 0:
                at = (corner + tl.multiple_of(first + ((dz * IH + dy) * IW + dx) * PITCH, 8))[None, :] + tl.arange(0, DEPTH)[:, None]
            else:
                at = (corner + tl.multiple_of(first + (dz * IH + dy) * IW * PITCH, PITCH))[None, :] + tl.arange(0, DEPTH)[:, None]
            of_w_at = w + row[:, None] * width + (tl.multiple_of(first + in_w * CI, 8) + tl.arange(0, DEPTH))[None, :]
            known, of_rows = inside[None, :], real[:, None]
            if RUN > 0:
                of_run = tl.multiple_of(first, 16) + tl.arange(0, DEPTH)
                known = known & (of_run < RUN * PITCH)[:, None]
                if PW != 0 or (OW - 1) * SW - PW + RUN > IW:
                    there = x0[None, :] + (of_run // PITCH)[:, None]
                    known &= (there >= 0) & (there < IW)
        else:
            k = step * DEPTH + tl.arange(0, DEPTH)
            dz, dy, dx, in_w = _of_tap(k // CI, KH, KW, SD, SH, SW, LD, LH, LW, TRANSPOSED, kz, ky, kx, ny, nx)
            known, of_rows = seen[None, :] & (k < taps * CI)[:, None], real[:, None] & (k < taps * CI)[None, :]
            if TRANSPOSED or PD != 0 or (OD - 1) * SD - PD + (KD - 1) * LD >= ID:
                known &= (z0[None, :] + dz[:, None] >= 0) & (z0[None, :] + dz[:, None] < ID)
            if TRANSPOSED or PH != 0 or (OH - 1) * SH - PH + (KH - 1) * LH >= IH:
                known &= (y0[None, :] + dy[:, None] >= 0) & (y0[None, :] + dy[:, None] < IH)
            if TRANSPOSED or PW != 0 or (OW - 1) * SW - PW + (KW - 1) * LW >= IW:
                known &= (x0[None, :] + dx[:, None] >= 0) & (x0[None, :] + dx[:, None] < IW)
            at = corner[None, :] + (k % CI + ((dz * IH + dy) * IW + dx) * PITCH)[:, None]
            of_w_at = w + row[:, None] * width + (k % CI + in_w * CI)[None, :]
        patch = tl.load(at, mask=known, other=0.0)
        weight = tl.load(of_w_at, mask=of_rows, other=0.0)
        if PARTS == 1:
            sums = tl.dot(weight, patch, sums)
        else:
            low_patch = tl.load(at + x_apart, mask=known, other=0.0)
            low_weight = tl.load(of_w_at + w_apart, mask=of_rows, other=0.0)
            part = tl.dot(low_weight, patch)
            part = tl.dot(weight, low_patch, part)
            sums += tl.dot(weight, patch, part)
    return sums


@triton.jit
def _implicit_convolution(
    x, w, b, y, statistics, largest, of_w, q0, q1, q2, q3, total, x_apart, w_apart,
    CI: tl.constexpr, PITCH: tl.constexpr, RUN: tl.constexpr, GROUPS: tl.constexpr,  # numbers of a tap, and from one place of x to the next
    ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr,  # x [N, ID, IH, IW, PITCH]
    CO: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,  # the result is [N, CO, OD, OH, OW]
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,  # w [CO, KD, KH, KW, CI]
    SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,  # stride
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,  # zeros before each axis of x; of a transposed one, places of y that are left out
    LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr,  # dilation
    RD: tl.constexpr, RH: tl.constexpr, RW: tl.constexpr, POOL: tl.constexpr,  # windows of a pool, which do not overlap
    WHOLE: tl.constexpr, FIRST: tl.constexpr, EACH: tl.constexpr, STATISTICS: tl.constexpr,  # EACH: blocks of one sample; 0: a block may have two
    TRANSPOSED: tl.constexpr, PARTS: tl.constexpr, BIAS: tl.constexpr, EPILOGUE: tl.constexpr, LATER: tl.constexpr,
    CHANNELS: tl.constexpr, PLACES: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    of_group: tl.constexpr = CO // GROUPS
    across: tl.constexpr = (of_group + CHANNELS - 1) // CHANNELS * GROUPS
    pair: tl.constexpr = 2 if TRANSPOSED and SW == 2 else 1  # phases of the last axis that one program forms: neighbours in y, in whole sectors
    of_x: tl.constexpr = SW // pair if TRANSPOSED else 1
    phases: tl.constexpr = SD * SH * of_x if TRANSPOSED else 1
    window: tl.constexpr = RD * RH * RW
    rows: tl.constexpr = (OH + SH - 1) // SH if TRANSPOSED else OH // RH * RH  # places of a phase, of which the last may lie outside
    columns: tl.constexpr = (OW + SW - 1) // SW if TRANSPOSED else OW // RW * RW
    planes: tl.constexpr = (OD + SD - 1) // SD if TRANSPOSED else OD // RD * RD
    block, phase = tl.program_id(0) // (across * phases), tl.program_id(0) // across % phases
    if EACH == 0:
        start, end = block * (PLACES // pair), total
    else:
        start, end = block // EACH * (planes * rows * columns) + block % EACH * PLACES, (block // EACH + 1) * (planes * rows * columns)
    i = start + tl.arange(0, PLACES // pair)
    group = tl.program_id(0) % across // (across // GROUPS)
    within = tl.program_id(0) % (across // GROUPS) * CHANNELS + tl.arange(0, CHANNELS)
    row, real, seen = group * of_group + within, within < of_group, i < end
    x += group * CI
    n, qz, qy, qx = _place_of(start, i, PLACES, planes, rows, columns, RD, RH, RW)
    if window > 1:
        seen = start // window + (i - start) % (PLACES // window) < end // window
    elif EACH != 0:
        n = block // EACH + tl.zeros_like(i)  # one number, as the compiler sees
    rz, ry, rx = phase // (SH * of_x), phase // of_x % SH, phase % of_x
    if not TRANSPOSED:
        z0, y0, x0 = qz * SD - PD, qy * SH - PH, qx * SW - PW
        corner = x + (((n.to(tl.int64) * ID + z0) * IH + y0) * IW + x0) * PITCH
        sums = _sums(
            x, w, corner, z0, y0, x0, seen, row, real, 0, 0, 0, KH, KW, KD * KH * KW, x_apart, w_apart, CI, PITCH, RUN, ID, IH, IW, OD, OH, OW,
            KD, KH, KW, SD, SH, SW, PD, PH, PW, LD, LH, LW, TRANSPOSED, PARTS, CHANNELS, PLACES, DEPTH,
        )  # fmt: skip
    else:
        z0, y0 = qz + (rz + PD) // SD, qy + (ry + PH) // SH
        kz, ky = (rz + PD) % SD, (ry + PH) % SH
        ny, lines = (KH - ky + SH - 1) // SH, (KD - kz + SD - 1) // SD * ((KH - ky + SH - 1) // SH)
        x0, kx = qx + (rx + PW) // SW, (rx + PW) % SW
        nx = (KW - kx + SW - 1) // SW
        corner = x + (((n.to(tl.int64) * ID + z0) * IH + y0) * IW + x0) * PITCH
        sums = _sums(
            x, w, corner, z0, y0, x0, seen, row, real, kz, ky, kx, ny, nx, lines * nx, x_apart, w_apart, CI, PITCH, 0, ID, IH, IW, OD, OH, OW,
            KD, KH, KW, SD, SH, SW, PD, PH, PW, LD, LH, LW, TRANSPOSED, PARTS, CHANNELS, PLACES // pair, DEPTH,
        )  # fmt: skip
        if pair == 2:
            x0, kx = qx + (1 + PW) // SW, (1 + PW) % SW
            nx = (KW - kx + SW - 1) // SW
            corner = x + (((n.to(tl.int64) * ID + z0) * IH + y0) * IW + x0) * PITCH
            more = _sums(
                x, w, corner, z0, y0, x0, seen, row, real, kz, ky, kx, ny, nx, lines * nx, x_apart, w_apart, CI, PITCH, 0, ID, IH, IW, OD, OH, OW,
                KD, KH, KW, SD, SH, SW, PD, PH, PW, LD, LH, LW, TRANSPOSED, PARTS, CHANNELS, PLACES // pair, DEPTH,
            )  # fmt: skip
            sums = tl.reshape(tl.join(sums, more), (CHANNELS, PLACES))
            i = block * PLACES + tl.arange(0, PLACES)  # of the places that are written, in y's order but for the phases
            seen = i < total * pair
    if TRANSPOSED:
        n, qx = i // (planes * rows * columns * pair), i % (columns * pair)
    if TRANSPOSED and (phases > 1 or columns * pair != OW or planes != OD or rows != OH):
        oz, oy, ox = i // (rows * columns * pair) % planes * SD + rz, i // (columns * pair) % rows * SH + ry, qx * of_x + rx
        seen &= (oz < OD) & (oy < OH) & (ox < OW)
        place = (oz * OH + oy) * OW + ox
    elif window > 1:
        place = (qz * OH + qy) * OW + qx
    elif EACH != 0:
        place = block % EACH * PLACES + tl.arange(0, PLACES)  # an address a row, not one a sum: 128 registers, not 255
    else:
        place = i % (OD * OH * OW)  # which says how many lie beside one another
    of_x_back = _two_to(-_cut_power(tl.load(largest + n, mask=seen, other=0)))[None, :]
    of_w_back = tl.load(of_w + row, mask=real, other=1.0)[:, None]
    sums = sums * tl.minimum(of_x_back, of_w_back) * tl.maximum(of_x_back, of_w_back)  # the other way round what is small in the end may overflow
    windows: tl.constexpr = (OD // RD) * (OH // RH) * (OW // RW)
    v = start // window + tl.arange(0, PLACES // window)
    _end_of_sums(
        sums, y, b, statistics, block, row, real, n, place, seen, v // windows, v % windows, v < end // window, q0, q1, q2, q3,
        CO, windows if window > 1 else OD * OH * OW, OD * OH * OW, WHOLE, FIRST, BIAS, EPILOGUE, window, POOL, LATER, STATISTICS, CHANNELS, PLACES,
    )  # fmt: skip


def implicit_cut(x, parts, wide):
    """Return x [N, CI, *sizes] as [parts, N, *sizes, wide] in float16; behind it stand the bits of samples' largest elements."""
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            return implicit_cut(x, parts, wide)
    x, (n, ci) = x.contiguous(), x.shape[:2]
    inside = x.numel() // (n * ci)
    size, some = n * inside * wide, min(64, triton.next_power_of_2(wide))
    cut = x.new_empty(parts * size + 2 * n, dtype=torch.float16)
    largest = cut[parts * size :].view(torch.int32).zero_()
    tiles = n * triton.cdiv(inside, 8192 // some) * triton.cdiv(wide, some)
    for again in (False, True):  # the second has few programs, which find that there is nothing to do, as a rule
        numbers = (size, n, tiles, ci, inside, wide, parts, again, some, 8192 // some)
        _launched(_cut, (min(tiles, 1024) if again else tiles,), (x, cut, largest, *numbers), 8, 3)
    return cut


def implicit_convolution(
    x, cut, w, of_w, bias, parts, kernel, stride, padding, places, dilation, transposed, shape, groups=1, pool=(), pooled="", into=None, within=(),
    epilogue=None, later=None, operands=(), statistics="",
):
    """Return convolution(x, w * of_w) + bias [N, CO, *places] in float32, and what `epilogue` makes of it.

    `cut`: implicit_cut(x, parts, wide); w [parts, CO, *kernel, wide / groups] float16, one part, or a high and a low one, and `of_w` [CO] the powers
    of two that undo its own. With 1 in place of the last axis of `kernel` its last axis holds the taps of a row, four or eight numbers each.
    `padding` zeros stand before each axis of x, and as many after it as `places` ask for; of a transposed convolution it is what is left out before
    the result, and an axis has a stride or a dilation.
    `shape`: of a block; with a sixth number that is not 0 a block has places of one sample alone. `pool`: sizes of windows of which the largest
    (`pooled`: max) or the mean (avg) is kept, before `later`. `within`: how many channels `into` has, and where these begin; without `into` such
    a tensor is made. `statistics`: each, or all: return with the result what `norm_of_blocks` takes, of samples or of all.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():
        with torch.cuda.device(x.device):
            steps = (kernel, stride, padding, places, dilation)
            rest = (groups, pool, pooled, into, within, epilogue, later, operands, statistics)
            return implicit_convolution(x, cut, w, of_w, bias, parts, *steps, transposed, shape, *rest)
    w, lead, d = w.contiguous(), [1] * (5 - x.dim()), x.dim() - 2
    (n, ci), wide, co = x.shape[:2], w.shape[-1], w.shape[1]
    sizes, out, pool, run = (*lead, *x.shape[2:]), (*lead, *places), (*lead, *(pool or [1] * d)), 0
    if w.shape[-2] != kernel[-1]:
        kernel, run = [*kernel[:-1], 1], kernel[-1]
    kernel, stride, dilation, before = (*lead, *kernel), (*lead, *stride), (*lead, *dilation), (*[0] * (3 - d), *padding)
    pitch = (4 if ci <= 4 else 8) if run else wide * groups
    size, pair = x.numel() // ci * pitch, 2 if transposed and stride[2] == 2 else 1
    phases = stride[0] * stride[1] * stride[2] // pair if transposed else 1
    one = triton.cdiv(out[0], stride[0]) * triton.cdiv(out[1], stride[1]) * triton.cdiv(out[2], stride[2])
    kept = [o // r for o, r in zip(out, pool, strict=True)]  # windows of each axis
    one = one if transposed else kept[0] * kept[1] * kept[2] * pool[0] * pool[1] * pool[2]
    channels, many, depth, warps, stages, *apart = shape
    each = triton.cdiv(one, many) if statistics == "each" or (any(apart) and not (statistics or transposed)) else 0
    blocks = n * each or triton.cdiv(n * one * pair, many)
    y = x.new_empty((n, within[0] if within else co, *(kept[3 - d :] if pooled else places))) if into is None else into
    found = x.new_empty((blocks, co, 2)) if statistics else y
    more = (q.contiguous() for q in (*operands, *[y] * 4)[:4])
    tensors = (cut, w, x if bias is None else bias.contiguous(), y, found, cut[parts * size :].view(torch.int32), of_w, *more)
    numbers = (
        n * one, size, w.numel() // parts, wide, pitch, run, groups, *sizes, co, *out, *kernel, *stride, *before, *dilation, *pool, pooled,
        *(within or (co, 0)), each, bool(statistics), transposed, parts, bias is not None, epilogue, later, channels, many, depth,
    )  # fmt: skip
    _launched(_implicit_convolution, (blocks * triton.cdiv(co // groups, channels) * groups * phases,), (*tensors, *numbers), warps, stages)
    return (y, found) if statistics else y
